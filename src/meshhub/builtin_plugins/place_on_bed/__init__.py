"""Operation `place-on-bed`: move the whole scene onto the print bed."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class PlaceOnBedOptions(Struct, frozen=True, kw_only=True):
    """Options of `place-on-bed`: whether to move the scene."""

    place_on_bed: Annotated[
        bool,
        Meta(
            title="Place on bed",
            description="Move the whole scene so that its lowest point is at Z = 0 and its center at X = Y = 0.",
            extra={"everyday": True},
        ),
    ] = False


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `place-on-bed`."""
    return [
        Operation(
            id="place-on-bed",
            label="Place on bed",
            stage=Stage.PLACE,
            options=PlaceOnBedOptions,
            run="meshhub.builtin_plugins.place_on_bed.operation:run",
            figures={"moved_mm": "moved by {} mm"},
        )
    ]
