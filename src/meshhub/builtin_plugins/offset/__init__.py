"""Operation `offset`: grow or shrink all surfaces by a distance."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class OffsetOptions(Struct, frozen=True, kw_only=True):
    """Options of `offset`: the distance by which surfaces move."""

    offset_mm: (
        Annotated[
            float,
            Meta(
                title="Grow by, mm",
                description="Move all surfaces outward by this many millimeters, inward if negative: -0.2 makes parts "
                "fit. Edges stay sharp. Needs a closed mesh.",
                ge=-5,
                le=5,
                examples=[2],
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `offset`."""
    return [
        Operation(
            id="offset",
            label="Grow or shrink",
            stage=Stage.SHAPE,
            memory=Memory(factor=2.5),
            options=OffsetOptions,
            run="meshhub.builtin_plugins.offset.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            drops=frozenset({"normals", "textures", "uv"}),
            figures={
                "volume_mm3": "volume {volume_before_mm3} → {} mm³",
            },
        )
    ]
