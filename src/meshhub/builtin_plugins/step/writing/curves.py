"""The curves of edges: lines, circles, and splines where two surfaces meet in neither."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.arrays import lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.recognition.outline import Outline
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import (
    SurfaceArray,
    SurfaceKind,
    cylindrical,
    distances,
    gradients,
    project_onto_both,
)
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_FRACTIONS = np.array([0.25, 0.5, 0.75])
_BULGE = 0.15
_CHORD = 0.05
_KNOWN, _OWN = 1, 2
_TOUCHING = np.cos(np.radians(6.0))
_WIDEST = 2.5e-4

Mask = NDArray[np.bool_]


class Curve(IntEnum):
    """What an edge runs along."""

    LINE = 0
    CIRCLE = 1
    SPLINE = 2


@dataclass(frozen=True, eq=False)
class Curves:
    """The curve of each edge.

    kind:           (e,) a Curve
    centre, axis:   (e, 3) of circles; the edge runs counter-clockwise about the axis
    radius:         (e,) of circles
    bad:            (e,) no curve could be found that lies on both surfaces
    chords:         (e,) bad, but each of its straight pieces could be an edge by itself
    spline_begin:   (e + 1,) where the points of each spline begin in `spline`; start and end are among them
    spline:         (n, 3)
    """

    kind: NDArray[np.int8]
    centre: Float64
    axis: Float64
    radius: Float64
    bad: Mask
    chords: Mask
    spline_begin: IntIndex
    spline: Float64


def edge_regions(outline: Outline) -> tuple[IntIndex, IntIndex]:
    """The regions on the two sides of each edge; the same twice on a border."""
    chain = outline.edge_chain
    one = outline.region[chain].astype(np.intp)
    other = one.copy()
    back = np.flatnonzero(~outline.forward)
    other[outline.edge[back]] = outline.region[back]
    return one, other


def curves_of(skin: Skin, outline: Outline, regions: Regions) -> Curves:
    """Curves for all edges; between planes they are lines."""
    chain = outline.edge_chain
    count = len(chain)
    left, right = edge_regions(outline)
    kind = np.full(count, Curve.LINE, np.int8)
    centre, axis, radius = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
    bad = np.zeros(count, np.bool_)
    bent = np.flatnonzero(regions.curved[left] | regions.curved[right])
    if len(bent) == 0:
        return Curves(kind, centre, axis, radius, bad, bad, np.zeros(count + 1, np.intp), np.empty((0, 3)))
    one, other = regions.surfaces.take(left[bent]), regions.surfaces.take(right[bent])
    limit = np.maximum(regions.limit[left[bent]], regions.limit[right[bent]])
    path = _thinned(_paths(skin, outline, chain[bent]), limit)
    straight = _straight(path, one, other, limit)
    group, point, fault = _refined(path, one, other, limit)
    middles, axes, radii, about = _circles(path, group, point, one, other, limit)
    # a circle about an axis of a surface is known without points between, which are ill-defined where surfaces touch
    circle = ~straight & ((about == _KNOWN) | ((about == _OWN) & ~fault))
    tolerable = (
        fault & ~circle & _tolerable(path, one, other, _WIDEST * float(lengths(np.ptp(skin.points, axis=0)[None])[0]))
    )
    straight |= tolerable & (np.diff(path.begin) == 2)
    fault &= ~straight & ~circle
    bad[bent] = fault
    chords = np.zeros(count, np.bool_)
    chords[bent] = tolerable & fault
    kind[bent[circle]] = Curve.CIRCLE
    centre[bent], axis[bent], radius[bent] = middles, axes, radii
    spline = ~straight & ~circle & ~fault
    kind[bent[spline]] = Curve.SPLINE
    size = np.zeros(count, np.intp)
    size[bent] = np.where(spline, np.bincount(group, minlength=len(bent)), 0)
    return Curves(kind, centre, axis, radius, bad, chords, np.concatenate([[0], np.cumsum(size)]), point[spline[group]])


@dataclass(frozen=True, eq=False)
class _Paths:
    """Mesh points along edges, those of one edge side by side; closed edges repeat their first point."""

    begin: IntIndex
    group: IntIndex
    point: Float64

    @property
    def count(self) -> int:
        return len(self.begin) - 1


def _paths(skin: Skin, outline: Outline, chain: IntIndex) -> _Paths:
    size = outline.chain_begin[chain + 1] - outline.chain_begin[chain] + 1
    begin = np.concatenate([[0], np.cumsum(size)])
    group = np.repeat(np.arange(len(chain)), size)
    place = np.arange(len(group)) - begin[group]
    last = place == size[group] - 1
    half = outline.half[outline.chain_begin[chain][group] + place - last]
    return _Paths(begin, group, skin.points[np.where(last, skin.end[half], skin.begin[half])])


def _thinned(path: _Paths, limit: Float64) -> _Paths:
    """The paths without points next to another: whatever joins those two is noise to a curve."""
    group, start, stop = _pieces(path)
    short = np.zeros(len(path.group) + 1, np.bool_)
    short[1:-1][path.group[1:] == path.group[:-1]] = lengths(stop - start) <= limit[group]
    first, last = path.begin[:-1], path.begin[1:] - 1
    gone = short[:-1]
    gone[last - 1] |= short[last]
    gone[first] = gone[last] = False
    size = np.bincount(path.group[~gone], minlength=path.count)
    return _Paths(np.concatenate([[0], np.cumsum(size)]), path.group[~gone], path.point[~gone])


def _pieces(path: _Paths) -> tuple[IntIndex, Float64, Float64]:
    """The straight pieces of all paths: their group, begin and end."""
    at = np.flatnonzero(path.group[1:] == path.group[:-1])
    return path.group[at], path.point[at], path.point[at + 1]


def _straight(path: _Paths, one: SurfaceArray, other: SurfaceArray, limit: Float64) -> Mask:
    start, stop = path.point[path.begin[:-1]], path.point[path.begin[1:] - 1]
    chord = stop - start
    size = lengths(chord)
    direction = normalize(chord)
    offset = path.point - start[path.group]
    along = np.einsum("ij,ij->i", offset, direction[path.group])
    off = lengths(offset - along[:, None] * direction[path.group])
    worst = np.maximum.reduceat(off, path.begin[:-1])
    good = (worst <= limit) & (size > 0)
    for fraction in (0.5, *_FRACTIONS):
        at = start + fraction * chord
        good &= (np.abs(distances(one, at)) <= limit) & (np.abs(distances(other, at)) <= limit)
    return good


def _tolerable(path: _Paths, one: SurfaceArray, other: SurfaceArray, widest: float) -> Mask:
    """Paths whose straight pieces may stay chords.

    Where a facet that stays planar meets a curved surface nearly tangentially, their intersection swings far
    from the mesh's edge. The edge itself is off the surface by its sagitta only, which CAD programs
    take as the tolerance of the edge. widest: the largest such sagitta.
    """
    group, start, stop = _pieces(path)
    middle = (start + stop) / 2
    first, second = np.abs(distances(one.take(group), middle)), np.abs(distances(other.take(group), middle))
    off = np.maximum(first, second)
    good = np.ones(path.count, np.bool_)
    good[group[(off > _CHORD * lengths(stop - start)) | (off > widest)]] = False
    return good


def _refined(path: _Paths, one: SurfaceArray, other: SurfaceArray, limit: Float64) -> tuple[IntIndex, Float64, Mask]:
    """The paths with points between on both surfaces, and which paths have none there."""
    group, begin, end = _pieces(path)
    steps = len(_FRACTIONS)
    between = begin[:, None, :] + _FRACTIONS[None, :, None] * (end - begin)[:, None, :]
    each = np.repeat(group, steps)
    guess = between.reshape(-1, 3)
    first, second = one.take(each), other.take(each)
    found = project_onto_both(first, second, guess)
    one_off, one_normal = gradients(first, found)
    other_off, other_normal = gradients(second, found)
    off = np.maximum(np.abs(one_off), np.abs(other_off))
    # where surfaces nearly touch, their intersection is anywhere
    apart = lengths(first.origin - second.origin) + lengths(first.axis - second.axis)
    border = apart + np.abs(first.radius - second.radius) == 0
    touching = ~border & (np.abs(np.einsum("ij,ij->i", one_normal, other_normal)) > _TOUCHING)
    length = np.repeat(lengths(end - begin), steps)
    wrong = touching | ~(off <= limit[each]) | ~(lengths(found - guess) <= _BULGE * length)
    fault = np.zeros(path.count, np.bool_)
    fault[each[wrong]] = True
    piece_place = np.arange(len(group)) + group  # one point more than pieces in each path
    order_key = np.concatenate([np.arange(len(path.point)) * (steps + 1),
                                (piece_place[:, None] * (steps + 1) + 1 + np.arange(steps)).ravel()])  # fmt: skip
    order = np.argsort(order_key, kind="stable")
    groups = np.concatenate([path.group, each])[order]
    return groups, np.concatenate([path.point, found])[order], fault


def _circles(
    path: _Paths, group: IntIndex, point: Float64, one: SurfaceArray, other: SurfaceArray, limit: Float64
) -> tuple[Float64, Float64, Float64, NDArray[np.int8]]:
    """Circles through the paths: centres, axes, radii, and whether they are about an axis of a surface or their own."""
    count = path.count
    about = np.zeros(count, np.int8)
    centre, axis, radius = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
    piece, begin, end = _pieces(path)
    for candidate in (one, other):
        usable = (about == 0) & (candidate.kind != SurfaceKind.PLANE) & (candidate.kind != SurfaceKind.SPHERE)
        if not usable.any():
            continue
        middle, ring, off = _spread(candidate, path.group, path.point, path.begin[:-1])
        out = (begin + end) / 2 - middle[piece]
        line = candidate.axis[piece]
        out -= line * np.einsum("ij,ij->i", out, line)[:, None]
        between = middle[piece] + ring[piece][:, None] * normalize(out)
        away = np.maximum(np.abs(distances(one.take(piece), between)), np.abs(distances(other.take(piece), between)))
        off = np.maximum(off, np.maximum.reduceat(away, np.searchsorted(piece, np.arange(count))))
        fits = usable & (off <= limit) & (ring > limit)
        about[fits] = _KNOWN
        centre[fits], axis[fits], radius[fits] = middle[fits], candidate.axis[fits], ring[fits]
    starts = np.searchsorted(group, np.arange(count))
    candidate = _own_axes(group, point, starts, np.bincount(group, minlength=count))
    middle, ring, off = _spread(candidate, group, point, starts)
    # cylinders and cones meet planes in circles about their axes, or in none
    meets = np.isin(one.kind, (SurfaceKind.SPHERE, SurfaceKind.TORUS)) | np.isin(
        other.kind, (SurfaceKind.SPHERE, SurfaceKind.TORUS)
    )
    fits = (about == 0) & meets & (off <= limit) & (ring > limit)
    about[fits] = _OWN
    centre[fits], axis[fits], radius[fits] = middle[fits], candidate.axis[fits], ring[fits]
    a, b = begin - centre[piece], end - centre[piece]
    turn = np.bincount(piece, np.einsum("ij,ij->i", np.cross(a, b), axis[piece]), count)
    axis *= np.where(turn < 0, -1.0, 1.0)[:, None]
    return centre, axis, radius, about


def _spread(
    candidate: SurfaceArray, group: IntIndex, point: Float64, begin: IntIndex
) -> tuple[Float64, Float64, Float64]:
    """The mean circle of points about axes: centres, radii, and the distance of the worst point."""
    count = len(begin)
    size = np.bincount(group, minlength=count)
    height, distance, _ = cylindrical(candidate.take(group), point)
    level = np.bincount(group, height, count) / size
    ring = np.bincount(group, distance, count) / size
    off = np.maximum(np.abs(height - level[group]), np.abs(distance - ring[group]))
    worst: Float64 = np.maximum.reduceat(off, begin)
    return candidate.origin + level[:, None] * candidate.axis, ring, worst


def _own_axes(group: IntIndex, point: Float64, begin: IntIndex, size: IntIndex) -> SurfaceArray:
    """The circle through the points of each path, as the cylinder around it."""
    count = len(begin)
    middle = np.add.reduceat(point, begin) / size[:, None]
    offset = point - middle[group]
    scale = np.maximum(np.maximum.reduceat(lengths(offset), begin), 1e-300)
    offset = offset / scale[group][:, None]
    spread = np.stack(
        [[np.bincount(group, offset[:, i] * offset[:, j], count) for j in range(3)] for i in range(3)]
    ).transpose(2, 0, 1)
    _, vectors = np.linalg.eigh(spread)
    axis, u, v = vectors[:, :, 0], vectors[:, :, 2], vectors[:, :, 1]
    x = np.einsum("ij,ij->i", offset, u[group])
    y = np.einsum("ij,ij->i", offset, v[group])
    columns = [x, y, np.ones_like(x)]
    square = x * x + y * y
    products = np.stack([[sum_by_label(group, p * q, count) for q in columns] for p in columns]).transpose(2, 0, 1)
    right = np.stack([sum_by_label(group, p * square, count) for p in columns], axis=1)
    matrix = products + np.eye(3) * 1e-14
    solution = np.linalg.solve(matrix, right[..., None])[..., 0] / 2
    origin = middle + scale[:, None] * (solution[:, :1] * u + solution[:, 1:2] * v)
    kind = np.full(count, SurfaceKind.CYLINDER, np.int8)
    return SurfaceArray(kind, origin, axis, np.zeros(count), np.zeros(count))
