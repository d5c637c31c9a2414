"""Operation `optimize`: reduce the number of faces; a closed mesh stays closed."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class OptimizeOptions(Struct, frozen=True, kw_only=True):
    """Options of `optimize`: the number of faces to keep, and the largest error."""

    optimize_target_faces: (
        Annotated[
            int,
            Meta(
                title="Target number of faces",
                description="Reduce the whole scene to this many triangles; every instance counts.",
                ge=4,
                le=100_000_000,
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None

    optimize_max_error_mm: (
        Annotated[
            float,
            Meta(
                title="Largest error of the reduction, mm",
                description="Reduce the faces as long as the surface moves by up to this distance, measured between "
                "both surfaces at corners and samples. With a target number of faces, the first one that is "
                "reached stops the reduction.",
                ge=0.0001,
                le=1000,
                examples=[0.05],
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `optimize`."""
    return [
        Operation(
            id="optimize",
            label="Reduce faces",
            stage=Stage.REDUCE,
            memory=Memory(options={"optimize_max_error_mm": 9.0}),
            options=OptimizeOptions,
            run="meshhub.builtin_plugins.optimize.operation:run",
            needs=("fast_simplification", "scipy"),
            install="meshhub",
            drops=frozenset({"normals"}),
            solves={"many_faces": "optimize_target_faces"},
            figures={
                "error_mm": "moved the surface by up to {} mm",
            },
        )
    ]
