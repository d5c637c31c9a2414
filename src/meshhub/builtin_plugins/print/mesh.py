"""Check `mesh`: defects of the surface, because of which slicers guess what is inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.model.notes import did
from meshhub.model.report import DefectKind
from meshhub.model.scene import Scene
from meshhub.model.verdict import Finding, Place, Severity
from meshhub.toolkit.scene_defects import Defect, find_defects
from meshhub.toolkit.scene_topology import analyze


class _Wording(NamedTuple):
    """How a kind of defects is reported; `{n}` is the number of defects."""

    severity: Severity
    one: str
    many: str
    advice: str


_WORDINGS: dict[DefectKind, _Wording] = {
    "open_edges": _Wording(
        "error", "1 edge is open", "{n} edges are open", "slicers close the hole as they like, or drop the part"
    ),
    "nonmanifold_edges": _Wording(
        "warning",
        "1 edge has more than two faces",
        "{n} edges have more than two faces",
        "slicers may leave out walls there",
    ),
    "flipped_faces": _Wording(
        "error", "1 face is inside out", "{n} faces are inside out", "slicers may fill the wrong side"
    ),
    "stray_fragments": _Wording(
        "warning",
        "1 stray fragment lies beside the model",
        "{n} stray fragments lie beside the model",
        "they print as crumbs, or not at all",
    ),
}


def run(scene: Scene, _: PrintOptions) -> Iterator[Finding]:
    """Find the defects of all meshes.

    Args:
        scene: Millimeters, Z up.
    """
    topology = analyze(scene.meshes)
    defects = find_defects(scene, topology)
    counts = {defect.finding.kind: defect.finding.count for defect in defects}
    did(bodies=int((~topology.shells.hollow).sum()), **counts)
    for defect in defects:
        yield _describe(defect)


def _describe(defect: Defect) -> Finding:
    found = defect.finding
    wording = _WORDINGS[found.kind]
    subject = wording.one if found.count == 1 else wording.many.format(n=f"{found.count:,}")
    return Finding(
        code=found.kind,
        severity=wording.severity,
        message=f"{subject}; {wording.advice}; use {{repair}}",
        options=("repair",),
        amount=found.count,
        places=tuple(
            Place(position_mm=place.position_mm, size_mm=place.size_mm, part=place.part, amount=place.count)
            for place in found.places
        ),
        places_found=found.places_found,
        remedy={"repair": True},
        picture={"color_by": "defects"},
    )
