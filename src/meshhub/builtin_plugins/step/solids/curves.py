"""Curves of edges: lines, circles, and splines where two surfaces intersect in neither."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.rim_curves import FRACTIONS, interpolate_corners, project
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.surfaces.kinds import SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import (
    SurfaceArray,
    cylindrical,
    distances,
    find_charts,
    gradients,
    project_onto_both,
)
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_BULGE_RATIO = 0.15
"""Distance of the intersection from a segment, as a share of its length; beyond it the surfaces meet elsewhere."""
_MAX_CHORD_SAGITTA_RATIO = 0.05
"""Distance of a segment from a surface, as a share of its length, up to which it may stay straight."""
_MAX_SAGITTA_RATIO = 2.5e-4
"""The same, as a share of the model's diagonal: CAD programs take the distance as the tolerance of the edge."""
_MAX_LINE_GAP_MM = 1e-6
"""Distance of the chord of an arc from its surfaces up to which it is written as a line."""
_MAX_RULING_OFFSET_RATIO = 4.0
"""Offset of a line of a cylinder or a cone over the limit of the surfaces; both ends may be off by the limit."""
_TANGENT_SINE = np.sin(np.radians(6.0))
"""Sine of the angle between two surfaces below which rounding may move their intersection far."""
_MIN_SINE = np.sin(np.radians(0.5))
"""The same, below which it does so in any case."""
_MAX_SHIFT_RATIO = 0.05
"""How far rounding may move the intersection of such surfaces, as a share of the length of a segment."""
_MAX_MISS_RATIO = 2.0
"""Distance of a smooth curve through the corners beside a patch from both surfaces, over the limit of the surfaces."""
_CHART_BORDER_RATIO = 0.1
"""Distance between the border of a chart in the mesh and its edge, over the distance that is allowed for its face."""
_MIN_RADIUS_MM = 1e-300
"""Millimeters; avoids a division by zero for paths of equal points."""
_MAX_SPLINE_ERROR_MM = 1e-7
"""Distance of a spline from its surfaces, as the files state; CAD programs fail to fillet beside less exact ones."""
_SPLINE_DEGREE = 3
"""Degree of the splines."""
_MAX_SPLINE_MOVE_RATIO = 0.05
"""Distance of a spline beside a patch from its other surface, over the limit of the surfaces."""
_MAX_SPLINE_ROUNDS = 2
"""Attempts to halve the steps of a spline; each one divides its error by 16."""
_REGULARIZATION = 1e-14
"""Added to the normal equations of points in units of their extent; makes those of collinear points solvable."""

_KINDS_WITHOUT_AXES = (SurfaceKind.PLANE, SurfaceKind.SPHERE)
"""Kinds of surfaces whose axes are the center of no circle."""

Mask = NDArray[np.bool_]


class CurveKind(IntEnum):
    """Geometry of an edge."""

    LINE = 0
    CIRCLE = 1
    SPLINE = 2


class _CircleAxis(IntEnum):
    """Origin of a circle's axis: no circle, the axis of a surface, or fitted to the points."""

    NONE = 0
    SURFACE = 1
    FITTED = 2


@dataclass(frozen=True, eq=False)
class Curves:
    """Curve of each edge.

    kind:           (e,) a CurveKind
    center, axis:   (e, 3) of circles, mm and unit vectors; the edge runs counter-clockwise about the axis
    radius:         (e,) of circles, mm
    bad:            (e,) whether no curve lies on both surfaces
    chords:         (e,) whether the edge is bad, but each of its straight segments could be an edge
    spline_begin:   (e + 1,) index in `spline` at which the points of each spline begin; they include both ends
    spline:         (n, 3) mm
    """

    kind: NDArray[np.int8]
    center: Float64
    axis: Float64
    radius: Float64
    bad: Mask
    chords: Mask
    spline_begin: IntIndex
    spline: Float64


def edge_regions(outline: Outline) -> tuple[IntIndex, IntIndex]:
    """Return (e,) each, the regions on the two sides of each edge; the same twice for an edge on the border."""
    chain = outline.edge_chain
    left = outline.region[chain].astype(np.intp)
    right = left.copy()
    backward = np.flatnonzero(~outline.forward)
    right[outline.edge[backward]] = outline.region[backward]
    return left, right


def fit_curves(skin: Skin, outline: Outline, regions: Regions) -> Curves:
    """Return the curves of all edges; edges between planes are lines.

    Args:
        skin: Mesh whose points are corners of the edges, millimeters.
        outline: Edges of the regions.
        regions: Regions with their surfaces and tolerances.
    """
    chain = outline.edge_chain
    count = len(chain)
    left, right = edge_regions(outline)
    kind = np.full(count, CurveKind.LINE, np.int8)
    center, axis, radius = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
    bad = np.zeros(count, np.bool_)
    bent = np.flatnonzero(regions.curved[left] | regions.curved[right])
    if len(bent) == 0:
        return Curves(kind, center, axis, radius, bad, bad, np.zeros(count + 1, np.intp), np.empty((0, 3)))
    sides = _Sides(regions.surfaces.take(left[bent]), regions.surfaces.take(right[bent]))
    limits = regions.limit[left[bent]], regions.limit[right[bent]]
    limit = np.maximum(*limits)
    corners = _collect_paths(skin, outline, chain[bent])
    is_chart = find_charts(sides.left) | find_charts(sides.right)
    near = np.where(is_chart, _CHART_BORDER_RATIO * limit, limit)
    path = _drop_near_points(corners, near)
    seems_straight = _are_straight(path, sides, limit) & _are_on_chords(path, near)
    straight = seems_straight & _can_be_straight(path, sides, limit)
    # the edges of a chart are as near to it as the mesh
    allowed = np.where(is_chart, 1.0, _MAX_MISS_RATIO) * limit
    smooth, is_smooth = _interpolate_paths(path.select(~straight), sides, limit, allowed)
    # the surfaces of a scan meet nearly in a tangent, and their intersection is far from their border
    is_refined = ~is_smooth & ~straight & ~is_chart
    refined, fault = _refine_paths(path.select(is_refined), sides, limit)
    fault |= is_chart & ~is_smooth & ~straight
    refined = _merge_paths(_merge_paths(refined, smooth), path.select(~is_smooth & ~is_refined))
    circles = _fit_circles(path, refined, sides, limit)
    # the corners of a facet are exact, and the chart beside it is near them
    is_flat = (sides.left.kind == SurfaceKind.PLANE) | (sides.right.kind == SurfaceKind.PLANE)
    cornered = is_chart & is_flat & ~_are_on_chords(corners, np.minimum(*limits))
    straight &= ~cornered
    # a circle about the axis of a surface needs no points of the intersection, which are ill-defined near tangency
    circle = (circles.source == _CircleAxis.SURFACE) | ((circles.source == _CircleAxis.FITTED) & ~fault)
    circle &= ~straight & ~cornered
    straight |= seems_straight & fault & ~circle & ~cornered
    diagonal = float(lengths(np.ptp(skin.points, axis=0)[None])[0])
    may_stay_chords = fault & ~circle & _are_near_surfaces(path, sides, _MAX_SAGITTA_RATIO * diagonal)
    straight |= may_stay_chords & (np.diff(path.begin) == 2) & ~cornered
    fault = (fault & ~straight & ~circle) | cornered
    bad[bent] = fault
    chords = np.zeros(count, np.bool_)
    chords[bent] = (may_stay_chords | is_chart) & fault
    kind[bent[circle]] = CurveKind.CIRCLE
    center[bent], axis[bent], radius[bent] = circles.center, circles.axis, circles.radius
    spline = ~straight & ~circle & ~fault
    refined = _refine_splines(refined, sides, spline & ~is_smooth)
    kind[bent[spline]] = CurveKind.SPLINE
    size = np.zeros(count, np.intp)
    size[bent] = np.where(spline, np.diff(refined.begin), 0)
    spline_begin = np.concatenate([[0], np.cumsum(size)])
    return Curves(kind, center, axis, radius, bad, chords, spline_begin, refined.point[spline[refined.path]])


class _Sides(NamedTuple):
    """(n,) surfaces on the left and on the right of edges."""

    left: SurfaceArray
    right: SurfaceArray

    def distances(self, points: Float64, path: IntIndex | None = None) -> Float64:
        """Return the larger distance (mm) of each point (k, 3) from both surfaces of its path (k,)."""
        left, right = self if path is None else (self.left.take(path), self.right.take(path))
        return np.maximum(np.abs(distances(left, points)), np.abs(distances(right, points)))


@dataclass(frozen=True, eq=False)
class _Paths:
    """Points along edges; a closed edge repeats its first point.

    begin: (n + 1,) index in `point` at which each path begins
    path:  (p,) the path of each point
    point: (p, 3) mm
    """

    begin: IntIndex
    path: IntIndex
    point: Float64

    @property
    def count(self) -> int:
        return len(self.begin) - 1

    def select(self, selected: Mask) -> _Paths:
        """Return the paths of an (n,) mask; the others are empty."""
        is_kept = selected[self.path]
        path = self.path[is_kept]
        return _Paths(np.searchsorted(path, np.arange(self.count + 1)), path, self.point[is_kept])

    def segments(self) -> tuple[IntIndex, Float64, Float64]:
        """Return the straight segments of all paths: their path (s,), begin and end (s, 3)."""
        at = np.flatnonzero(self.path[1:] == self.path[:-1])
        return self.path[at], self.point[at], self.point[at + 1]


def _collect_paths(skin: Skin, outline: Outline, chain: IntIndex) -> _Paths:
    """Return the points of the mesh along chains."""
    size = outline.chain_begin[chain + 1] - outline.chain_begin[chain] + 1
    begin = np.concatenate([[0], np.cumsum(size)])
    path = np.repeat(np.arange(len(chain)), size)
    place = np.arange(len(path)) - begin[path]
    last = place == size[path] - 1
    half = outline.half[outline.chain_begin[chain][path] + place - last]
    return _Paths(begin, path, skin.points[np.where(last, skin.end[half], skin.begin[half])])


def _drop_near_points(paths: _Paths, limit: Float64) -> _Paths:
    """Return the paths without inner points closer to the next than `limit`: their direction is rounding noise."""
    path, start, stop = paths.segments()
    short = np.zeros(len(paths.path) + 1, np.bool_)
    short[1:-1][paths.path[1:] == paths.path[:-1]] = lengths(stop - start) <= limit[path]
    first, last = paths.begin[:-1], paths.begin[1:] - 1
    dropped = short[:-1]
    dropped[last - 1] |= short[last]
    dropped[first] = dropped[last] = False
    size = np.bincount(paths.path[~dropped], minlength=paths.count)
    return _Paths(np.concatenate([[0], np.cumsum(size)]), paths.path[~dropped], paths.point[~dropped])


def _are_straight(paths: _Paths, sides: _Sides, limit: Float64) -> Mask:
    """Return (n,) whether the points of a path lie on its chord, and the chord on both surfaces."""
    start, stop = paths.point[paths.begin[:-1]], paths.point[paths.begin[1:] - 1]
    result: Mask = _are_on_chords(paths, limit) & (_measure_chords(sides, start, stop) <= limit)
    return result


def _are_on_chords(paths: _Paths, limit: Float64) -> Mask:
    """Return (n,) whether the points of a path lie on its chord."""
    start, stop = paths.point[paths.begin[:-1]], paths.point[paths.begin[1:] - 1]
    chord = stop - start
    direction = normalize(chord)
    offset = paths.point - start[paths.path]
    along = np.einsum("ij,ij->i", offset, direction[paths.path])
    distance = lengths(offset - along[:, None] * direction[paths.path])
    result: Mask = (np.maximum.reduceat(distance, paths.begin[:-1]) <= limit) & (lengths(chord) > 0)
    return result


def _measure_chords(sides: _Sides, start: Float64, stop: Float64) -> Float64:
    """Return the (n,) largest distances (mm) of points on chords from both surfaces of their paths."""
    points = start + FRACTIONS[:, None, None] * (stop - start)
    owner = np.tile(np.arange(len(start)), len(FRACTIONS))
    largest: Float64 = sides.distances(points.reshape(-1, 3), owner).reshape(len(FRACTIONS), -1).max(axis=0)
    return largest


def _can_be_straight(paths: _Paths, sides: _Sides, limit: Float64) -> Mask:
    """Return (n,) whether both surfaces contain lines in the direction of a chord, or the chord is as good as on them.

    The chord of a short arc lies within the limit of the surfaces, too, but CAD programs fail to fillet edges that do
    not lie on their faces.
    """
    start, stop = paths.point[paths.begin[:-1]], paths.point[paths.begin[1:] - 1]
    result: Mask = _measure_chords(sides, start, stop) <= _MAX_LINE_GAP_MM
    result |= _contain_lines(sides.left, start, stop, limit) & _contain_lines(sides.right, start, stop, limit)
    return result


def _contain_lines(surfaces: SurfaceArray, start: Float64, stop: Float64, limit: Float64) -> Mask:
    """Return (n,) whether cylinders, cones, spheres and tori may contain the lines between points (n, 3).

    The lines of a cylinder are parallel to its axis, and those of a cone lead to its apex.
    """
    chord = stop - start
    with np.errstate(divide="ignore", invalid="ignore"):
        apex = surfaces.origin - (surfaces.radius / surfaces.second)[:, None] * surfaces.axis
        # twice the area of a triangle over its longest side is its height
        to_start, to_stop = start - apex, stop - apex
        height = lengths(np.cross(to_start, to_stop)) / np.maximum(lengths(to_start), lengths(to_stop))
    across = lengths(np.cross(chord, surfaces.axis))
    allowed = _MAX_RULING_OFFSET_RATIO * limit
    is_round = np.isin(surfaces.kind, (SurfaceKind.SPHERE, SurfaceKind.TORUS))
    is_round |= (surfaces.kind == SurfaceKind.CYLINDER) & (across > allowed)
    is_round |= (surfaces.kind == SurfaceKind.CONE) & ~(height <= allowed)
    return ~is_round


def _are_near_surfaces(paths: _Paths, sides: _Sides, max_sagitta_mm: float) -> Mask:
    """Return (n,) whether the straight segments of a path are close enough to both surfaces to stay straight.

    Where a facet that stays planar meets a curved surface nearly tangentially, the intersection deviates far from the
    edge of the mesh. The edge deviates from the surface only by its sagitta.
    """
    path, start, stop = paths.segments()
    sagitta = sides.distances((start + stop) / 2, path)
    near = np.ones(paths.count, np.bool_)
    near[path[(sagitta > _MAX_CHORD_SAGITTA_RATIO * lengths(stop - start)) | (sagitta > max_sagitta_mm)]] = False
    return near


def _refine_paths(paths: _Paths, sides: _Sides, limit: Float64) -> tuple[_Paths, Mask]:
    """Return the paths with points of the intersection added, and (n,) whether these are unusable."""
    path, begin, end = paths.segments()
    steps = len(FRACTIONS)
    guess = (begin[:, None, :] + FRACTIONS[None, :, None] * (end - begin)[:, None, :]).reshape(-1, 3)
    owner = np.repeat(path, steps)
    left, right = sides.left.take(owner), sides.right.take(owner)
    point = project_onto_both(left, right, guess)
    left_distance, left_normal = gradients(left, point)
    right_distance, right_normal = gradients(right, point)
    distance = np.maximum(np.abs(left_distance), np.abs(right_distance))
    difference = lengths(left.origin - right.origin) + lengths(left.axis - right.axis)
    is_border = difference + np.abs(left.radius - right.radius) == 0
    length = np.repeat(lengths(end - begin), steps)
    sine = lengths(np.cross(left_normal, right_normal))
    tangent = ~is_border & (sine < _TANGENT_SINE)
    tangent &= (sine < _MIN_SINE) | (limit[owner] > _MAX_SHIFT_RATIO * length * sine)
    # written so that NaN is wrong, too
    wrong = tangent | ~(distance <= limit[owner]) | ~(lengths(point - guess) <= _MAX_BULGE_RATIO * length)
    fault = np.zeros(paths.count, np.bool_)
    fault[owner[wrong]] = True
    first_point = np.flatnonzero(paths.path[1:] == paths.path[:-1])
    keys = first_point[:, None] * (steps + 1) + 1 + np.arange(steps)
    order = np.argsort(np.concatenate([np.arange(len(paths.point)) * (steps + 1), keys.ravel()]), kind="stable")
    refined_path = np.concatenate([paths.path, owner])[order]
    refined_point = np.concatenate([paths.point, point])[order]
    refined_begin = np.searchsorted(refined_path, np.arange(paths.count + 1))
    return _Paths(refined_begin, refined_path, refined_point), fault


def _refine_splines(paths: _Paths, sides: _Sides, selected: Mask) -> _Paths:
    """Return the paths with points of the intersection added until the splines through (n,) selected ones lie on it.

    Paths with a corner off the surfaces stay: small steps beside it would bend the spline.
    """
    off = np.maximum.reduceat(sides.distances(paths.point, paths.path), paths.begin[:-1])
    selected = selected & (off <= _MAX_LINE_GAP_MM)
    for _ in range(_MAX_SPLINE_ROUNDS):
        rows = np.flatnonzero(selected)
        middles = [_interpolate_middles(paths.point[paths.begin[row] : paths.begin[row + 1]]) for row in rows.tolist()]
        if not middles:
            break
        owner = np.repeat(rows, np.diff(paths.begin)[rows] - 1)
        middle = np.concatenate(middles)
        off = np.zeros(paths.count)
        np.maximum.at(off, owner, sides.distances(middle, owner))
        selected = selected & (off > _MAX_SPLINE_ERROR_MM)
        is_added = selected[owner]
        owner, middle = owner[is_added], middle[is_added]
        on_both = project_onto_both(sides.left.take(owner), sides.right.take(owner), middle)
        after = np.flatnonzero(selected[paths.path])
        # the last point of a path has no point after it
        after = after[after + 1 < paths.begin[paths.path[after] + 1]]
        place = np.concatenate([np.arange(len(paths.path)), after + 0.5])
        order = np.argsort(place, kind="stable")
        path = np.concatenate([paths.path, owner])[order]
        point = np.concatenate([paths.point, on_both])[order]
        paths = _Paths(np.searchsorted(path, np.arange(paths.count + 1)), path, point)
    return paths


def _interpolate_middles(points: Float64) -> Float64:
    """Return (k - 1, 3) the points of the cubic spline through (k, 3) points in the middle between them."""
    chord = np.concatenate([[0.0], np.cumsum(lengths(np.diff(points, axis=0)))])
    curve = make_interp_spline(chord, points, k=3)
    return np.asarray(curve((chord[:-1] + chord[1:]) / 2), np.float64)


def _interpolate_paths(paths: _Paths, sides: _Sides, limit: Float64, allowed: Float64) -> tuple[_Paths, Mask]:
    """Return smooth curves through the points of the paths beside patches, and (n,) which paths have one.

    A patch meets its neighbors where the corners of the mesh are, also if it is tangent to them.
    """
    is_patch = [side.kind == SurfaceKind.PATCH for side in sides]
    rows = np.flatnonzero((is_patch[0] | is_patch[1]) & (np.diff(paths.begin) > 2))
    curves, needs_more = [], np.zeros(paths.count, np.bool_)
    for path in rows.tolist():
        corner = paths.point[paths.begin[path] : paths.begin[path + 1]]
        between = interpolated = interpolate_corners(corner)
        if not (is_patch[0][path] and is_patch[1][path]):
            between = project((sides.right if is_patch[0][path] else sides.left).take(np.array([path])), between)
        moved = float(lengths(between - interpolated).max())
        # otherwise, the spline through the corners is the curve; CAD programs read long splines slowly
        needs_more[path] = len(corner) <= _SPLINE_DEGREE or (corner[0] == corner[-1]).all()
        needs_more[path] |= moved > _MAX_SPLINE_MOVE_RATIO * limit[path]
        curves.append(between)
    owner = np.repeat(rows, [len(curve) for curve in curves])
    between = np.concatenate([np.empty((0, 3)), *curves])
    # written so that NaN is wrong, too
    is_off = ~(sides.distances(between, owner) <= allowed[owner])
    is_smooth = np.zeros(paths.count, np.bool_)
    is_smooth[rows] = True
    is_smooth[owner[is_off]] = False
    corners = paths.select(is_smooth)
    is_added = (is_smooth & needs_more)[owner]
    owner, between = owner[is_added], between[is_added]
    after = np.flatnonzero((np.diff(corners.path, append=-1) == 0) & needs_more[corners.path])
    place = np.concatenate([np.arange(len(corners.path)), (after[:, None] + FRACTIONS).ravel()])
    order = np.argsort(place, kind="stable")
    point = np.concatenate([corners.point, between])[order]
    number = np.concatenate([corners.path, owner])[order]
    return _Paths(np.searchsorted(number, np.arange(paths.count + 1)), number, point), is_smooth


def _merge_paths(one: _Paths, other: _Paths) -> _Paths:
    """Return the paths of both; each is empty in one of them."""
    owner, point = np.concatenate([one.path, other.path]), np.concatenate([one.point, other.point])
    order = np.argsort(owner, kind="stable")
    return _Paths(np.searchsorted(owner[order], np.arange(one.count + 1)), owner[order], point[order])


class _Circles(NamedTuple):
    """Circles through paths; center, axis: (n, 3), radius: (n,) mm, source: (n,) a _CircleAxis."""

    center: Float64
    axis: Float64
    radius: Float64
    source: NDArray[np.int8]


def _fit_circles(paths: _Paths, refined: _Paths, sides: _Sides, limit: Float64) -> _Circles:
    """Fit a circle to each path, about the axis of a surface or about an axis of its own."""
    count = paths.count
    source = np.full(count, _CircleAxis.NONE, np.int8)
    center, axis, radius = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
    segment_path, begin, end = paths.segments()
    for candidate in sides:
        usable = source == _CircleAxis.NONE
        usable &= ~np.isin(candidate.kind, _KINDS_WITHOUT_AXES)
        if not usable.any():
            continue
        middle, ring, error = _mean_circles(candidate, paths)
        # the middle of each arc must lie on both surfaces
        out = (begin + end) / 2 - middle[segment_path]
        line = candidate.axis[segment_path]
        out -= line * np.einsum("ij,ij->i", out, line)[:, None]
        arc_middle = middle[segment_path] + ring[segment_path][:, None] * normalize(out)
        off_surface = sides.distances(arc_middle, segment_path)
        error = np.maximum(error, np.maximum.reduceat(off_surface, np.searchsorted(segment_path, np.arange(count))))
        fits = usable & (error <= limit) & (ring > limit)
        source[fits] = _CircleAxis.SURFACE
        center[fits], axis[fits], radius[fits] = middle[fits], candidate.axis[fits], ring[fits]
    candidate = _fit_axes(refined)
    middle, ring, error = _mean_circles(candidate, refined)
    # cylinders and cones meet planes in circles about their own axes or in none
    round_kinds = (SurfaceKind.SPHERE, SurfaceKind.TORUS)
    can_be_circle = np.isin(sides.left.kind, round_kinds) | np.isin(sides.right.kind, round_kinds)
    fits = (source == _CircleAxis.NONE) & can_be_circle & (error <= limit) & (ring > limit)
    source[fits] = _CircleAxis.FITTED
    center[fits], axis[fits], radius[fits] = middle[fits], candidate.axis[fits], ring[fits]
    a, b = begin - center[segment_path], end - center[segment_path]
    turn = np.bincount(segment_path, np.einsum("ij,ij->i", np.cross(a, b), axis[segment_path]), count)
    axis *= np.where(turn < 0, -1.0, 1.0)[:, None]
    return _Circles(center, axis, radius, source)


def _mean_circles(axes: SurfaceArray, paths: _Paths) -> tuple[Float64, Float64, Float64]:
    """Return the mean circle of each path about an axis: centers (n, 3), radii (n,), largest errors (n,), mm."""
    count = paths.count
    size = np.bincount(paths.path, minlength=count)
    height, distance, _ = cylindrical(axes.take(paths.path), paths.point)
    mean_height = np.bincount(paths.path, height, count) / size
    radius = np.bincount(paths.path, distance, count) / size
    error = np.maximum(np.abs(height - mean_height[paths.path]), np.abs(distance - radius[paths.path]))
    largest: Float64 = np.maximum.reduceat(error, paths.begin[:-1])
    return axes.origin + mean_height[:, None] * axes.axis, radius, largest


def _fit_axes(paths: _Paths) -> SurfaceArray:
    """Fit a circle to the points of each path and return the cylinder around it, with radius 0.

    Source:
        Kåsa, "A circle fitting procedure and its error analysis", IEEE Trans. Instrum. Meas. 25, 1976.
    """
    count, path, begin = paths.count, paths.path, paths.begin[:-1]
    middle = np.add.reduceat(paths.point, begin) / np.bincount(path, minlength=count)[:, None]
    offset = paths.point - middle[path]
    scale = np.maximum(np.maximum.reduceat(lengths(offset), begin), _MIN_RADIUS_MM)
    offset = offset / scale[path][:, None]
    covariance = np.stack(
        [[np.bincount(path, offset[:, i] * offset[:, j], count) for j in range(3)] for i in range(3)]
    ).transpose(2, 0, 1)
    _, vectors = np.linalg.eigh(covariance)
    axis, u, v = vectors[:, :, 0], vectors[:, :, 2], vectors[:, :, 1]
    x = np.einsum("ij,ij->i", offset, u[path])
    y = np.einsum("ij,ij->i", offset, v[path])
    columns = [x, y, np.ones_like(x)]
    square = x * x + y * y
    products = np.stack([[sum_by_label(path, p * q, count) for q in columns] for p in columns]).transpose(2, 0, 1)
    right = np.stack([sum_by_label(path, p * square, count) for p in columns], axis=1)
    solution = np.linalg.solve(products + np.eye(3) * _REGULARIZATION, right[..., None])[..., 0] / 2
    origin = middle + scale[:, None] * (solution[:, :1] * u + solution[:, 1:2] * v)
    kind = np.full(count, SurfaceKind.CYLINDER, np.int8)
    return SurfaceArray(kind, origin, axis, np.zeros(count), np.zeros(count))
