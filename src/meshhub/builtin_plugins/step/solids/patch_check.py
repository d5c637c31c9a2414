"""Checks that patches follow the mesh between its corners, and do not fold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.deviation import SAGITTA_RATIO, find_bulges, locate_triangles
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.surfaces.patches import PatchPool
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_SAGITTA_RATIO = 2.0
"""Distance of an edge's midpoint from a patch, over the sagitta of an arc with its turn; more is an overshoot."""

_MAX_FOLDED_RATIO = 1e-3
"""Share of the area of a patch whose triangles may be flipped in its parameters, because rounding flips slivers."""

_MIN_FACING_COS = np.cos(np.radians(75.0))
"""Cosine of the angle between a triangle and the patch over it."""

Mask = NDArray[np.bool_]


class _Triangles(NamedTuple):
    """Triangles on patches, in the order of these.

    pool:   the patches
    patch:  (m,) patch of each triangle
    corner: (m, 3) indices into the points
    cross:  (m, 3) normals, twice the area long
    owner:  (p,) patch of each point, ascending; points of several patches appear once for each
    point:  (p, 3) mm
    """

    pool: PatchPool
    patch: IntIndex
    corner: IntIndex
    cross: Float64
    owner: IntIndex
    point: Float64


def find_bad_patches(skin: Skin, regions: Regions) -> IntIndex:
    """Return the patches that leave the mesh between its corners, that fold, or that face another way than the mesh.

    Args:
        skin: Mesh, millimeters.
        regions: Regions with their surfaces.
    """
    numbers = np.flatnonzero(traits.IS_PATCH[regions.surfaces.kind])
    if len(numbers) == 0:
        return np.empty(0, np.intp)
    place = np.full(len(regions.surfaces), -1)
    place[numbers] = np.arange(len(numbers))
    patch = place[regions.region]
    faces = np.argsort(patch, kind="stable")[np.count_nonzero(patch < 0) :]
    patch = patch[faces]
    key, corner = np.unique(patch[:, None] * len(skin.points) + skin.faces[faces], return_inverse=True)
    owner, point = np.divmod(key, len(skin.points))
    pool = PatchPool(regions.surfaces.patch[numbers].tolist())
    triangles = _Triangles(pool, patch, corner.reshape(-1, 3), skin.cross[faces], owner, skin.points[point])
    sense = np.where(regions.outward[numbers], 1.0, -1.0)
    parameters = locate_triangles(pool, patch, pool.locate(owner, triangles.point)[triangles.corner])
    is_bad = _fold(triangles, parameters, sense)
    is_bad |= _overshoot(triangles, regions.limit[numbers]) | _bulge(triangles, parameters, regions.limit[numbers])
    return numbers[is_bad]


def _fold(triangles: _Triangles, corner: Float64, sense: Float64) -> Mask:
    """Return which patches are turned over within some triangles, or cover themselves.

    Args:
        triangles: Triangles on patches.
        corner: (m, 3, 2) parameters of their corners.
        sense: (k,) 1 if the normal of a patch is that of its triangles, -1 if it is the opposite.
    """
    pool, patch, count = triangles.pool, triangles.patch, len(sense)
    closed = pool.is_closed[patch]
    side = corner[:, 1:] - corner[:, :1]
    area = sense[patch] * (side[:, 0, 0] * side[:, 1, 1] - side[:, 0, 1] * side[:, 1, 0]) / 2
    allowed = _MAX_FOLDED_RATIO * sum_by_label(patch, np.abs(area), count)
    folds = sum_by_label(patch, np.maximum(-area, 0.0), count) > allowed
    folds |= sum_by_label(patch, area, count) > 1 + allowed
    size, turned = lengths(triangles.cross), np.zeros(len(patch), np.bool_)
    for weights in ((1 / 3, 1 / 3, 1 / 3), (0.5, 0.5, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5)):
        parameters = np.einsum("ijk,j->ik", corner, np.array(weights))
        parameters[closed, 0] %= 1.0
        _, u, v = pool.derive(patch, parameters, 1)
        facing = sense[patch] * np.einsum("ij,ij->i", normalize(np.cross(u, v)), normalize(triangles.cross))
        turned |= facing < _MIN_FACING_COS
    turned_size = sum_by_label(patch, np.where(turned, size, 0.0), count)
    result: Mask = folds | (turned_size > _MAX_FOLDED_RATIO * sum_by_label(patch, size, count))
    return result


def _overshoot(triangles: _Triangles, limit: Float64) -> Mask:
    """Return which patches are farther from the middles of edges and triangles than the turn there explains.

    Args:
        triangles: Triangles on patches.
        limit: (k,) millimeters that a point may lie off its patch.
    """
    pool, patch, corner, point = triangles.pool, triangles.patch, triangles.corner, triangles.point
    begin, end = corner.ravel(), corner[:, [1, 2, 0]].ravel()
    cross = np.repeat(triangles.cross, 3, axis=0)
    mean = normalize(np.stack([sum_by_label(begin, column, len(point)) for column in cross.T], axis=1))
    spread = np.zeros(len(point))
    cosine = np.einsum("ij,ij->i", mean[begin], normalize(cross))
    np.maximum.at(spread, begin, np.arccos(np.clip(cosine, -1, 1)))
    turn = np.arccos(np.clip(np.einsum("ij,ij->i", mean[begin], mean[end]), -1, 1)) + spread[begin] + spread[end]
    sagitta = lengths(point[end] - point[begin]) * turn / 8
    edge_patch = np.repeat(patch, 3)
    gap = np.abs(pool.relate(edge_patch, (point[begin] + point[end]) / 2).distance)
    middle_gap = np.abs(pool.relate(patch, point[corner].mean(axis=1)).distance)
    is_off = gap > _MAX_SAGITTA_RATIO * sagitta + 2 * limit[edge_patch]
    is_off = is_off.reshape(-1, 3).any(axis=1)
    is_off |= middle_gap > _MAX_SAGITTA_RATIO * sagitta.reshape(-1, 3).max(axis=1) + 2 * limit[patch]
    result: Mask = np.bincount(patch[is_off], minlength=len(limit)) > 0
    return result


def _bulge(triangles: _Triangles, parameters: Float64, limit: Float64) -> Mask:
    """Return which patches are farther from a triangle than an arc over its longest edge; noise turns facets as well.

    Args:
        triangles: Triangles on patches.
        parameters: (m, 3, 2) parameters of their corners.
        limit: (k,) millimeters that a point may lie off its patch.
    """
    position = triangles.point[triangles.corner]
    longest = np.max([lengths(position[:, k] - position[:, k - 1]) for k in range(3)], axis=0)
    allowed = SAGITTA_RATIO * longest + limit[triangles.patch]
    is_off = find_bulges(triangles.pool, triangles.patch, parameters, position, allowed)
    result: Mask = np.bincount(triangles.patch[is_off], minlength=len(limit)) > 0
    return result
