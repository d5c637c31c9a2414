"""Operation `target-height`: scale the whole scene to a height."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class TargetHeightOptions(Struct, frozen=True, kw_only=True):
    """Options of `target-height`: the Z extent to reach."""

    target_height_mm: (
        Annotated[
            float,
            Meta(
                title="Target height in mm",
                description="Scale the whole scene uniformly to this Z extent in millimeters.",
                ge=0.001,
                le=100_000,
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `target-height`."""
    return [
        Operation(
            id="target-height",
            label="Scale to height",
            stage=Stage.RESIZE,
            options=TargetHeightOptions,
            run="meshhub.builtin_plugins.target_height.operation:run",
            figures={
                "scale_factor": "scaled by {}",
            },
        )
    ]
