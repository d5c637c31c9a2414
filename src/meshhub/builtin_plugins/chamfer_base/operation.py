"""Bevel the edges of the side on which the model stands."""

from __future__ import annotations

from typing import NamedTuple

import manifold3d
import numpy as np

from meshhub.builtin_plugins.chamfer_base import ChamferBaseOptions
from meshhub.errors import format_count, format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.combining import note_overlaps, unite_bodies
from meshhub.toolkit.geometry import bounds
from meshhub.toolkit.reshaping import name_of, reshaped_in_place, subtracted, to_manifold
from meshhub.toolkit.topology import components
from meshhub.toolkit.validity import check_mesh, find_damage, note_damage

SLICE_RATIO = 0.01
"""Height of the outline above the bed, as a share of the chamfer: above rounded vertices, below its second edge."""

SIMPLIFY_RATIO = 0.02
"""Distance by which the outline may be simplified, as a share of the chamfer."""

MIN_WIDTH_RATIO = 3.0
"""Width and height, in chamfers, of what is beveled: no bevel is deeper than a third of what stands there."""

TOUCH_MM = 0.02
"""Millimeters; parts that are closer touch: more than files round, and less than printers can separate."""

_MITER = manifold3d.JoinType.Miter

CONE_SEGMENTS = 32
"""Segments of the cones around the corners of the outline."""


def run(scene: Scene, options: ChamferBaseOptions) -> Scene:
    """Bevel the outlines at the lowest height of the scene by `chamfer_base_mm`, including those of holes.

    Args:
        scene: Millimeters, Z up.
        options: `chamfer_base_mm` None leaves the scene unchanged.
    Returns:
        Scene with the bevels. Parts that touch at the bed get those of their common outline. New faces get the
        appearance of the nearest surface of their mesh.
    Raises:
        ConversionFailed: A part that stands on the bed is not a closed solid.
        ValueError: The scene has no faces.
    """
    size = options.chamfer_base_mm
    if size is None:
        return scene
    bed = float(bounds(scene)[0, 2])
    feet = _find_feet(scene, bed, size)
    bases, base_of = _find_bases(feet, bed, size)
    length, narrow_count = 0.0, 0

    def change(mesh: Mesh, parts: list[Part]) -> Mesh:
        nonlocal length, narrow_count
        if parts[0] not in feet:
            return mesh
        base, foot = bases[base_of[parts[0]]], feet[parts[0]]
        length += base.length / base.part_count * len(parts)
        narrow_count += base.narrow_count * len(parts) if base.part_count == 1 else 0
        if base.tool.is_empty():
            return mesh
        if foot.is_union:
            note_overlaps(name_of(mesh, parts))
        result = subtracted(mesh, foot.solid, [base.tool.translate((*-foot.place, 0))])
        note_damage(name_of(mesh, parts), find_damage(result, check_mesh(mesh)))
        return result

    # parts that touch others get bevels of their own
    shared = [base_of[part] if part in feet and bases[base_of[part]].part_count > 1 else -1 for part in scene.parts]
    narrow_count += sum(base.narrow_count for base in bases if base.part_count > 1)
    result = reshaped_in_place(scene, change, variants=shared)
    if length == 0:
        note(
            "no_base_to_chamfer",
            f"no side at the bed is wide and high enough for a chamfer of {format_number(size, 3)} mm; "
            "lower {chamfer_base_mm}, or use {flatten_base_mm}",
            options=("chamfer_base_mm", "flatten_base_mm"),
            size=size,
        )
        return scene
    if narrow_count:
        note(
            "base_too_narrow",
            f"{format_count(narrow_count, 'side', 'sides')} at the bed too narrow or too low for a chamfer of "
            f"{format_number(size, 3)} mm, left sharp; lower {{chamfer_base_mm}}",
            options=("chamfer_base_mm",),
            count=narrow_count,
            size=size,
        )
    did(chamfered_mm=length)
    return result


class _Foot(NamedTuple):
    """Part that stands on the bed.

    solid:    its solid, without its position along X and Y
    outline:  its section just above the bed, without this position
    place:    (2,) this position
    is_union: whether its bodies overlapped, and were united
    """

    solid: manifold3d.Manifold
    outline: manifold3d.CrossSection
    place: Float64
    is_union: bool


class _Base(NamedTuple):
    """Parts that touch at the bed, or one part.

    tool:         what to subtract from each of them, in its place in the scene
    length:       length of the outlines, mm
    narrow_count: sides that stay sharp
    part_count:   number of parts
    """

    tool: manifold3d.Manifold
    length: float
    narrow_count: int
    part_count: int


def _find_feet(scene: Scene, bed: float, size: float) -> dict[Part, _Foot]:
    """Return the parts that stand on the bed."""
    feet: dict[Part, _Foot] = {}

    def add(mesh: Mesh, parts: list[Part]) -> Mesh:
        if mesh.vertices[mesh.faces, 2].min() <= bed + SLICE_RATIO * size:
            whole = to_manifold(mesh, parts)
            solid = unite_bodies(whole)
            outline = solid.slice(bed + SLICE_RATIO * size).simplify(SIMPLIFY_RATIO * size)
            feet.update((part, _Foot(solid, outline, part.transform[:2, 3], solid is not whole)) for part in parts)
        return mesh

    reshaped_in_place(scene, add)
    return feet


def _find_bases(feet: dict[Part, _Foot], bed: float, size: float) -> tuple[list[_Base], dict[Part, int]]:
    """Return the parts that touch at the bed, together, and the number of these for each part."""
    outlines = [foot.outline.translate(foot.place.tolist()) for foot in feet.values()]
    boxes = np.array([outline.bounds() for outline in outlines]).reshape(-1, 2, 2)
    near = (boxes[:, None, 0] <= boxes[None, :, 1] + TOUCH_MM).all(axis=2)
    pairs = [
        (first, second)
        for first, second in np.argwhere(near & near.T).tolist()
        if first < second and not (outlines[first].offset(TOUCH_MM, _MITER) ^ outlines[second]).is_empty()
    ]
    starts, ends = np.array(pairs, np.intp).reshape(-1, 2).T
    count, label = components(len(outlines), starts, ends)
    bases: list[_Base] = []
    cache: dict[int, _Base] = {}
    for number in range(count):
        members = np.flatnonzero(label == number)
        chosen = [list(feet.values())[member] for member in members]
        if len(chosen) > 1:
            solids = [foot.solid.translate((*foot.place, 0)) for foot in chosen]
            outline = manifold3d.CrossSection.batch_boolean(
                [outlines[member] for member in members], manifold3d.OpType.Add
            )
            # the seams between them close
            outline = outline.offset(TOUCH_MM, _MITER).offset(-TOUCH_MM, _MITER)
            bases.append(_bevel(solids, outline, bed, size))
            continue
        foot = chosen[0]
        # instances that differ only in their position along X and Y have one solid
        if id(foot.solid) not in cache:
            cache[id(foot.solid)] = _bevel([foot.solid], foot.outline, bed, size)
        base = cache[id(foot.solid)]
        bases.append(base._replace(tool=base.tool.translate((*foot.place, 0))))
    return bases, dict(zip(feet, label.tolist(), strict=True))


def _bevel(solids: list[manifold3d.Manifold], outline: manifold3d.CrossSection, bed: float, size: float) -> _Base:
    """Return the bevels of the outline of some solids."""
    sides = outline.decompose()
    # a side narrower than the bevels would disappear from the bed
    wide = [side for side in sides if not side.offset(-size).is_empty()]
    narrow_count = len(sides) - len(wide)
    if not wide:
        return _Base(manifold3d.Manifold(), 0.0, narrow_count, len(solids))
    outline = manifold3d.CrossSection.compose(wide)
    thin = _find_thin(outline, size) + _find_low(solids, outline, bed, size)
    if thin.is_empty():
        tool = manifold3d.Manifold.batch_boolean(_wedges(outline, bed, size), manifold3d.OpType.Add)
        return _Base(tool, _perimeter(outline), narrow_count, len(solids))
    narrow_count += len(thin.decompose())
    # thin parts would lose their hold on the bed
    sharp = thin.offset(size)
    # the edges between both halves are in each of them
    length = (_perimeter(outline) + _perimeter(outline - sharp) - _perimeter(outline ^ sharp)) / 2
    if length < size:
        return _Base(manifold3d.Manifold(), 0.0, narrow_count, len(solids))
    tool = manifold3d.Manifold.batch_boolean(_wedges(outline, bed, size), manifold3d.OpType.Add)
    tool -= sharp.extrude(4 * size).translate((0, 0, bed - 2 * size))
    return _Base(tool, length, narrow_count, len(solids))


def _perimeter(outline: manifold3d.CrossSection) -> float:
    """Return the length of all loops of an outline."""
    return sum(float(np.linalg.norm(loop - np.roll(loop, 1, axis=0), axis=1).sum()) for loop in outline.to_polygons())


def _find_thin(outline: manifold3d.CrossSection, size: float) -> manifold3d.CrossSection:
    """Return what of an outline is narrower than three chamfers, such as ribs on a wide base."""
    return _without_slivers(outline - _without_thin(outline, size), size)


def _without_thin(outline: manifold3d.CrossSection, size: float) -> manifold3d.CrossSection:
    """Return what of an outline is as wide as three chamfers."""
    reach = MIN_WIDTH_RATIO * size / 2
    return outline.offset(-reach, _MITER).offset(reach, _MITER)


def _find_low(
    solids: list[manifold3d.Manifold], outline: manifold3d.CrossSection, bed: float, size: float
) -> manifold3d.CrossSection:
    """Return what of an outline is lower than three chamfers where the chamfer would end."""
    start = SLICE_RATIO * size
    slab = outline.extrude(MIN_WIDTH_RATIO * size - 3 * start).translate((0, 0, bed + start))
    space = manifold3d.Manifold.batch_boolean([slab, *solids], manifold3d.OpType.Subtract)
    if space.is_empty():
        return manifold3d.CrossSection()
    # a rib on a low plate does not make the plate higher
    high = _without_thin(outline - space.project(), size)
    return _without_slivers(outline - high.offset(size, _MITER), size)


def _without_slivers(outline: manifold3d.CrossSection, size: float) -> manifold3d.CrossSection:
    """Return an outline without what rounding left of it."""
    rounding = SIMPLIFY_RATIO * size
    sides = outline.offset(-rounding, _MITER).offset(rounding, _MITER).decompose()
    return manifold3d.CrossSection.compose([side for side in sides if side.area() > rounding * size])


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
