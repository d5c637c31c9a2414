"""Curves of edges: lines, circles, and splines where two surfaces intersect in neither."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.rim_curves import FRACTIONS
from meshhub.builtin_plugins.step.solids.edge_circles import CircleAxis, Circles, fit_circles
from meshhub.builtin_plugins.step.solids.edge_paths import Paths, Sides, collect_paths, drop_near_points, merge_paths
from meshhub.builtin_plugins.step.solids.edge_splines import interpolate_paths, refine_splines
from meshhub.builtin_plugins.step.solids.tolerances import MAX_GAP_MM
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import gradients, project_onto_both
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_BULGE_RATIO = 0.15
"""Distance of the intersection from a segment, as a share of its length; beyond it the surfaces meet elsewhere."""
_MAX_CHORD_SAGITTA_RATIO = 0.05
"""Distance of a segment from a surface, and way by which rounding may move the intersection of touching surfaces, as a
share of its length, up to which it may stay straight."""
_MAX_SAGITTA_RATIO = 2.5e-4
"""The same, as a share of the model's diagonal: CAD programs take the distance as the tolerance of the edge."""
_MAX_RULING_OFFSET_RATIO = 4.0
"""Offset of a line of a cylinder or a cone over the limit of the surfaces; both ends may be off by the limit."""
_TANGENT_SINE = np.sin(np.radians(6.0))
"""Sine of the angle between two surfaces below which rounding may move their intersection far."""
_MIN_SINE = np.sin(np.radians(0.5))
"""The same, below which it does so in any case."""
Mask = NDArray[np.bool_]


class CurveKind(IntEnum):
    """Geometry of an edge."""

    LINE = 0
    CIRCLE = 1
    SPLINE = 2


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
    """Return the regions on the two sides of each edge, (e,) each; the same twice for an edge on the border."""
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
    bad, chords = np.zeros((2, count), np.bool_)
    size = np.zeros(count, np.intp)
    bent = np.flatnonzero(regions.curved[left] | regions.curved[right])
    if len(bent) == 0:
        return Curves(kind, center, axis, radius, bad, chords, np.zeros(count + 1, np.intp), np.empty((0, 3)))
    sides = Sides(regions.surfaces.take(left[bent]), regions.surfaces.take(right[bent]))
    limit = np.maximum(regions.limit[left[bent]], regions.limit[right[bent]])
    path = drop_near_points(collect_paths(skin, outline, chain[bent]), limit)
    max_sagitta_mm = _MAX_SAGITTA_RATIO * float(lengths(np.ptp(skin.points, axis=0)[None])[0])
    kind[bent], bad[bent], chords[bent], circles, splines = _fit_paths(path, sides, limit, max_sagitta_mm)
    center[bent], axis[bent], radius[bent] = circles.center, circles.axis, circles.radius
    size[bent] = np.diff(splines.begin)
    return Curves(kind, center, axis, radius, bad, chords, np.concatenate([[0], np.cumsum(size)]), splines.point)


class _PathCurves(NamedTuple):
    """Curves of n paths, as in `Curves`; the paths of `splines` without one are empty."""

    kind: NDArray[np.int8]
    bad: Mask
    chords: Mask
    circles: Circles
    splines: Paths


def _fit_paths(path: Paths, sides: Sides, limit: Float64, max_sagitta_mm: float) -> _PathCurves:
    """Return the curves of paths beside curved surfaces.

    Args:
        path: Points of the edges.
        sides: (n,) surfaces on both sides.
        limit: (n,) mm that points may lie off them.
        max_sagitta_mm: How far the straight segments of an edge may lie off them.
    """
    seems_straight = _are_straight(path, sides, limit)
    straight = seems_straight & _can_be_straight(path, sides, limit)
    smooth, is_smooth = interpolate_paths(path.select(~straight), sides, limit)
    refined, fault = _refine_paths(path.select(~is_smooth & ~straight), sides, limit)
    refined = merge_paths(merge_paths(refined, smooth), path.select(straight))
    circles = fit_circles(path, refined, sides, limit)
    # a circle about the axis of a surface needs no points of the intersection, which are ill-defined near tangency
    circle = (circles.source == CircleAxis.SURFACE) | ((circles.source == CircleAxis.FITTED) & ~fault)
    circle &= ~straight
    straight |= seems_straight & fault & ~circle
    chords = fault & ~circle & _are_near_surfaces(path, sides, max_sagitta_mm)
    straight |= chords & (np.diff(path.begin) == 2)
    bad = fault & ~straight & ~circle
    spline = ~straight & ~circle & ~bad
    kind = np.select([circle, spline], [np.int8(CurveKind.CIRCLE), np.int8(CurveKind.SPLINE)], np.int8(CurveKind.LINE))
    splines = refine_splines(refined, sides, spline & ~is_smooth).select(spline)
    return _PathCurves(kind, bad, chords & bad, circles, splines)


def _are_straight(paths: Paths, sides: Sides, limit: Float64) -> Mask:
    """Return the mask (n,) of paths whose points lie on their chord, and the chord on both surfaces."""
    start, stop = paths.point[paths.begin[:-1]], paths.point[paths.begin[1:] - 1]
    result: Mask = _are_on_chords(paths, limit) & (_measure_chords(sides, start, stop) <= limit)
    return result


def _are_on_chords(paths: Paths, limit: Float64) -> Mask:
    """Return the mask (n,) of paths whose points lie on their chord."""
    start, stop = paths.point[paths.begin[:-1]], paths.point[paths.begin[1:] - 1]
    chord = stop - start
    direction = normalize(chord)
    offset = paths.point - start[paths.path]
    along = np.einsum("ij,ij->i", offset, direction[paths.path])
    distance = lengths(offset - along[:, None] * direction[paths.path])
    result: Mask = (np.maximum.reduceat(distance, paths.begin[:-1]) <= limit) & (lengths(chord) > 0)
    return result


def _measure_chords(sides: Sides, start: Float64, stop: Float64) -> Float64:
    """Return the largest distance (n,) in mm of points on each chord from both surfaces of its path."""
    points = start + FRACTIONS[:, None, None] * (stop - start)
    owner = np.tile(np.arange(len(start)), len(FRACTIONS))
    largest: Float64 = sides.distances(points.reshape(-1, 3), owner).reshape(len(FRACTIONS), -1).max(axis=0)
    return largest


def _can_be_straight(paths: Paths, sides: Sides, limit: Float64) -> Mask:
    """Return the mask (n,) of chords that are as good as on both surfaces, or in whose direction both contain lines.

    The chord of a short arc lies within the limit of the surfaces, too, but CAD programs fail to fillet edges that do
    not lie on their faces.
    """
    start, stop = paths.point[paths.begin[:-1]], paths.point[paths.begin[1:] - 1]
    result: Mask = _measure_chords(sides, start, stop) <= MAX_GAP_MM
    result |= _contain_lines(sides.left, start, stop, limit) & _contain_lines(sides.right, start, stop, limit)
    return result


def _contain_lines(surfaces: SurfaceArray, start: Float64, stop: Float64, limit: Float64) -> Mask:
    """Return the mask (n,) of cylinders, cones, spheres and tori that may contain the lines between points (n, 3).

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
    is_round = traits.HAS_CENTER[surfaces.kind]
    is_round |= (surfaces.kind == SurfaceKind.CYLINDER) & (across > allowed)
    is_round |= traits.HAS_SLOPE[surfaces.kind] & ~(height <= allowed)
    return ~is_round


def _are_near_surfaces(paths: Paths, sides: Sides, max_sagitta_mm: float) -> Mask:
    """Return the mask (n,) of paths whose straight segments are close enough to both surfaces to stay straight.

    Where a facet that stays planar meets a curved surface nearly tangentially, the intersection deviates far from the
    edge of the mesh. The edge deviates from the surface only by its sagitta.
    """
    path, start, stop = paths.segments()
    sagitta = sides.distances((start + stop) / 2, path)
    near = np.ones(paths.count, np.bool_)
    near[path[(sagitta > _MAX_CHORD_SAGITTA_RATIO * lengths(stop - start)) | (sagitta > max_sagitta_mm)]] = False
    return near


def _refine_paths(paths: Paths, sides: Sides, limit: Float64) -> tuple[Paths, Mask]:
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
    tangent &= (sine < _MIN_SINE) | (limit[owner] > _MAX_CHORD_SAGITTA_RATIO * length * sine)
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
    return Paths(refined_begin, refined_path, refined_point), fault
