"""Corners that a mesh boolean made on chords of round walls: they are moved onto all surfaces that meet there.

A corner moves by at most a multiple of its distance from these surfaces, because the mesh is not more exact anywhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions, region_areas
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs, lengths, sort_unique
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray
from meshhub.builtin_plugins.step.surfaces.surfaces import (
    MAX_NEWTON_STEPS,
    MIN_SQUARED_SINE,
    NEWTON_PRECISION_RATIO,
    distances,
    gradients,
)
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_MOVE_RATIO = 20.0
"""Way of a corner over its distance from its surfaces; surfaces that meet at a flat angle need long ways."""

_MAX_CORNER_DEPTH_RATIO = 1.3
"""Depth of a cut corner over that of the deepest facet that was not cut.

It was at most 1.02 on three cut tori, and 1.65 where two cones counted as cut from a sphere. Cones are deeper at their
wide ends."""

Mask = NDArray[np.bool_]


def find_deep_corners(skin: Skin, regions: Regions, cut: Mask) -> IntIndex:
    """Find the regions with cut triangles whose corners lie deeper than a cut of the other facets explains.

    Such triangles belong to another surface. Surfaces all of whose triangles were cut are not tested.

    Args:
        skin: Mesh, before corners are moved.
        regions: Regions with the cut triangles.
        cut: (m,) triangles that were cut.
    Returns:
        Ascending region indices.
    """
    face = np.flatnonzero(np.isin(regions.segment[regions.region], regions.segment[regions.region[cut]]))
    face = face[regions.curved[regions.region[face]]]
    if len(face) == 0:
        return np.empty(0, np.intp)
    region = regions.region[face]
    segment, surfaces = regions.segment[region], regions.surfaces.take(region)
    corners = skin.points[skin.faces[face]]
    corner_depth = np.max([np.abs(distances(surfaces, corners[:, k])) for k in range(3)], axis=0)
    is_whole = corner_depth <= regions.limit[region]
    depth = np.zeros(segment.max() + 1)
    # on the inner half of a torus, edges are deeper than the middles of triangles
    for weights in ((0.5, 0.5, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (1 / 3, 1 / 3, 1 / 3)):
        point = np.einsum("ijk,j->ik", corners[is_whole], np.array(weights))
        np.maximum.at(depth, segment[is_whole], np.abs(distances(surfaces.take(np.flatnonzero(is_whole)), point)))
    limit = _MAX_CORNER_DEPTH_RATIO * depth[segment]
    is_deep = cut[face] & ~is_whole & (limit > 0) & (corner_depth > limit)
    return sort_unique(region[is_deep].astype(np.intp))


def move_cut_corners(skin: Skin, regions: Regions, cut: Mask) -> tuple[Skin, IntIndex]:
    """Move the corners of cut triangles onto all surfaces that meet there.

    Args:
        skin: Mesh.
        regions: Regions with the cut triangles.
        cut: (m,) triangles that were cut.
    Returns:
        The changed skin, and the smaller half of the curved regions with corners that cannot be moved.
    """
    is_cut_corner = np.zeros(len(skin.points), np.bool_)
    is_cut_corner[skin.faces[cut]] = True
    region, point = distinct_pairs(np.repeat(regions.region, 3), skin.faces.ravel(), len(skin.points))
    gap, _ = gradients(regions.surfaces.take(region), skin.points[point])
    is_held = regions.curved[region] & is_cut_corner[point]
    if not (is_held & (np.abs(gap) > regions.limit[region])).any():
        return skin, np.empty(0, np.intp)
    # also move the corners that are off by rounding alone: a curve through both kinds would oscillate
    moved = sort_unique(point[is_held])
    number = np.full(len(skin.points), -1, np.intp)
    number[moved] = np.arange(len(moved))
    is_near = number[point] >= 0
    owner, region = number[point[is_near]], region[is_near]
    order = np.argsort(owner, kind="stable")
    owner, region = owner[order], region[order]
    begin = np.searchsorted(owner, np.arange(len(moved)))
    surfaces, limit = regions.surfaces.take(region), regions.limit[region]
    positions = _project_onto_all(surfaces, skin.points[moved], owner, begin)
    gap = np.abs(gap[is_near][order])
    is_off = gap > limit
    off_before = np.maximum.reduceat(np.maximum(gap, limit), begin)
    off_after = np.maximum.reduceat(np.abs(gradients(surfaces, positions[owner])[0]) / limit, begin)
    way = lengths(positions - skin.points[moved])
    can_move = (off_after <= 1) & (way <= _MAX_MOVE_RATIO * off_before)
    points = skin.points.copy()
    points[moved[can_move]] = positions[can_move]
    a, b, c = points[skin.faces].transpose(1, 0, 2)
    changed = replace(skin, points=points, cross=np.cross(b - a, c - a))
    folded = number[skin.faces[_find_folded(skin, changed, regions)]]
    is_folded = np.zeros(len(moved), np.bool_)
    is_folded[folded[folded >= 0]] = True
    # a surface that already holds the corner is not at fault if the corner cannot be moved
    bad = sort_unique(region[(is_off & ~can_move[owner]) | is_folded[owner]])
    bad = bad[regions.curved[bad]]
    # their neighbors may be at fault
    smaller = np.argsort(region_areas(skin, regions)[bad], kind="stable")[: (len(bad) + 1) // 2]
    return changed, bad[smaller]


def _project_onto_all(
    surfaces: SurfaceArray,
    points: Float64,
    owner: IntIndex,
    begin: IntIndex,
) -> Float64:
    """Move each point to the nearest common point of its surfaces, by Newton's method.

    Args:
        surfaces: (n,) surfaces, those of one point adjacent.
        points: (q, 3) points.
        owner: (n,) point of each surface, ascending.
        begin: (q,) position where the surfaces of each point begin.
    Returns:
        (q, 3) moved points; the caller checks their distances, because the surfaces need not meet.
    """
    if len(points) == 0:
        return points
    precision = float(np.abs(points).max()) * NEWTON_PRECISION_RATIO
    for _ in range(MAX_NEWTON_STEPS):
        gap, normal = gradients(surfaces, points[owner])
        matrix = np.add.reduceat(normal[:, :, None] * normal[:, None, :], begin)
        right = np.add.reduceat(normal * gap[:, None], begin)
        inverse = np.linalg.pinv(np.nan_to_num(matrix), rcond=MIN_SQUARED_SINE, hermitian=True)
        step = np.einsum("ijk,ik->ij", inverse, right)
        points = points - step
        if float(np.abs(step).max()) <= precision:
            break
    return points


def _find_folded(before: Skin, after: Skin, regions: Regions) -> Mask:
    """Return the mask (m,) of flat triangles that turned over, because the outline of their region crosses itself.

    Planes beside curved regions are left out. Needles that reach from a far corner to a moved one turn over although
    the outline stays simple, and the model is checked for outlines with arcs that cross.
    """
    corner = after.points[after.faces]
    _, normal = gradients(regions.surfaces.take(regions.region), before.points[before.faces].mean(axis=1))
    area_before, area_after = (np.einsum("ij,ij->i", normal, skin.cross) for skin in (before, after))
    longest = np.max([lengths(corner[:, k] - corner[:, k - 1]) for k in range(3)], axis=0)
    is_folded: Mask = np.sign(area_before) * area_after < -regions.limit[regions.region] * longest
    half = np.flatnonzero(before.twin >= 0)
    is_beside = np.zeros(len(regions.surfaces), np.bool_)
    is_beside[regions.region[half // 3][regions.curved[regions.region[before.twin[half] // 3]]]] = True
    return is_folded & ~(regions.curved | is_beside)[regions.region]
