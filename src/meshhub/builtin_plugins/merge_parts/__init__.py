"""Operation `merge-parts`: merge all parts into one solid, or join them as they are."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class MergePartsOptions(Struct, frozen=True, kw_only=True):
    """Options of `merge-parts`: how to merge."""

    merge_parts: (
        Annotated[
            Literal["union", "keep"],
            Meta(
                title="Merge parts",
                description="Merge all parts into one: union makes one solid without walls inside; "
                "keep joins the meshes unchanged.",
                examples=["union"],
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `merge-parts`."""
    return [
        Operation(
            id="merge-parts",
            label="Merge parts",
            # before DIVIDE, which makes parts that must not be merged again
            stage=Stage.CUT,
            memory=Memory(factor=2.0),
            options=MergePartsOptions,
            run="meshhub.builtin_plugins.merge_parts.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            drops=frozenset({"names", "hierarchy", "instances"}),
            figures={
                "volume_after_mm3": "volume {volume_before_mm3} → {} mm³",
                "overlap_mm3": "united overlaps of {} mm³",
            },
        )
    ]
