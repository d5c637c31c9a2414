"""Operation `flatten-base`: cut off the bottom, so that the model stands flat."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class FlattenBaseOptions(Struct, frozen=True, kw_only=True):
    """Options of `flatten-base`: the height to cut off."""

    flatten_base_mm: (
        Annotated[
            float,
            Meta(
                title="Flatten the base by, mm",
                description="Cut this many millimeters off the bottom of the whole scene, and close the cut.",
                ge=0.001,
                le=100_000,
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `flatten-base`."""
    return [
        Operation(
            id="flatten-base",
            label="Flatten base",
            stage=Stage.CUT,
            options=FlattenBaseOptions,
            run="meshhub.builtin_plugins.flatten_base.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            figures={
                "cut_height_mm": "cut off {} mm",
                "parts_removed": "removed {} part|removed {} parts",
                "shells_removed": "removed {} shell|removed {} shells",
                "base_area_mm2": "stands on {} mm²",
            },
        )
    ]
