"""Check that the facets themselves are round, and not only that their corners lie on a curved surface.

The corners of three flats of equal width always lie on a cylinder. The flats may still be what the designer drew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.bodies import shell_volumes
from meshhub.builtin_plugins.step.facets.facet_graph import MAX_SMOOTH_TURN_RAD
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.deviation import measure_gains
from meshhub.builtin_plugins.step.recognition.fit_trials import EVEN_RATIO, MAX_DEEPER_RATIO, MIN_FACING_COSINE
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import TINY, distinct_pairs, lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.surfaces.surfaces import distances, gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MANY_FLATS_COUNT = 8
"""Flats that count as round without other evidence, because designers draw chamfers and bends with fewer."""

_SAME_DIRECTION_RATIO = 1 / 8
"""Angle over the turn of a surface below which two directions count as equal: two facets of one flat, or a tangent."""

_MAX_SAME_DIRECTION_RAD = np.radians(1.0)
"""Radians; limit of this angle on coarse surfaces."""

_QUANTILE = 0.9
"""Part of the turns and sagittas of a surface that are no larger than its own; irregular triangles have some more."""

_MAX_UNEXPLAINED_RATIO = 1.5
"""Difference between the gain of a surface and the gain that its facets explain, over the latter; a border hides half
a turn."""

_MAX_PATCH_GAIN_RATIO = 1e-4
"""Share of the volume of a shell that the facets of one patch need not explain."""

Mask = NDArray[np.bool_]


class _Bends(NamedTuple):
    """Turns between the flats of each recognized surface.

    flats:      (s,) number of facets that differ in direction; `_MANY_FLATS_COUNT` stands for more
    turn:       (s,) radians between neighboring facets
    sagitta:    (s,) millimeters between facets and surface
    """

    flats: IntIndex
    turn: Float64
    sagitta: Float64


def find_unfounded(skin: Skin, facet: NDArray[np.int32], regions: Regions) -> IntIndex:
    """Find the curved regions that their own facets do not explain.

    A surface may gain the volume and the depth of arcs with the turns of its facets. A few flats are round only if they
    are tangent to the faces at both ends, or no coarser than the round faces of the mesh.

    Args:
        skin: Mesh.
        facet: (m,) planar facet of each triangle.
        regions: Regions with their surfaces.
    Returns:
        Ascending region indices.
    """
    if not regions.curved.any():
        return np.empty(0, np.intp)
    is_unfounded = _gain_too_much(skin, regions)
    is_unfounded |= _find_angular(skin, facet, regions)[regions.segment] & regions.curved
    return np.flatnonzero(is_unfounded)


def _gain_too_much(skin: Skin, regions: Regions) -> Mask:
    """Return which curved regions (r,) differ in volume or depth from arcs with the turns of their facets.

    The volume between a triangle and the surface through its corners is a 24th of its area times the sum of e · Δn over
    its edges e, with the change Δn of the normal along them: 2/3 of the sagitta times the area for flats.
    """
    region, count = regions.region, len(regions.surfaces)
    curved = np.flatnonzero(regions.curved[region])
    owner, corner = region[curved], skin.points[skin.faces[curved]]
    surfaces = regions.surfaces.take(owner)
    gap, direction = gradients(surfaces, corner.mean(axis=1))
    facing = np.einsum("ij,ij->i", direction, normalize(skin.cross[curved])) * np.where(regions.outward[owner], 1, -1)
    normal = _corner_normals(skin, regions, curved, facing >= MIN_FACING_COSINE)
    bend = np.zeros(len(curved))
    for k in range(3):
        bend += np.einsum("ij,ij->i", corner[:, k] - corner[:, k - 1], normal[:, k] - normal[:, k - 1])
    area = lengths(skin.cross[curved]) / 2
    explained = sum_by_label(owner, area * bend / 24, count)
    allowed = _MAX_UNEXPLAINED_RATIO * sum_by_label(owner, area * np.abs(bend) / 24, count)
    allowed += regions.limit * sum_by_label(owner, area, count)
    gain = sum_by_label(owner, measure_gains(skin, curved, surfaces), count)
    depth, sagitta = np.zeros(count), np.zeros(count)
    np.maximum.at(depth, owner, np.abs(gap))
    np.maximum.at(sagitta, owner, np.abs(bend) / 16)
    is_shallow = depth <= MAX_DEEPER_RATIO * sagitta + regions.limit
    # the twist of a strip has no bend at its corners; `patch_check` compares the depth of patches
    is_patch = traits.IS_PATCH[regions.surfaces.kind]
    volume = np.zeros(count)
    volume[region] = np.abs(shell_volumes(skin))[skin.shell]
    allowed += np.where(is_patch, _MAX_PATCH_GAIN_RATIO * volume, 0.0)
    # false for NaN
    is_explained = (np.abs(gain - explained) <= allowed) & (is_shallow | is_patch)
    result: Mask = ~is_explained & regions.curved
    return result


def _corner_normals(skin: Skin, regions: Regions, triangles: IntIndex, is_steady: Mask) -> Float64:
    """Return the mean normal at each corner of (n,) triangles (n, 3, 3), over the steady triangles of the same region.

    All corners of a narrow patch are on its border, which hides its bend across: there, faces tangent to it count, too.

    Source:
        Max, "Weights for computing vertex normals from facet normals", Journal of Graphics Tools 4, 1999: exact on
        spheres, and between flats of unequal width.
    """
    count = len(skin.points)
    corner = (3 * triangles[:, None] + np.arange(3)).ravel()
    owner = regions.region[corner // 3].astype(np.int64)
    keys, place = np.unique(owner * count + skin.begin[corner], return_inverse=True)
    patch, beside = _find_tangent_corners(skin, regions)
    is_used = np.repeat(is_steady, 3)
    half, owner = np.concatenate([corner[is_used], beside]), np.concatenate([owner[is_used], patch])
    point, before = skin.points[skin.begin[half]], skin.points[skin.begin[half - half % 3 + (half + 2) % 3]]
    square = lengths(skin.points[skin.end[half]] - point) * lengths(before - point)
    weighted = skin.cross[half // 3] / np.maximum(square**2, TINY)[:, None]
    key = np.searchsorted(keys, owner * count + skin.begin[half])
    total = np.stack([sum_by_label(key, column, len(keys)) for column in weighted.T], axis=1)
    return normalize(total)[place.reshape(-1)].reshape(-1, 3, 3)


def _find_tangent_corners(skin: Skin, regions: Regions) -> tuple[IntIndex, IntIndex]:
    """Return the corners beside patches, of triangles whose face is tangent to the patch: patches, and half-edges."""
    half = np.flatnonzero(skin.twin >= 0)
    one, other = regions.region[half // 3], regions.region[skin.twin[half] // 3]
    half = half[(one != other) & traits.IS_PATCH[regions.surfaces.kind[one]]]
    normal, beside = _border_normals(skin, regions, half)
    half = half[np.einsum("ij,ij->i", normal, beside) >= np.cos(MAX_SMOOTH_TURN_RAD)]
    twin = skin.twin[half]
    owner: IntIndex = np.tile(regions.region[half // 3], 2).astype(np.intp)
    return owner, np.concatenate([twin, twin - twin % 3 + (twin + 1) % 3])


def _border_normals(skin: Skin, regions: Regions, half: IntIndex) -> tuple[Float64, Float64]:
    """Return the outward normals of the surfaces on both sides of half-edges; (n, 3) each."""
    middle = (skin.points[skin.begin[half]] + skin.points[skin.end[half]]) / 2
    sides = regions.region[half // 3], regions.region[skin.twin[half] // 3]
    normal, beside = (
        gradients(regions.surfaces.take(side), middle)[1] * np.where(regions.outward[side], 1.0, -1.0)[:, None]
        for side in sides
    )
    return normal, beside


def _find_angular(skin: Skin, facet: NDArray[np.int32], regions: Regions) -> Mask:
    """Return which recognized surfaces (s,) have only a few flats, without evidence that these are round."""
    bends = _measure_bends(skin, facet, regions)
    is_many = bends.flats >= _MANY_FLATS_COUNT
    is_round = _continue_round(skin, regions, is_many, bends.turn)
    turn, sagitta = (column.max(where=is_round, initial=0.0) for column in (bends.turn, bends.sagitta))
    is_fine = (bends.turn <= EVEN_RATIO * turn) | (bends.sagitta <= EVEN_RATIO * sagitta)
    result: Mask = ~is_round & ~is_fine
    return result


def _measure_bends(skin: Skin, facet: NDArray[np.int32], regions: Regions) -> _Bends:
    """Measure how the facets of each recognized surface turn."""
    region, segment = regions.region, regions.segment
    count = int(segment.max()) + 1
    owner, first = _list_facets(facet, segment[region])
    normal = normalize(
        np.stack([sum_by_label(facet, skin.cross[:, k], int(facet.max()) + 1) for k in range(3)], axis=1)
    )
    half = np.flatnonzero((skin.twin >= 0) & (segment[region[np.arange(len(skin.twin)) // 3]] >= 0))
    one, other = half // 3, skin.twin[half] // 3
    is_inner = (segment[region[one]] == segment[region[other]]) & (facet[one] != facet[other])
    one, other = one[is_inner], other[is_inner]
    cosine = np.einsum("ij,ij->i", normal[facet[one]], normal[facet[other]])
    turn = _quantiles(segment[region[one]], np.arccos(np.clip(cosine, -1, 1)), count)
    curved = np.flatnonzero(regions.curved[region])
    middle = skin.points[skin.faces[curved]].mean(axis=1)
    depth = np.abs(distances(regions.surfaces.take(region[curved]), middle))
    flats = _count_flats(owner, normal[first], turn)
    return _Bends(flats, turn, _quantiles(segment[region[curved]], depth, count))


def _list_facets(facet: NDArray[np.int32], segment: IntIndex) -> tuple[IntIndex, IntIndex]:
    """Return the pairs of a recognized surface and a facet of it, in ascending order."""
    is_mine = segment >= 0
    return distinct_pairs(segment[is_mine], facet[is_mine], int(facet.max()) + 1)


def _quantiles(label: IntIndex, values: Float64, count: int) -> Float64:
    """Return the (count,) quantiles of the values of each label; 0 without values."""
    order = np.lexsort((values, label))
    size = np.bincount(label, minlength=count)
    place = np.cumsum(size) - size + (_QUANTILE * np.maximum(size - 1, 0)).astype(np.intp)
    result = np.zeros(count)
    result[size > 0] = values[order[place[size > 0]]]
    return result


def _count_flats(owner: IntIndex, normal: Float64, turn: Float64) -> IntIndex:
    """Count the flats of each surface (s,), up to `_MANY_FLATS_COUNT`; rounding may split a flat into several facets.

    Args:
        owner: (k,) surface of each facet, ascending.
        normal: (k, 3) unit normals.
        turn: (s,) radians between neighboring facets.
    """
    begin = np.searchsorted(owner, np.arange(len(turn) + 1))
    limit = np.cos(np.minimum(_MAX_SAME_DIRECTION_RAD, _SAME_DIRECTION_RATIO * turn))
    flats = np.zeros(len(turn), np.intp)
    for surface in range(len(turn)):
        rest = normal[begin[surface] : begin[surface + 1]]
        while len(rest) and flats[surface] < _MANY_FLATS_COUNT:
            rest = rest[rest @ rest[0] < limit[surface]]
            flats[surface] += 1
    return flats


def _continue_round(skin: Skin, regions: Regions, is_many: Mask, turn: Float64) -> Mask:
    """Return which surfaces (s,) have many flats, or are tangent at both ends to planes or to such surfaces.

    A fillet is tangent to the faces beside it. The flats of a bend turn as much at its ends as within it: there, the
    cylinder through their corners is off by half a turn.
    """
    region, segment = regions.region, regions.segment
    half = np.flatnonzero(skin.twin >= 0)
    one, other = region[half // 3], region[skin.twin[half] // 3]
    is_border = (segment[one] >= 0) & (segment[one] != segment[other])
    half, one, other = half[is_border], one[is_border], other[is_border]
    normal, beside = _border_normals(skin, regions, half)
    touches = np.einsum("ij,ij->i", normal, beside) >= np.cos(_SAME_DIRECTION_RATIO * turn[segment[one]])
    normal, owner, neighbor = normal[touches], segment[one[touches]], segment[other[touches]]
    is_round = is_many
    while True:
        is_certain = (neighbor < 0) | is_round[neighbor]
        grown = is_many | (_measure_spread(owner[is_certain], normal[is_certain], len(turn)) >= 2 * turn)
        if np.array_equal(grown, is_round):
            return is_round
        is_round = grown


def _measure_spread(label: IntIndex, directions: Float64, count: int) -> Float64:
    """Return the spread of the unit vectors of each label about their mean (count,), radians; -1 without any."""
    mean = normalize(np.stack([sum_by_label(label, column, count) for column in directions.T], axis=1))
    nearest = np.full(count, 2.0)
    np.minimum.at(nearest, label, np.einsum("ij,ij->i", directions, mean[label]))
    return np.where(nearest > 1.5, -1.0, 2 * np.arccos(np.clip(nearest, -1, 1)))
