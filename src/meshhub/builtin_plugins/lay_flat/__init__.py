"""Operation `lay-flat`: turn the scene onto its largest stable face."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class LayFlatOptions(Struct, frozen=True, kw_only=True):
    """Options of `lay-flat`: whether to turn the scene."""

    lay_flat: Annotated[
        bool,
        Meta(
            title="Lay flat",
            description="Turn the whole scene so that it rests on the largest flat side on which it does not tip over.",
        ),
    ] = False


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `lay-flat`."""
    return [
        Operation(
            id="lay-flat",
            label="Lay flat",
            stage=Stage.TURN,
            options=LayFlatOptions,
            run="meshhub.builtin_plugins.lay_flat.operation:run",
            needs=("scipy",),
            install="meshhub",
            figures={
                "turned_deg": "turned by {}°",
                "side_area_mm2": "lies on {} mm²",
            },
        )
    ]
