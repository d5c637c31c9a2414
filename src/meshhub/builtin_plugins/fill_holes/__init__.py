"""Operation `fill-holes`: fill small round holes, such as screw holes."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class FillHolesOptions(Struct, frozen=True, kw_only=True):
    """Options of `fill-holes`: the largest diameter."""

    fill_holes_mm: (
        Annotated[
            float,
            Meta(
                title="Fill holes up to, mm",
                description="Fill round holes in flat sides, through holes and blind ones, up to this diameter. "
                "Needs a closed mesh; a repair closes holes where faces are missing.",
                ge=0.1,
                le=1000,
                examples=[5],
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `fill-holes`."""
    return [
        Operation(
            id="fill-holes",
            label="Fill holes",
            stage=Stage.SHAPE,
            options=FillHolesOptions,
            run="meshhub.builtin_plugins.fill_holes.operation:run",
            needs=("scipy",),
            install="meshhub",
            figures={
                "holes_filled": "filled {} hole|filled {} holes",
            },
        )
    ]
