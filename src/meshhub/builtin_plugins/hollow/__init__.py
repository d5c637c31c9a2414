"""Operation `hollow`: make solid bodies hollow, to save material."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class HollowOptions(Struct, frozen=True, kw_only=True):
    """Options of `hollow`: the thickness of the wall."""

    hollow_wall_mm: (
        Annotated[
            float,
            Meta(
                title="Hollow with a wall, mm",
                description="Make closed bodies hollow, with a wall of this thickness. The outside does not change; "
                "bodies that are too thin stay solid. Needs a closed mesh.",
                ge=0.2,
                le=100,
                examples=[2],
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `hollow`."""
    return [
        Operation(
            id="hollow",
            label="Hollow",
            stage=Stage.HOLLOW,
            memory=Memory(factor=2.5, base_bytes=600 << 20),
            options=HollowOptions,
            run="meshhub.builtin_plugins.hollow.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            figures={
                "cavities": "made {} cavity|made {} cavities",
                "saved_percent": "saved {} % of the material",
            },
        )
    ]
