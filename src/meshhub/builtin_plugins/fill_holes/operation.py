"""Fill small round holes: remove their faces, and close their rims."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.fill_holes import FillHolesOptions
from meshhub.errors import format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.geometry import IntIndex, compacted, face_normals, unit_vectors, welded
from meshhub.toolkit.polygons import triangulate
from meshhub.toolkit.reshaping import name_of, reshaped, solid_surface
from meshhub.toolkit.topology import Index, boundary_loops, components, edges, fans, following
from meshhub.toolkit.validity import find_damage, note_damage

MAX_FLAT_TURN_RAD = 2e-3
"""Radians between neighboring triangles of a flat side: above the rounding of float32 files."""

MIN_CORNERS = 8
"""Minimum corners of a circle; with fewer, a hole is a designed polygon, such as the seat of a nut."""

ROUNDNESS_RATIO = 0.05
"""Largest difference of the radii of a circle, and of its corners from their plane, as a share of the radius."""

MIN_CIRCLE_RATIO = 0.8
"""Area of a circle's polygon as a share of the area of the circle; a regular octagon has 0.9."""


def run(scene: Scene, options: FillHolesOptions) -> Scene:
    """Fill the round holes in flat sides whose diameter is at most `fill_holes_mm`.

    Args:
        scene: Millimeters, Z up.
        options: `fill_holes_mm` None leaves the scene unchanged.
    Returns:
        Scene without the faces of the holes; new flat faces close their rims. All other faces stay as they are.
        Instances stay shared.
    Raises:
        ConversionFailed: A part is not a closed solid.
    """
    diameter = options.fill_holes_mm
    if diameter is None:
        return scene
    filled = 0

    def change(mesh: Mesh, parts: list[Part]) -> Mesh:
        nonlocal filled
        result, count = _fill(mesh, parts, diameter)
        filled += count * len(parts)
        return result

    result = reshaped(scene, change)
    if filled == 0:
        note(
            "no_small_holes",
            f"the model has no round hole of at most {format_number(diameter, 3)} mm in a flat side; "
            "change {fill_holes_mm}",
            options=("fill_holes_mm",),
            size=diameter,
        )
    did(holes_filled=filled)
    return result if filled else scene


class _Rim(NamedTuple):
    """Round inner border of a flat side.

    half_edges: (k,) half-edges of the side, in the direction of its faces
    center:     (3,)
    axis:       (3,) outward unit normal of the side
    """

    half_edges: Index
    center: Float64
    axis: Float64


def _fill(mesh: Mesh, parts: list[Part], diameter: float) -> tuple[Mesh, int]:
    """Return the mesh without small holes, and their number."""
    solid_surface(mesh, parts)
    points, welded_faces = welded(mesh)
    a, b, c = welded_faces.T
    proper = np.flatnonzero((a != b) & (b != c) & (c != a))
    faces = welded_faces[proper]
    half_a, half_b = edges(faces).pairs()
    twin = np.empty(3 * len(faces), np.intp)
    twin[half_a], twin[half_b] = half_b, half_a
    rims = _find_rims(points, faces, half_a, half_b, diameter / 2)
    if not rims:
        return mesh, 0
    is_cut = np.zeros(3 * len(faces), np.bool_)
    for rim in rims:
        is_cut[rim.half_edges] = is_cut[twin[rim.half_edges]] = True
    linked = ~is_cut[half_a]
    count, region = components(len(faces), half_a[linked] // 3, half_b[linked] // 3)
    is_hole = _find_holes(points, faces, region, count, rims, twin, diameter / 2)
    caps = [_cap(rim, twin, region, is_hole) for rim in rims]
    loops = [loop for loop in caps if len(loop)]
    if not loops:
        return mesh, 0
    # the corners of the faces that stay, with their attributes, in the direction of the caps
    corners = mesh.faces[proper].ravel()[np.concatenate([following(loop)[::-1] for loop in loops])]
    flat, loop_of = triangulate(mesh.vertices, np.array([len(loop) for loop in loops]), corners)
    kept = proper[~is_hole[region]]
    material = mesh.face_material
    if material is not None:
        owner = proper[np.array([loop[0] // 3 for loop in loops])]
        material = np.concatenate([material[kept], material[owner[loop_of]]])
    result = compacted(replace(mesh, faces=np.concatenate([mesh.faces[kept], flat]), face_material=material))
    note_damage(name_of(mesh, parts), find_damage(result))
    return result, int(is_hole.sum())


def _find_rims(points: Float64, faces: Int32, half_a: Index, half_b: Index, radius: float) -> list[_Rim]:
    """Find the round inner borders of flat sides, at most as wide as a hole to fill."""
    normals = unit_vectors(face_normals(points, faces))
    flat = np.einsum("ij,ij->i", normals[half_a // 3], normals[half_b // 3]) > np.cos(MAX_FLAT_TURN_RAD)
    is_border = np.ones(3 * len(faces), np.bool_)
    is_border[half_a[flat]] = is_border[half_b[flat]] = False
    _, fan = fans(faces, half_a[flat], half_b[flat])
    border, begin = boundary_loops(np.flatnonzero(is_border), fan)
    rims = []
    for loop in np.flatnonzero(np.diff(begin) >= MIN_CORNERS):
        half_edges = border[begin[loop] : begin[loop + 1]]
        rim = _fit_circle(points[faces.ravel()[half_edges]], normals[half_edges[0] // 3], half_edges, radius)
        if rim is not None:
            rims.append(rim)
    return rims


def _fit_circle(corners: Float64, axis: Float64, half_edges: Index, limit: float) -> _Rim | None:
    """Return a loop of corners (k, 3) as a rim, if it is a circle around a hole and not too large."""
    after = np.roll(corners, -1, axis=0)
    length = np.linalg.norm(after - corners, axis=1)
    center = length @ (corners + after) / (2 * length.sum())
    radii = np.linalg.norm(corners - center, axis=1)
    radius = float(radii.max())
    # a border around a hole goes clockwise, seen from outside
    area = -float(np.cross(corners - center, after - center).sum(axis=0) @ axis) / 2
    is_round = (
        radii.min() >= (1 - ROUNDNESS_RATIO) * radius
        and np.abs((corners - center) @ axis).max() <= ROUNDNESS_RATIO * radius
        and area >= MIN_CIRCLE_RATIO * np.pi * radius**2
    )
    # polygons inscribed in a circle of exactly the limit are also filled in spite of rounding
    return _Rim(half_edges, center, axis) if is_round and radius <= limit * (1 + 1e-6) else None


def _find_holes(
    points: Float64, faces: Int32, region: Int32, count: int, rims: list[_Rim], twin: IntIndex, radius: float
) -> NDArray[np.bool_]:
    """Return which regions between rims are holes: they enclose air, and are not wider than a hole."""
    volume = np.zeros(count)
    a, b, c = (points[faces[:, corner]] - points[0] for corner in range(3))
    volume += np.bincount(region, np.einsum("ij,ij->i", a, np.cross(b, c)), count)
    begin, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    narrow = np.zeros(count, np.bool_)
    for rim in rims:
        for side in (rim.half_edges, twin[rim.half_edges]):
            # a cap closes the region
            first, second = (points[ends[side]] - points[0] for ends in (end, begin))
            center = rim.center - points[0]
            volume[region[side[0] // 3]] += float((np.cross(first, second) @ center).sum())
    is_air = volume < 0
    members = np.argsort(region, kind="stable")
    starts = np.searchsorted(region[members], np.arange(count + 1))
    for rim in rims:
        for side in (rim.half_edges, twin[rim.half_edges]):
            at = region[side[0] // 3]
            if is_air[at] and not narrow[at]:
                corners = points[faces[members[starts[at] : starts[at + 1]]].ravel()] - rim.center
                along = np.outer(corners @ rim.axis, rim.axis)
                narrow[at] = np.linalg.norm(corners - along, axis=1).max() <= radius * (1 + ROUNDNESS_RATIO)
    return is_air & narrow


def _cap(rim: _Rim, twin: IntIndex, region: Int32, is_hole: NDArray[np.bool_]) -> Index:
    """Return the half-edges of the side to keep along a rim with a hole on its other side; empty without one."""
    sides = rim.half_edges, twin[rim.half_edges][::-1]
    inner, outer = (bool(is_hole[region[side[0] // 3]]) for side in sides)
    if inner == outer:
        return rim.half_edges[:0]
    return sides[1] if inner else sides[0]
