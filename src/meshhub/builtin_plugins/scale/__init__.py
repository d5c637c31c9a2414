"""Operation `scale`: scale the whole scene by a factor."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class ScaleOptions(Struct, frozen=True, kw_only=True):
    """Options of `scale`: the factor."""

    scale_percent: (
        Annotated[
            float,
            Meta(
                title="Scale in percent",
                description="Scale the whole scene uniformly; 100 keeps its size, 200 doubles each length.",
                ge=0.001,
                le=100_000,
                examples=[100],
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `scale`."""
    return [
        Operation(
            id="scale",
            label="Scale",
            stage=Stage.RESIZE,
            options=ScaleOptions,
            run="meshhub.builtin_plugins.scale.operation:run",
            figures={
                "scale_factor": "scaled by {}",
            },
        )
    ]
