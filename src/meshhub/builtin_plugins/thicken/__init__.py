"""Operation `thicken`: make walls that are too thin to print thicker."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class ThickenOptions(Struct, frozen=True, kw_only=True):
    """Options of `thicken`: the least thickness of walls."""

    thicken_mm: (
        Annotated[
            float,
            Meta(
                title="Least wall, mm",
                description="Make walls that are thinner than this as thick as this, to both sides; all other places "
                "stay as they are. Open sheets become solids of this thickness. Needs closed meshes or sheets.",
                ge=0.1,
                le=20,
                examples=[1.2],
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `thicken`."""
    return [
        Operation(
            id="thicken",
            label="Thicken walls",
            stage=Stage.SHAPE,
            memory=Memory(factor=3.5),
            options=ThickenOptions,
            run="meshhub.builtin_plugins.thicken.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            figures={
                "volume_added_mm3": "added {} mm³",
                "thin_area_mm2": "{} mm² were too thin",
            },
        )
    ]
