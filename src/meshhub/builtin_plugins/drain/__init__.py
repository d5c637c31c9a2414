"""Operation `drain`: drill holes into cavities, so that resin and powder run out."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class DrainOptions(Struct, frozen=True, kw_only=True):
    """Options of `drain`: width and number of the holes."""

    drain_holes_mm: (
        Annotated[
            float,
            Meta(
                title="Drain holes, mm",
                description="Drill round holes of this diameter from below into each cavity of a hollow model, so that "
                "resin or powder runs out. Needs a closed mesh.",
                ge=0.2,
                le=100,
                examples=[3],
            ),
        ]
        | None
    ) = None
    drain_count: Annotated[
        int,
        Meta(title="Holes for each cavity", description="Number of drain holes for each cavity.", ge=1, le=10),
    ] = 1


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `drain`."""
    return [
        Operation(
            id="drain",
            label="Drain holes",
            stage=Stage.BASE,
            memory=Memory(factor=5.0),
            options=DrainOptions,
            run="meshhub.builtin_plugins.drain.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            figures={
                "holes": "drilled {} hole|drilled {} holes",
            },
        )
    ]
