"""Coplanar triangles merged into regions.

Two passes. The first joins neighbours whose opposite corners lie on each other's planes, and keeps
what then holds as a whole. The second works on regions: each one hooks on to the best-conditioned
neighbour whose plane holds all its points, until nothing moves. Slivers, whose own normals are
noise, find their place there. Pairwise normals alone were tried and lost: rounding to 32 bits turns
the normal of a thin triangle by degrees.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.skin import Skin, distinct_pairs, lengths, normalize, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

ROUNDING = 5e-7
"""Part of the largest |coordinate| that rounding to 32 bits, and what is computed from it, explains."""

_FAR = 20.0
_SLIVER = 20.0
_ROUNDS = 40
_FIT = 4.0
_STRETCH = 20.0

Labels = NDArray[np.int32]


def tolerance_for(points: Float64) -> float:
    """How far a point may lie off its plane: from the largest coordinate, not from the extent.

    Rounding depends on where a part is, not on how large it is. Coordinates that are no 32-bit numbers were rounded
    somewhere else, as those of a small part were before it was put into a large ship: there the part's size bounds it.
    """
    reach = float(np.abs(points).max(initial=0.0))
    if len(points) and not np.array_equal(points, points.astype(np.float32)):
        reach = min(reach, _FAR * float(np.ptp(points, axis=0).max()))
    return max(reach * ROUNDING, 1e-9)


class Planes(NamedTuple):
    """What is known of the plane of each region.

    normal:    (r, 3) unit, from the vector area
    centre:    (r, 3) area-weighted, at the height where the plane keeps the volume under the triangles
    height:    (r,) area over reach: how well conditioned the normal is
    reach:     (r,) distance of the farthest point from the centre
    deviation: (r,) distance of the farthest point from the plane
    moments:   (r, 3, 3) mean of (point - centre) (point - centre)ᵀ
    """

    normal: Float64
    centre: Float64
    height: Float64
    reach: Float64
    deviation: Float64
    moments: Float64


def planes_of(skin: Skin, region: Labels, count: int) -> Planes:
    """The planes of all regions at once; `region` is 0 … count - 1 for each face."""
    area = lengths(skin.cross)

    def total(weights: Float64) -> Float64:
        return sum_by_label(region, weights, count)

    corner = skin.points[skin.faces]
    # a region of nothing but degenerate faces still needs a centre
    weight = area + 1e-300
    mass = total(weight)
    middle = corner.mean(axis=1)
    centre = np.stack([total(weight * middle[:, axis]) for axis in range(3)], axis=1) / mass[:, None]
    vector = np.stack([total(skin.cross[:, axis]) for axis in range(3)], axis=1)
    normal = normalize(vector)
    order = np.argsort(region, kind="stable")
    begin = np.searchsorted(region[order], np.arange(count))
    offset = corner - centre[region][:, None, :]
    height = np.einsum("ijk,ik->ij", offset, normal[region])
    # the flux of the position through the plane is to be what it is through the triangles
    flux = total(np.einsum("ij,ij->i", middle - centre[region], skin.cross))
    most = np.maximum.reduceat(np.abs(height).max(axis=1)[order], begin)
    size = lengths(vector)
    lift = np.clip(np.divide(flux, size, out=np.zeros(count), where=size > 0), -most, most)
    centre += normal * lift[:, None]
    offset -= (normal * lift[:, None])[region][:, None, :]
    far = np.sqrt(np.einsum("ijk,ijk->ij", offset, offset).max(axis=1))
    off = np.abs(height - lift[region][:, None]).max(axis=1)
    reach, deviation = (np.maximum.reduceat(values[order], begin) for values in (far, off))
    faces = np.bincount(region, minlength=count)
    moments = np.empty((count, 3, 3))
    for row in range(3):
        for column in range(row, 3):
            mean = total(np.einsum("ij,ij->i", offset[:, :, row], offset[:, :, column])) / (3 * faces)
            moments[:, row, column] = moments[:, column, row] = mean
    return Planes(normal, centre, total(area) / 2 / np.maximum(reach, 1e-300), reach, deviation, moments)


def numbered(labels: NDArray[np.integer[Any]]) -> tuple[Labels, int]:
    """The same partition with labels 0 … count - 1, and the count."""
    there = np.zeros(int(labels.max(initial=-1)) + 1, np.bool_)
    there[labels] = True
    number = np.cumsum(there, dtype=np.int32)
    made: Labels = number[labels] - np.int32(1)
    return made, int(number[-1]) if len(number) else 0


def flat_regions(skin: Skin, tolerance: float) -> tuple[Labels, int]:
    """The coplanar regions of a skin: a label for each face, and their number.

    tolerance: distance from its plane that rounding explains; a region's points keep within four of it

    Faces of one colour hang together by edges within a region.
    """
    one, other = _neighbours(skin)
    host = _hosts(skin, one, other, tolerance)
    region, count = _pairwise(skin, one, other, tolerance)
    region, count = numbered(region[host])
    return _hooked(skin, region, count, host[one // 3], host[other // 3], tolerance)


def parted(skin: Skin, region: Labels, which: IntIndex, tolerance: float) -> tuple[Labels, int]:
    """The regions, some of them cut into their triangles."""
    host = _hosts(skin, *_neighbours(skin), tolerance)
    return numbered(np.where(np.isin(region, which), region.max() + 1 + host, region))


def _neighbours(skin: Skin) -> tuple[IntIndex, IntIndex]:
    """Pairs of half-edges with faces of one colour on both sides."""
    one = np.flatnonzero(np.arange(len(skin.twin)) < skin.twin)
    other = skin.twin[one]
    same = skin.paint[one // 3] == skin.paint[other // 3]
    return one[same], other[same]


def _hosts(skin: Skin, one: IntIndex, other: IntIndex, tolerance: float) -> IntIndex:
    """(m,) the face that each one is part of: itself, or, for one without a height, what lies across its longest edge.

    Such a triangle only tells its host that there is a corner on that edge. A face beside one of its shorter
    edges would get a spike from it, or be tied to another face where there is a gap between them.
    """
    count = len(skin.faces)
    corner = skin.points[skin.faces]
    side = np.stack([lengths(corner[:, (k + 1) % 3] - corner[:, k]) for k in range(3)], axis=1)
    most = side.max(axis=1)
    # of sides of one length the last edge counts, on both its faces: chains of hosts lead to longer edges, never round
    edge = np.arange(3 * count)
    edge[other] = one
    longest = np.where(side == most[:, None], edge.reshape(-1, 3), -1).argmax(axis=1)
    flat = lengths(skin.cross) <= _FIT * tolerance * most
    across = np.full(3 * count, -1, np.intp)
    across[one], across[other] = other // 3, one // 3
    itself = np.arange(count)
    host = np.where(flat, across[3 * itself + longest], itself)
    host = np.where(host >= 0, host, itself)
    # two that share their longest edge have no host but each other
    mutual = (host[host] == itself) & (host > itself)
    host[mutual] = itself[mutual]
    while True:
        further = host[host]
        if np.array_equal(further, host):
            return host
        host = further


def _pairwise(skin: Skin, one: IntIndex, other: IntIndex, tolerance: float) -> tuple[Labels, int]:
    normal = normalize(skin.cross)
    corner = skin.points[skin.faces]
    longest = np.sqrt(np.max([lengths(corner[:, k] - corner[:, k - 1]) ** 2 for k in range(3)], axis=0))
    solid = lengths(skin.cross) > _SLIVER * tolerance * longest
    left, right = one // 3, other // 3
    flat = skin.faces.ravel()

    def off(face: IntIndex, half: IntIndex) -> Float64:
        opposite = flat[3 * (half // 3) + (half + 2) % 3]
        distance: Float64 = np.einsum("ij,ij->i", skin.points[opposite] - skin.points[flat[half]], normal[face])
        return np.abs(distance)

    opposite_right = 3 * (other // 3) + (other % 3 + 2) % 3
    opposite_left = 3 * (one // 3) + (one % 3 + 2) % 3
    base = skin.points[flat[one]]
    off_left = np.abs(np.einsum("ij,ij->i", skin.points[flat[opposite_right]] - base, normal[left]))
    off_right = np.abs(np.einsum("ij,ij->i", skin.points[flat[opposite_left]] - base, normal[right]))
    facing = np.einsum("ij,ij->i", normal[left], normal[right]) > 0
    good = facing & solid[left] & solid[right] & (np.maximum(off_left, off_right) <= tolerance)
    count, region = components(len(skin.faces), left[good], right[good])
    bad = planes_of(skin, region, count).deviation > _FIT * tolerance
    if bad.any():
        loose = bad[region]
        region = np.where(loose, count + np.arange(len(region)), region)
        region, count = numbered(region)
    return region, count


def _hooked(
    skin: Skin, region: Labels, count: int, left: IntIndex, right: IntIndex, tolerance: float
) -> tuple[Labels, int]:
    careful = np.zeros(count, np.bool_)
    frozen = np.zeros(count, np.bool_)
    planes = planes_of(skin, region, count)
    for _ in range(_ROUNDS):
        target = _targets(planes, count, region[left], region[right], tolerance, frozen)
        hooks = target != np.arange(count)
        # a careful region waits until the one it hooks on to stays where it is
        target = np.where(careful & hooks & hooks[target], np.arange(count), target)
        if not (target != np.arange(count)).any():
            break
        root = target
        while True:
            further = root[root]
            if np.array_equal(further, root):
                break
            root = further
        grouped, groups = numbered(root)
        made = planes_of(skin, grouped[region], groups)
        bad = made.deviation > _FIT * tolerance
        bad &= np.bincount(grouped, minlength=groups) > 1
        if bad.any():
            back = bad[grouped]
            frozen = frozen | (back & careful)
            careful = careful | back
            root = np.where(back, np.arange(count), root)
            grouped, groups = numbered(root)
            made = planes_of(skin, grouped[region], groups)
        keep = np.zeros(groups, np.bool_)
        np.logical_or.at(keep, grouped, careful)
        still = np.zeros(groups, np.bool_)
        np.logical_or.at(still, grouped, frozen & (root == np.arange(count)))
        region, count, planes, careful, frozen = grouped[region], groups, made, keep, still
    return region, count


def _targets(
    planes: Planes, count: int, left: Labels, right: Labels, tolerance: float, frozen: NDArray[np.bool_]
) -> IntIndex:
    """For each region the neighbour to hook on to, or itself."""
    target = np.arange(count)
    apart = left != right
    a, b = distinct_pairs(np.minimum(left[apart], right[apart]), np.maximum(left[apart], right[apart]), count)
    a_is_small = (planes.height[a] < planes.height[b]) | ((planes.height[a] == planes.height[b]) & (a > b))
    small, big = np.where(a_is_small, a, b), np.where(a_is_small, b, a)
    usable = ~frozen[small]
    small, big = small[usable], big[usable]
    between = planes.centre[small] - planes.centre[big]
    normal = planes.normal[big]
    square = np.einsum("ij,ijk,ik->i", normal, planes.moments[small], normal)
    square += np.einsum("ij,ij->i", between, normal) ** 2
    distance = lengths(between) + planes.reach[small]
    stretch = np.clip(0.1 * (1 + distance / np.maximum(planes.height[big], 1e-300)), 1.0, _STRETCH)
    facing = np.einsum("ij,ij->i", planes.normal[small], normal)
    good = np.sqrt(np.maximum(square, 0)) <= tolerance * stretch / 2
    good &= (facing > 0.7) | (planes.height[small] < _SLIVER * tolerance)
    small, big = small[good], big[good]
    order = np.lexsort((big, planes.height[big]))
    target[small[order]] = big[order]
    return target
