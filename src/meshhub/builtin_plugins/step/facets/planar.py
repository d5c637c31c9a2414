"""Merging of coplanar triangles into regions.

The first pass joins neighbors whose opposite corners lie on each other's planes, and keeps the regions that are flat as
a whole. The second pass works on regions: each one merges into the best-conditioned neighbor whose plane holds all its
points, until nothing changes. It places slivers, whose own normals are noise.

Rejected: a test of pairwise normals alone. Rounding to float32 turns the normal of a thin triangle by degrees.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.surfaces.arrays import TINY, distinct_pairs, lengths, normalize, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

ROUNDING_RATIO = 5e-7
"""Part of the largest |coordinate| that rounding to float32 (6e-8), and computation with rounded numbers, explains.

From the largest coordinate, 20 of 20 rotated float32 parts merged; from the extent of the part, 6 of 20."""

SLIVER_RATIO = 20.0
"""Height in tolerances below which the normal of a triangle or region is noise: rounding turns it by up to 3°. As many
tolerances may a region deviate from the uncertain plane of a narrow neighbor."""

_STEPS_MM = (1e-3, 1e-4)
"""Millimeters to which programs round coordinates in text."""

_SIGNIFICANT_DIGITS = 6
"""Digits that `%g` in C and streams in C++ write."""

_STEP_RATIO = 1.2
"""Tolerance over the step of the coordinates. Of nine CAD parts with four decimals, five had their surfaces with 0.3,
and all with 1.2."""

FLOAT32_HALF_UNIT_RATIO = 2.0**-24
"""Largest error of rounding to float32 over the number."""

_MIN_ROUNDED_COUNT = 50
"""Coordinates that show how they were rounded; fewer may be those of a design."""

_MAX_SAMPLE_COUNT = 2000
"""Points that are examined."""

_MAX_STEP_RATIO = 1e-3
"""Step over the extent of the mesh, above which the surfaces are rounded away."""

_MIN_ODD_RATIO = 0.5
"""Share of coordinates that are no multiples of ten steps. Of rounded ones, nine of ten are none; of a design, few."""

_MAX_REACH_RATIO = 20.0
"""Largest |coordinate| over the extent that counts where coordinates are not float32 numbers."""

MAX_DEVIATION_RATIO = 4.0
"""Distance in tolerances up to which all points of a region lie on its plane."""

_MAX_ROUNDS = 40
"""Rounds of merging; bounds the time. Each round merges chains of regions of any length."""

_LEVERAGE_RATIO = 0.1
"""Part of a tolerance by which the plane of a region is uncertain at a distance of its own height."""

_MIN_FACING_COSINE = 0.7
"""Cosine of 45°; regions that turn by more are two sides of a thin wall, not one plane."""

Labels = NDArray[np.int32]


def estimate_tolerance(points: Float64) -> float:
    """Estimate how far rounding moves a point off its plane.

    Rounding depends on the position of a part, not on its size, so the largest coordinate counts. Coordinates that are
    not float32 numbers were rounded in another frame, for example before a small part was placed in a large assembly.
    There, the extent of the part bounds the tolerance. Text has coordinates with fewer digits than float32.

    Args:
        points: (p, 3) millimeters.
    Returns:
        Millimeters.
    """
    reach = float(np.abs(points).max(initial=0.0))
    if len(points) and not np.array_equal(points, points.astype(np.float32)):
        reach = min(reach, _MAX_REACH_RATIO * float(np.ptp(points, axis=0).max()))
    return max(reach * ROUNDING_RATIO, _STEP_RATIO * _find_decimal_step(points), 1e-9)


def _find_decimal_step(points: Float64) -> float:
    """Return the step (mm) of coordinates that were rounded to some decimals or digits; 0 if they were not."""
    sample = points[:: 1 + len(points) // _MAX_SAMPLE_COUNT]
    values = np.abs(sample[np.abs(sample) > _STEPS_MM[0]])
    if len(values) < _MIN_ROUNDED_COUNT:
        return 0.0
    max_step = _MAX_STEP_RATIO * float(np.ptp(points, axis=0).max())
    digits = 10.0 ** (np.floor(np.log10(values)) - _SIGNIFICANT_DIGITS + 1)
    for steps in (*(np.full(len(values), step) for step in _STEPS_MM), digits):
        is_coarsest = steps == steps.max()
        odd = ~_are_multiples(values[is_coarsest], 10 * steps[is_coarsest])
        is_design = np.count_nonzero(odd) < max(_MIN_ROUNDED_COUNT, _MIN_ODD_RATIO * len(odd))
        if not is_design and steps.max() <= max_step and _are_multiples(values, steps).all():
            return float(steps.max())
    return 0.0


def _are_multiples(values: Float64, steps: Float64) -> NDArray[np.bool_]:
    """Return which values are multiples of their steps, as float64 or float32 numbers; none if these are too coarse."""
    count = values / steps
    rounding = 1e-6 + FLOAT32_HALF_UNIT_RATIO * count
    result: NDArray[np.bool_] = np.abs(count - np.round(count)) < np.where(rounding < 0.1, rounding, 0.0)
    return result


class Planes(NamedTuple):
    """Planes of regions; millimeters, in the frame of the mesh.

    normal:    (r, 3) unit vectors, from the vector area
    center:    (r, 3) area-weighted mean of the faces, moved along the normal so that the plane keeps their volume
    height:    (r,) area over reach; the larger it is, the better the normal is conditioned
    reach:     (r,) distance of the farthest point from the center
    deviation: (r,) distance of the farthest point from the plane
    moments:   (r, 3, 3) mean of (point - center) (point - center)ᵀ
    """

    normal: Float64
    center: Float64
    height: Float64
    reach: Float64
    deviation: Float64
    moments: Float64


def fit_planes(skin: Skin, region: Labels, count: int) -> Planes:
    """Fit a plane to each region.

    Args:
        skin: Mesh.
        region: (m,) region of each face, 0…count-1; each region has a face.
        count: Number of regions.
    """
    area = lengths(skin.cross)

    def total(weights: Float64) -> Float64:
        return sum_by_label(region, weights, count)

    corner = skin.points[skin.faces]
    weight = area + TINY
    mass = total(weight)
    middle = corner.mean(axis=1)
    center = np.stack([total(weight * middle[:, axis]) for axis in range(3)], axis=1) / mass[:, None]
    vector = np.stack([total(skin.cross[:, axis]) for axis in range(3)], axis=1)
    normal = normalize(vector)
    order = np.argsort(region, kind="stable")
    begin = np.searchsorted(region[order], np.arange(count))
    offset = corner - center[region][:, None, :]
    height = np.einsum("ijk,ik->ij", offset, normal[region])
    # lift the plane until the flux of the position through it equals the flux through the triangles
    flux = total(np.einsum("ij,ij->i", middle - center[region], skin.cross))
    max_lift = np.maximum.reduceat(np.abs(height).max(axis=1)[order], begin)
    size = lengths(vector)
    lift = np.clip(np.divide(flux, size, out=np.zeros(count), where=size > 0), -max_lift, max_lift)
    center += normal * lift[:, None]
    offset -= (normal * lift[:, None])[region][:, None, :]
    face_reach = np.sqrt(np.einsum("ijk,ijk->ij", offset, offset).max(axis=1))
    face_deviation = np.abs(height - lift[region][:, None]).max(axis=1)
    reach, deviation = (np.maximum.reduceat(values[order], begin) for values in (face_reach, face_deviation))
    faces = np.bincount(region, minlength=count)
    moments = np.empty((count, 3, 3))
    for row in range(3):
        for column in range(row, 3):
            mean = total(np.einsum("ij,ij->i", offset[:, :, row], offset[:, :, column])) / (3 * faces)
            moments[:, row, column] = moments[:, column, row] = mean
    return Planes(normal, center, total(area) / 2 / np.maximum(reach, TINY), reach, deviation, moments)


def number_labels(labels: NDArray[np.integer[Any]]) -> tuple[Labels, int]:
    """Renumber non-negative labels to 0…count-1, in ascending order; return them and the count."""
    is_used = np.zeros(int(labels.max(initial=-1)) + 1, np.bool_)
    is_used[labels] = True
    number = np.cumsum(is_used, dtype=np.int32)
    result: Labels = number[labels] - np.int32(1)
    return result, int(number[-1]) if len(number) else 0


def merge_coplanar_faces(skin: Skin, tolerance: float) -> tuple[Labels, int]:
    """Merge connected coplanar faces of one color into regions.

    Args:
        skin: Mesh.
        tolerance: Millimeters off its plane that rounding explains; the points of a region stay within four of it.
    Returns:
        (m,) region of each face, and the number of regions.
    """
    one, other = _neighbors(skin)
    host = _find_hosts(skin, one, other, tolerance)
    region, count = _merge_pairs(skin, one, other, tolerance)
    region, count = number_labels(region[host])
    return _merge_regions(skin, (region, count), host[one // 3], host[other // 3], tolerance)


def split_regions(skin: Skin, region: Labels, split: IntIndex, tolerance: float) -> tuple[Labels, int]:
    """Split some regions into their triangles; needles stay with their neighbors.

    Args:
        skin: Mesh.
        region: (m,) region of each face.
        split: Regions to split.
        tolerance: As for `merge_coplanar_faces`.
    Returns:
        (m,) region of each face, and the number of regions.
    """
    host = _find_hosts(skin, *_neighbors(skin), tolerance)
    return number_labels(np.where(np.isin(region, split), region.max() + 1 + host, region))


def _neighbors(skin: Skin) -> tuple[IntIndex, IntIndex]:
    """Return the pairs of half-edges with faces of one color on both sides."""
    one = np.flatnonzero(np.arange(len(skin.twin)) < skin.twin)
    other = skin.twin[one]
    is_same = skin.paint[one // 3] == skin.paint[other // 3]
    return one[is_same], other[is_same]


def _find_hosts(skin: Skin, one: IntIndex, other: IntIndex, tolerance: float) -> IntIndex:
    """Return the face that each face (m,) belongs to: itself, or, for a needle, the face across its longest edge.

    A needle, a triangle without height, only adds a corner to the longest edge of its host. With a face beside one of
    its shorter edges, it would form a spike, or connect that face to another one across a gap.
    """
    count = len(skin.faces)
    corner = skin.points[skin.faces]
    side = np.stack([lengths(corner[:, (k + 1) % 3] - corner[:, k]) for k in range(3)], axis=1)
    longest_side = side.max(axis=1)
    # Among sides of equal length take the edge with the highest number, on both faces: then chains of hosts lead to
    # ever longer edges, and never back.
    edge = np.arange(3 * count)
    edge[other] = one
    longest = np.where(side == longest_side[:, None], edge.reshape(-1, 3), -1).argmax(axis=1)
    is_needle = lengths(skin.cross) <= MAX_DEVIATION_RATIO * tolerance * longest_side
    across = np.full(3 * count, -1, np.intp)
    across[one], across[other] = other // 3, one // 3
    itself = np.arange(count)
    host = np.where(is_needle, across[3 * itself + longest], itself)
    host = np.where(host >= 0, host, itself)
    # two needles that share their longest edge have no host but each other
    is_mutual = (host[host] == itself) & (host > itself)
    host[is_mutual] = itself[is_mutual]
    return _last_of_chains(host)


def _last_of_chains(target: IntIndex) -> IntIndex:
    """Follow links without cycles to their ends, by pointer doubling."""
    while True:
        further = target[target]
        if np.array_equal(further, target):
            return target
        target = further


def _merge_pairs(skin: Skin, one: IntIndex, other: IntIndex, tolerance: float) -> tuple[Labels, int]:
    """Merge neighbors whose opposite corners lie on each other's planes; split the regions that are not flat."""
    normal = normalize(skin.cross)
    corner = skin.points[skin.faces]
    longest = np.sqrt(np.max([lengths(corner[:, k] - corner[:, k - 1]) ** 2 for k in range(3)], axis=0))
    has_normal = lengths(skin.cross) > SLIVER_RATIO * tolerance * longest
    left, right = one // 3, other // 3
    begin = skin.begin
    opposite_right = 3 * (other // 3) + (other % 3 + 2) % 3
    opposite_left = 3 * (one // 3) + (one % 3 + 2) % 3
    base = skin.points[begin[one]]
    off_left = np.abs(np.einsum("ij,ij->i", skin.points[begin[opposite_right]] - base, normal[left]))
    off_right = np.abs(np.einsum("ij,ij->i", skin.points[begin[opposite_left]] - base, normal[right]))
    is_facing = np.einsum("ij,ij->i", normal[left], normal[right]) > 0
    is_flat = is_facing & has_normal[left] & has_normal[right] & (np.maximum(off_left, off_right) <= tolerance)
    count, region = components(len(skin.faces), left[is_flat], right[is_flat])
    is_bad = fit_planes(skin, region, count).deviation > MAX_DEVIATION_RATIO * tolerance
    if is_bad.any():
        region = np.where(is_bad[region], count + np.arange(len(region)), region)
        region, count = number_labels(region)
    return region, count


def _merge_regions(
    skin: Skin, regions: tuple[Labels, int], left: IntIndex, right: IntIndex, tolerance: float
) -> tuple[Labels, int]:
    """Merge regions into better-conditioned neighbors until nothing changes.

    Regions whose merge gave no plane are careful from then on: they wait until their target does not merge itself.
    If that fails, too, they are frozen, and do not merge again.

    Args:
        skin: Mesh.
        regions: (m,) region of each face, and the number of regions.
        left: (n,) faces.
        right: (n,) neighbors of `left`.
        tolerance: Millimeters.
    Returns:
        (m,) region of each face, and the number of regions.
    """
    region, count = regions
    is_careful = np.zeros(count, np.bool_)
    is_frozen = np.zeros(count, np.bool_)
    planes = fit_planes(skin, region, count)
    for _ in range(_MAX_ROUNDS):
        itself = np.arange(count)
        target = _choose_targets(planes, region[left], region[right], tolerance, is_frozen)
        merges = target != itself
        target = np.where(is_careful & merges & merges[target], itself, target)
        if not (target != itself).any():
            break
        root = _last_of_chains(target)
        group, groups = number_labels(root)
        merged = fit_planes(skin, group[region], groups)
        is_bad = merged.deviation > MAX_DEVIATION_RATIO * tolerance
        is_bad &= np.bincount(group, minlength=groups) > 1
        if is_bad.any():
            is_undone = is_bad[group]
            is_frozen = is_frozen | (is_undone & is_careful)
            is_careful = is_careful | is_undone
            root = np.where(is_undone, itself, root)
            group, groups = number_labels(root)
            merged = fit_planes(skin, group[region], groups)
        is_careful = _any_by_label(group, is_careful, groups)
        is_frozen = _any_by_label(group, is_frozen & (root == itself), groups)
        region, count, planes = group[region], groups, merged
    return region, count


def _any_by_label(labels: Labels, flags: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """Return, for each label (count,), whether any of its members has the flag."""
    result = np.zeros(count, np.bool_)
    np.logical_or.at(result, labels, flags)
    return result


def _choose_targets(
    planes: Planes, left: Labels, right: Labels, tolerance: float, is_frozen: NDArray[np.bool_]
) -> IntIndex:
    """Return the neighbor into which each region (r,) merges, or the region itself.

    The uncertainty of a neighbor's plane grows with the distance from its center, in units of its height.

    Args:
        planes: (r,) planes of the regions.
        left: (n,) regions.
        right: (n,) neighbors of `left`.
        tolerance: Millimeters.
        is_frozen: (r,) regions that stay.
    """
    count = len(planes.normal)
    target = np.arange(count)
    differs = left != right
    a, b = distinct_pairs(np.minimum(left[differs], right[differs]), np.maximum(left[differs], right[differs]), count)
    a_is_small = (planes.height[a] < planes.height[b]) | ((planes.height[a] == planes.height[b]) & (a > b))
    small, big = np.where(a_is_small, a, b), np.where(a_is_small, b, a)
    is_usable = ~is_frozen[small]
    small, big = small[is_usable], big[is_usable]
    between = planes.center[small] - planes.center[big]
    normal = planes.normal[big]
    square = np.einsum("ij,ijk,ik->i", normal, planes.moments[small], normal)
    square += np.einsum("ij,ij->i", between, normal) ** 2
    distance = lengths(between) + planes.reach[small]
    leverage = _LEVERAGE_RATIO * (1 + distance / np.maximum(planes.height[big], TINY))
    allowed = tolerance * np.clip(leverage, 1.0, SLIVER_RATIO) / 2
    facing = np.einsum("ij,ij->i", planes.normal[small], normal)
    is_good = np.sqrt(np.maximum(square, 0)) <= allowed
    is_good &= (facing > _MIN_FACING_COSINE) | (planes.height[small] < SLIVER_RATIO * tolerance)
    small, big = small[is_good], big[is_good]
    # the last assignment wins: the neighbor with the greatest height
    order = np.lexsort((big, planes.height[big]))
    target[small[order]] = big[order]
    return target
