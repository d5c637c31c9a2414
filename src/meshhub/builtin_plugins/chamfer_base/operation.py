"""Bevel the edges of the side on which the model stands."""

from __future__ import annotations

import manifold3d
import numpy as np

from meshhub.builtin_plugins.chamfer_base import ChamferBaseOptions
from meshhub.errors import format_count, format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds
from meshhub.toolkit.reshaping import name_of, reshaped_in_place, subtracted, to_manifold
from meshhub.toolkit.validity import find_damage, note_damage

SLICE_RATIO = 0.01
"""Height of the outline above the bed, as a share of the chamfer: above rounded vertices, below its second edge."""

SIMPLIFY_RATIO = 0.02
"""Distance by which the outline may be simplified, as a share of the chamfer."""

MIN_WIDTH_RATIO = 3.0
"""Width, in chamfers, of what is beveled: a third of it stays on each side, and a third on the bed."""

CONE_SEGMENTS = 32
"""Segments of the cones around the corners of the outline."""


def run(scene: Scene, options: ChamferBaseOptions) -> Scene:
    """Bevel the outlines at the lowest height of the scene by `chamfer_base_mm`, including those of holes.

    Args:
        scene: Millimeters, Z up.
        options: `chamfer_base_mm` None leaves the scene unchanged.
    Returns:
        Scene with the bevels; new faces get the appearance of the nearest surface of their mesh.
    Raises:
        ConversionFailed: A part that stands on the bed is not a closed solid.
        ValueError: The scene has no faces.
    """
    size = options.chamfer_base_mm
    if size is None:
        return scene
    bed = float(bounds(scene)[0, 2])
    length, narrow_count = 0.0, 0

    def change(mesh: Mesh, parts: list[Part]) -> Mesh:
        nonlocal length, narrow_count
        if mesh.vertices[mesh.faces, 2].min() > bed + SLICE_RATIO * size:
            return mesh
        solid = to_manifold(mesh, parts)
        sides = solid.slice(bed + SLICE_RATIO * size).simplify(SIMPLIFY_RATIO * size).decompose()
        # a side narrower than the bevels would disappear from the bed
        wide = [side for side in sides if not side.offset(-size).is_empty()]
        narrow_count += len(parts) * (len(sides) - len(wide))
        if not wide:
            return mesh
        outline = manifold3d.CrossSection.compose(wide)
        thin = _find_thin(outline, size)
        narrow_count += len(parts) * len(thin.decompose())
        loops = outline.to_polygons()
        length += len(parts) * sum(
            float(np.linalg.norm(loop - np.roll(loop, 1, axis=0), axis=1).sum()) for loop in loops
        )
        result = subtracted(mesh, solid, _spare(_wedges(outline, bed, size), thin, bed, size))
        note_damage(name_of(mesh, parts), find_damage(result))
        return result

    result = reshaped_in_place(scene, change)
    if length == 0:
        note(
            "no_base_to_chamfer",
            f"no side at the bed is wide enough for a chamfer of {format_number(size, 3)} mm; "
            "lower {chamfer_base_mm}, or use {flatten_base_mm}",
            options=("chamfer_base_mm", "flatten_base_mm"),
            size=size,
        )
        return scene
    if narrow_count:
        note(
            "base_too_narrow",
            f"{format_count(narrow_count, 'side', 'sides')} at the bed too narrow for a chamfer of "
            f"{format_number(size, 3)} mm, left sharp; lower {{chamfer_base_mm}}",
            options=("chamfer_base_mm",),
            count=narrow_count,
            size=size,
        )
    did(chamfered_mm=length)
    return result


def _find_thin(outline: manifold3d.CrossSection, size: float) -> manifold3d.CrossSection:
    """Return what of an outline is narrower than three chamfers, such as ribs on a wide base."""
    reach, join = MIN_WIDTH_RATIO * size / 2, manifold3d.JoinType.Miter
    thin = outline - outline.offset(-reach, join).offset(reach, join)
    rounding = SIMPLIFY_RATIO * size
    return thin.offset(-rounding, join).offset(rounding, join)


def _spare(
    wedges: list[manifold3d.Manifold], thin: manifold3d.CrossSection, bed: float, size: float
) -> list[manifold3d.Manifold]:
    """Return what of the wedges is away from thin parts of the outline, which would lose their hold on the bed."""
    if thin.is_empty():
        return wedges
    block = thin.offset(size).extrude(4 * size).translate((0, 0, bed - 2 * size))
    return [manifold3d.Manifold.batch_boolean(wedges, manifold3d.OpType.Add) - block]


def _wedges(outline: manifold3d.CrossSection, bed: float, size: float) -> list[manifold3d.Manifold]:
    """Return the sweep of a cone along each edge of an outline; its sides rise at 45° from the reduced outline."""
    # wedges that end beside the walls and below the bed share no edge or face with the model
    beyond = SLICE_RATIO * size
    radius = size + 2 * beyond
    angle = np.linspace(0, 2 * np.pi, CONE_SEGMENTS, endpoint=False)
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(CONE_SEGMENTS, -beyond)], axis=1)
    cone = np.concatenate([ring, [[0, 0, radius - beyond]]])
    wedges = []
    for loop in outline.offset(beyond, manifold3d.JoinType.Miter).to_polygons():
        corners = np.column_stack([loop, np.full(len(loop), bed)])
        for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            wedges.append(manifold3d.Manifold.hull_points(np.concatenate([cone + start, cone + end])))
    return wedges
