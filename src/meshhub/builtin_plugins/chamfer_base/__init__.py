"""Operation `chamfer-base`: bevel the lowest edge, because printing makes the first layers bulge."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class ChamferBaseOptions(Struct, frozen=True, kw_only=True):
    """Options of `chamfer-base`: the size of the bevel."""

    chamfer_base_mm: (
        Annotated[
            float,
            Meta(
                title="Chamfer the base by, mm",
                description="Bevel the edges of the side that stands on the bed by this much, at 45°, because "
                "the first layers are squeezed outward. Needs a closed mesh.",
                ge=0.05,
                le=20,
                examples=[0.5],
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `chamfer-base`."""
    return [
        Operation(
            id="chamfer-base",
            label="Chamfer the base",
            stage=Stage.BASE,
            memory=Memory(factor=2.0),
            options=ChamferBaseOptions,
            run="meshhub.builtin_plugins.chamfer_base.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            figures={
                "chamfered_mm": "beveled by {} mm",
            },
        )
    ]
