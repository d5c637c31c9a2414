"""Operation `repair`: close holes, fix normals and remove stray fragments, and report every action."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class RepairOptions(Struct, frozen=True, kw_only=True):
    """Options of `repair`: whether to repair the scene, what to remove or unite, and whether to wrap it."""

    repair: Annotated[
        bool,
        Meta(
            title="Repair",
            description="Close holes, remove stray fragments, duplicate and degenerate faces, split non-manifold edges "
            "and vertices, and orient faces outward. A valid model stays unchanged.",
            extra={"everyday": True},
        ),
    ] = False
    repair_solid: Annotated[
        bool,
        Meta(
            title="Repair to solid bodies",
            description="Repair, then remove inner walls, also those that pin-holes join to the surface, so that "
            "double walls and cavities become solid, and small shells that float beside the model.",
        ),
    ] = False
    repair_self_intersections: Annotated[
        bool,
        Meta(
            title="Unite overlapping bodies",
            description="Repair, then unite the bodies of each part where they overlap, and each body with itself; "
            "cavities stay. Slicers read overlaps in different ways. A part without overlaps stays unchanged.",
        ),
    ] = False
    repair_fragments_mm: (
        Annotated[
            float,
            Meta(
                title="Remove shells smaller than, mm",
                description="Repair, then remove every shell whose bounding box has a diagonal under this many "
                "millimeters; the largest shell of each part stays.",
                gt=0,
                le=1000,
                examples=[1],
            ),
        ]
        | None
    ) = None
    repair_wrap_mm: (
        Annotated[
            float,
            Meta(
                title="Wrap gaps up to, mm",
                description="Last resort: replace each part by a new closed surface around it, which closes gaps and "
                "holes up to this many millimeters and lies about a tenth of them outside. Edges become round, details "
                "under it vanish. The report gives the deviation.",
                ge=0.05,
                le=50,
                examples=[5],
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `repair`."""
    return [
        Operation(
            run="meshhub.builtin_plugins.repair.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            preload=("pymeshlab",),
            id="repair",
            label="Repair",
            stage=Stage.REPAIR,
            memory=Memory(factor=1.5, options={"repair_solid": 3.5}),
            options=RepairOptions,
            solves={"open_mesh": "repair"},
            figures={
                "holes_closed": "closed {} hole|closed {} holes",
                "fragments_removed": "removed {} fragment|removed {} fragments",
                "faces_flipped": "turned {} face|turned {} faces",
                "duplicate_faces_removed": "removed {} duplicate face|removed {} duplicate faces",
                "degenerate_faces_removed": "removed {} face without area|removed {} faces without area",
                "cracks_welded": "welded {} crack|welded {} cracks",
                "vertices_split": "split {} vertex|split {} vertices",
                "edges_split": "split {} edge|split {} edges",
                "vertices_moved": "moved {} vertex off another part|moved {} vertices off other parts",
                "inner_faces_removed": "removed {} inner face|removed {} inner faces",
                "inner_shells_removed": "removed {} inner shell|removed {} inner shells",
                "floating_shells_removed": "removed {} floating shell|removed {} floating shells",
                "self_intersections_united": "united {} overlap|united {} overlaps",
                "wrap_deviation_max_mm": "wrapped within {} mm",
                "bodies_after": "bodies {bodies_before} → {}",
                "watertight": "now watertight",
            },
        )
    ]
