"""Check `mesh`: defects of the surface, because of which slicers guess what is inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.bodies import sheets_of, topology_of
from meshhub.builtin_plugins.print.places import place_box
from meshhub.model.notes import did
from meshhub.model.report import DefectKind
from meshhub.model.scene import Scene
from meshhub.model.verdict import MAX_PLACES, Finding, Place, Severity
from meshhub.toolkit.geometry import bounds_of_parts
from meshhub.toolkit.scene_defects import Defect, find_defects
from meshhub.toolkit.scene_topology import SceneTopology
from meshhub.toolkit.touching_edges import find_touching_edges


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


BY_HAND = "or correct it in the program that made the model"
"""Advice about a defect for which no remedy helps."""

HARMLESS = "slicers print this, but other programs may reject it"
"""Advice about a defect that changes no layer."""

CLOSED_MM = 0.1
"""Size of a place or gap up to which slicers close it: twice PrusaSlicer's slice closing radius."""


def run(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find the defects of all meshes, and those that are sheets.

    Args:
        scene: Millimeters, Z up.
        options: The least wall.
    """
    topology = topology_of(scene)
    shells = topology.shells
    sheets = sheets_of(scene)
    flat = [number for number, part in enumerate(scene.parts) if part.mesh in sheets]
    others = [number for number, part in enumerate(scene.parts) if part.mesh not in sheets]
    defects = find_defects(replace(scene, parts=tuple(scene.parts[number] for number in others)), topology)
    counts = {defect.finding.kind: defect.finding.count for defect in defects}
    did(bodies=int((~shells.hollow).sum()), sheets=len(flat), **counts)
    if flat:
        yield _describe_sheets(scene, flat, options)
    for defect in defects:
        is_harmless = _is_small(defect) or (defect.finding.kind == "nonmanifold_edges" and _are_seams(topology))
        yield _describe(defect, others, is_harmless=is_harmless)


def _is_small(defect: Defect) -> bool:
    """Return whether slicers close all places of a defect."""
    found = defect.finding
    return len(found.places) == found.places_found and all(place.size_mm <= CLOSED_MM for place in found.places)


def _are_seams(topology: SceneTopology) -> bool:
    """Return whether only solids meet at each non-manifold edge."""
    return bool(find_touching_edges(topology.faces, topology.edges)[topology.edges.size > 2].all())


def _describe_sheets(scene: Scene, parts: list[int], options: PrintOptions) -> Finding:
    boxes = bounds_of_parts(scene)[parts[:MAX_PLACES]]
    return Finding(
        code="open_surface",
        severity="error",
        message=f"{'1 part is a sheet' if len(parts) == 1 else f'{len(parts):,} parts are sheets'} without volume, "
        "which slicers leave out; give it a thickness with {thicken_mm}, or draw it as a solid",
        options=("thicken_mm",),
        amount=len(parts),
        places=tuple(place_box(box, part) for box, part in zip(boxes, parts, strict=False)),
        places_found=len(parts),
        remedy={"repair": True, **options.sheet_remedy},
        picture={"color_by": "defects"},
    )


def _describe(defect: Defect, parts: list[int], *, is_harmless: bool) -> Finding:
    found = defect.finding
    wording = _WORDINGS[found.kind]
    subject = wording.one if found.count == 1 else wording.many.format(n=f"{found.count:,}")
    return Finding(
        code=found.kind,
        severity="info" if is_harmless else wording.severity,
        message=f"{subject}; {HARMLESS if is_harmless else wording.advice}; use {{repair}}, {BY_HAND}",
        options=("repair",),
        amount=found.count,
        places=tuple(
            Place(position_mm=place.position_mm, size_mm=place.size_mm, part=parts[place.part], amount=place.count)
            for place in found.places
        ),
        places_found=found.places_found,
        remedy={"repair": True},
        picture={"color_by": "defects"},
    )
