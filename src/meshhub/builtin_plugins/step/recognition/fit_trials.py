"""Try groups of facets as surfaces of one kind: fit the surface, and decide whether the group is on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.facets.planar import MAX_DEVIATION_RATIO
from meshhub.builtin_plugins.step.recognition.deviation import MAX_COARSE_RATIO, MAX_SAGITTA_RATIO, SAGITTA_RATIO
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import normalize
from meshhub.builtin_plugins.step.surfaces.fitting import DEPTH_RATIO, FitLimits, fit_surfaces
from meshhub.builtin_plugins.step.surfaces.kinds import TRIALS
from meshhub.builtin_plugins.step.surfaces.sample_blocks import (
    Samples,
    group_extents,
    group_starts,
    select_groups,
)
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind, make_planes
from meshhub.builtin_plugins.step.surfaces.surfaces import cylindrical, gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_EXTENT_RATIO = 1e-5
"""Distance that the points of a group may have from their surface, as a share of the extent of the group, if that is
more than rounding explains."""

_SCARCE_DEPTH_RATIO = 0.005
"""Distance that the points of a group may have from their surface, as a share of the depth, if the group has fewer than
twice the minimum of facets."""

MIN_STEADY_COSINE = float(np.cos(np.radians(20.0)))
"""Cosine of 20°: maximum angle between a facet and its surface. It exceeds half of 30.5°, the angle at which the chord
of the widest facet leans."""

MIN_LEANING_COSINE = float(np.cos(np.radians(80.0)))
"""Cosine of 80°: maximum angle between a surface and a triangle whose corners are all on an oblique rim."""

_MAX_LEANING_RATIO = 0.1
"""Share of the facets of a group that may lean."""

FLAT_FACE_RATIO = 4.0
"""Depth, area or number of latitudes of a facet over that of the other facets of a surface, from which the facet is a
flat face: the end of a cylinder, a flat that was milled across a round wall, a straight wall between rounded ends.
"""

MAX_DEEPER_RATIO = 2.0
"""Depth of a facet over that of the deepest other one, up to which it belongs to the surface: it is coarser, was cut,
or its border hides half a turn.
"""

EVEN_RATIO = 1.25
"""Ratio of two steps, turns or sagittas up to which they are equal; tessellators make equal steps."""

MIN_FACING_COSINE = float(np.cos(np.radians(45.0)))
"""Cosine of 45°: angle between a triangle and its surface, from which the triangle belongs to another surface, or its
normal is noise.
"""

_MAX_RADIUS_RATIO = 20.0
"""Ratio of radius to extent above which a surface is nearly flat, so that any slightly bent group fits it."""

_MIN_RING_RATIO = 0.02
"""Minimum ratio of the larger radius of a torus to its tube radius; below it, the torus is a sphere."""

_MIN_HORN_GAP_RATIO = 0.01
"""Minimum difference of the two radii of a torus, per tube radius; equal radii pinch the torus to a point at its axis.
"""

_MIN_LATITUDE_COUNT = 5
"""Latitudes from which a torus may have uneven steps. Fewer latitudes can lie on a torus by chance: the three rims of a
chamfered pin always do, and so do the four of a hole with two equal chamfers."""

_MIN_TRIANGLE_COUNT = 12
"""Minimum triangles of a cylinder that has no other facets and turns by less than `_MIN_TRIANGLE_TURN_RAD`."""

_MIN_TRIANGLE_TURN_RAD = np.radians(30.0)
"""Radians; a piece of a chamfer at an edge of radius 365 mm fits a cylinder of radius 520 mm that leans by 45°. True
cylinders that turn by less have facets with four corners."""

_MIN_SLOPE_RATIO, _MAX_SLOPE_RATIO = 1e-3, 100.0
"""Slopes of a cone (0.06° and 89.4° from the axis), and least tube radius of a torus over the extent of its group;
outside of this range, they are other surfaces.
"""

_GLANCE_COUNT = 1024
"""Facets of a large piece that are fitted first."""

_MIN_LARGE_COUNT = 4 * _GLANCE_COUNT
"""Facets above which a piece is large; fitting only a part of a smaller piece saves little."""

Mask = NDArray[np.bool_]


class TrialResults(NamedTuple):
    """Results of the trials of groups of facets.

    surfaces: (g,) fitted surfaces; planes for groups that were not fitted
    limit:    (g,) maximum distance of the points of a group from its surface, mm
    good:     (g,) whether the group is on its surface
    lost:     (g,) whether no surface of that kind fits the points, nor those of a larger group that includes them
    """

    surfaces: SurfaceArray
    limit: Float64
    good: Mask
    lost: Mask


class Trials:
    """Trials on one mesh.

    Args:
        graph: Facets of the mesh.
        tolerance: Distance in millimeters that rounding explains.
        requested: Distance in millimeters that points may have from their surface, instead of `tolerance`: the option
            `step_tolerance_mm`.
    """

    def __init__(self, graph: FacetGraph, tolerance: float, requested: float | None) -> None:
        self.graph = graph
        self.tolerance = tolerance
        self.requested = requested

    def select_hopeful_pieces(self, kind: SurfaceKind, piece: IntIndex, facet: IntIndex) -> Mask:
        """Select pieces that may be on a surface of a kind; large ones are judged by a part of their facets.

        Args:
            kind: Kind of the surfaces.
            piece: (n,) piece of each facet, ascending.
            facet: (n,) facets.
        Returns:
            (n,) whether the piece of a facet is selected.
        """
        first = np.flatnonzero(np.diff(piece, prepend=-1))
        size = np.diff(first, append=len(piece))
        large = np.flatnonzero(size > _MIN_LARGE_COUNT)
        if len(large) == 0:
            return np.ones(len(facet), np.bool_)
        samples_of = [
            facet[begin : begin + count : count // _GLANCE_COUNT]
            for begin, count in zip(first[large], size[large], strict=True)
        ]
        group = np.repeat(np.arange(len(large)), [len(part) for part in samples_of])
        samples = self.graph.collect_samples(group, np.concatenate(samples_of), len(large))
        limits = self._limits(kind, size[large], group_extents(samples))
        is_lost = fit_surfaces(samples, kind, limits)[1] > 2 * limits.allowed
        is_dropped = np.zeros(len(size), np.bool_)
        is_dropped[large[is_lost]] = True
        return ~np.repeat(is_dropped, size)

    def fit_groups(self, kind: SurfaceKind, group: IntIndex, facet: IntIndex, count: int) -> TrialResults:
        """Fit each group, and decide whether it is a surface of that kind.

        Most groups are not, so each check handles only the groups that passed the checks before.

        Args:
            kind: Kind of the surfaces.
            group: (n,) group of each facet, 0…count-1, ascending.
            facet: (n,) facets, ascending within a group.
            count: Number of groups.
        """
        samples = self.graph.collect_samples(group, facet, count)
        facets = np.bincount(group, minlength=count)
        points = np.bincount(samples.group, minlength=count)
        surfaces = make_planes(np.zeros((count, 3)), np.zeros((count, 3)))
        limit, good, lost = np.zeros(count), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        index = np.flatnonzero((facets >= TRIALS[kind].min_facets) & (points >= TRIALS[kind].min_points))
        if len(index) == 0:
            return TrialResults(surfaces, limit, good, lost)
        samples, facet = _select(samples, facet, index)
        size = group_extents(samples)
        limits = self._limits(kind, facets[index], size)
        fitted, worst = fit_surfaces(samples, kind, limits)
        lost[index] = ~(worst <= limits.allowed)
        near = np.flatnonzero(~lost[index])
        if len(near) == 0:
            return TrialResults(surfaces, limit, good, lost)
        samples, facet = _select(samples, facet, near)
        index, fitted, limits = index[near], fitted.take(near), limits.take(near)
        surfaces = surfaces.replace_rows(index, fitted)
        limit[index], agrees = self._check_facets(samples, facet, fitted, limits)
        agrees &= is_plausible(kind, fitted, samples, size[near], limit[index])
        if traits.HAS_TUBE[kind]:
            agrees = has_even_steps(self.graph, fitted, samples.normal_group, facet, agrees)
        good[index] = agrees & (worst[near] <= limit[index])
        return TrialResults(surfaces, limit, good, lost)

    def select_certain(self, kind: SurfaceKind, group: IntIndex, facet: IntIndex, count: int) -> Mask:
        """Select groups that do not fit by chance, as a few triangles that hardly turn fit a cylinder or a cone.

        With a requested tolerance, all groups are selected, because noise triangulates each strip.

        Args:
            kind: Kind of the surfaces.
            group: (n,) group of each facet, 0…count-1, ascending.
            facet: (n,) facets.
            count: Number of groups.
        """
        if kind != SurfaceKind.CYLINDER or self.requested is not None or count == 0:
            return np.ones(count, np.bool_)
        graph = self.graph
        begin = np.searchsorted(group, np.arange(count))
        is_steady = ~graph.is_sliver[facet]
        weighted = graph.normal[facet] * (graph.area[facet] * is_steady)[:, None]
        mean = normalize(np.add.reduceat(weighted, begin))
        cosine = np.einsum("ij,ij->i", graph.normal[facet], mean[group])
        turned = np.minimum.reduceat(np.where(is_steady, cosine, 1.0), begin)
        has_many = np.bincount(group, minlength=count) >= _MIN_TRIANGLE_COUNT
        has_strips = np.logical_or.reduceat(~graph.is_triangle[facet] & is_steady, begin)
        result: Mask = has_many | has_strips | (turned <= np.cos(_MIN_TRIANGLE_TURN_RAD / 2))
        return result

    def allowed_distances(self, size: Float64) -> Float64:
        """Return the distance (g,) in mm that the points of groups of these extents (g,) may always have from them."""
        if self.requested is not None:
            return np.full(len(size), self.requested)
        return np.maximum(self.tolerance * MAX_DEVIATION_RATIO, _EXTENT_RATIO * size)

    def _limits(self, kind: SurfaceKind, facets: IntIndex, size: Float64) -> FitLimits:
        """Return the limits of groups with (g,) numbers of facets and (g,) extents."""
        allowed = self.allowed_distances(size)
        if self.requested is not None:
            return FitLimits(allowed, np.full(len(size), DEPTH_RATIO), np.zeros(len(size)))
        # few facets may fit by chance, so only rounding may separate them from the surface
        is_scarce = facets < 2 * TRIALS[kind].min_facets
        return FitLimits(
            allowed,
            np.where(is_scarce, _SCARCE_DEPTH_RATIO, DEPTH_RATIO),
            np.where(is_scarce, self.tolerance, 0.0),
        )

    def _check_facets(
        self, samples: Samples, facet: IntIndex, surfaces: SurfaceArray, limits: FitLimits
    ) -> tuple[Float64, Mask]:
        """Check that the facets of each group follow its surface, all on one side of it.

        Returns:
            Maximum distance (g,) of the points of each group in mm, and the mask (g,) of groups whose facets agree.
        """
        graph, group, count = self.graph, samples.normal_group, samples.groups
        gap, normal = gradients(surfaces.take(group), graph.probe[facet])
        facing = np.einsum("ij,ij->i", normal, graph.normal[facet])
        begin = np.searchsorted(group, np.arange(count))
        is_sliver = graph.is_sliver[facet]
        is_steady = (np.abs(facing) >= MIN_STEADY_COSINE) & ~is_sliver
        depth = np.maximum.reduceat(np.where(is_steady, np.abs(gap), 0.0), begin)
        is_leaning = graph.is_triangle[facet] & (np.abs(facing) >= MIN_LEANING_COSINE) & (np.abs(gap) <= depth[group])
        follows = is_steady | is_leaning
        is_outward = np.logical_and.reduceat(((facing > 0) & follows) | is_sliver, begin)
        is_inward = np.logical_and.reduceat(((facing < 0) & follows) | is_sliver, begin)
        leaning = np.bincount(group, is_leaning & ~is_steady, count)
        agrees = (is_outward | is_inward) & (leaning <= _MAX_LEANING_RATIO * np.bincount(group, minlength=count))
        bulge = np.where(is_sliver, 0.0, np.abs(gap) / graph.extent[facet])
        agrees &= _are_chords(bulge, group, begin) & ~_has_flat_end(
            np.abs(gap), graph.is_broad[facet], is_sliver, begin
        )
        return limits.for_depth(depth), agrees


def _select(samples: Samples, facet: IntIndex, groups: IntIndex) -> tuple[Samples, IntIndex]:
    """Return the samples of some groups, renumbered, and their facets."""
    if len(groups) == samples.groups:
        return samples, facet
    is_selected = np.zeros(samples.groups, np.bool_)
    is_selected[groups] = True
    return select_groups(samples, groups), facet[is_selected[samples.normal_group]]


def is_plausible(kind: SurfaceKind, surfaces: SurfaceArray, samples: Samples, size: Float64, limit: Float64) -> Mask:
    """Return which surfaces are plausible in a CAD design: neither nearly flat nor folded over at an axis or a tip.

    Args:
        kind: Kind of all surfaces.
        surfaces: (g,) surfaces.
        samples: Points of the (g,) groups.
        size: (g,) `group_extents` of the groups.
        limit: (g,) maximum distance of points from their surface, mm.
    """
    good: Mask = (surfaces.radius > 0) & (surfaces.radius < _MAX_RADIUS_RATIO * size)
    if traits.HAS_TUBE[kind]:
        # a tube thicker than the ring is plausible: a fillet that nearly makes a ball is the outer side of such a torus
        good &= (surfaces.second > _MIN_SLOPE_RATIO * size) & (surfaces.radius > _MIN_RING_RATIO * surfaces.second)
        good &= np.abs(surfaces.radius - surfaces.second) > _MIN_HORN_GAP_RATIO * surfaces.second
    if traits.HAS_SLOPE[kind]:
        height = np.einsum("ij,ij->i", samples.point - surfaces.origin[samples.group], surfaces.axis[samples.group])
        reach = surfaces.radius[samples.group] + height * surfaces.second[samples.group]
        good &= np.minimum.reduceat(reach, group_starts(samples)) >= -limit
        good &= (np.abs(surfaces.second) > _MIN_SLOPE_RATIO) & (np.abs(surfaces.second) < _MAX_SLOPE_RATIO)
    return good


def has_even_steps(graph: FacetGraph, tori: SurfaceArray, group: IntIndex, facet: IntIndex, candidates: Mask) -> Mask:
    """Return which candidates among the groups follow their torus in even steps around the tube.

    Args:
        graph: Facets of the mesh.
        tori: (g,) surfaces.
        group: (n,) group of each facet, 0…g-1, ascending.
        facet: (n,) facets.
        candidates: (g,) groups to examine.
    """
    is_steady = candidates[group] & ~graph.is_sliver[facet]
    result = np.zeros(len(tori), np.bool_)
    if not is_steady.any():
        return result
    group, facet = group[is_steady], facet[is_steady]
    owner, point = graph.expand(facet)
    begin = np.searchsorted(owner, np.arange(len(facet)))
    corner, middle = (
        _tube_angles(tori.take(rows), points)
        for rows, points in ((group[owner], graph.points[point]), (group, graph.probe[facet]))
    )
    # relative to the facet, so that the jump from π to -π does not matter
    latitude = np.mod(corner - middle[owner] + np.pi, 2 * np.pi) - np.pi
    span = np.maximum.reduceat(latitude, begin) - np.minimum.reduceat(latitude, begin)
    order = np.lexsort((corner, group[owner]))
    bounds, corner_bounds = (np.searchsorted(labels, np.arange(len(tori) + 1)) for labels in (group, group[owner]))
    for torus in np.unique(group).tolist():
        spans = span[bounds[torus] : bounds[torus + 1]]
        median = float(np.median(spans))
        ascending = corner[order[corner_bounds[torus] : corner_bounds[torus + 1]]]
        steps = np.diff(_separate(ascending, median / FLAT_FACE_RATIO))
        if len(steps) + 1 < _MIN_LATITUDE_COUNT:
            result[torus] = len(steps) > 1 and steps.max() <= EVEN_RATIO * steps.min()
        else:
            result[torus] = spans.max() <= FLAT_FACE_RATIO * median
    return result


def _separate(ascending: Float64, step: float) -> Float64:
    """Return the first of some ascending numbers (n,), and then each next one that exceeds the last by over a step.

    Differences between neighbors do not suffice, because those between corners of irregular triangles are all below a
    step.
    """
    chosen = [0]
    while (following := int(np.searchsorted(ascending, ascending[chosen[-1]] + step, "right"))) < len(ascending):
        chosen.append(following)
    return ascending[chosen]


def _tube_angles(tori: SurfaceArray, points: Float64) -> Float64:
    """Return the angles (n,) of points around the tubes of their tori, radians."""
    height, distance, _ = cylindrical(tori, points)
    angles: Float64 = np.arctan2(height, distance - tori.radius)
    return angles


def _are_chords(bulge: Float64, group: IntIndex, begin: IntIndex) -> Mask:
    """Return which groups have facets that are chords of their surface, as `find_deviating` expects of triangles.

    Args:
        bulge: (n,) depth over extent of each facet.
        group: (n,) group of each facet, 0…g-1, ascending.
        begin: (g,) position where each group begins.
    """
    coarse = np.bincount(group, bulge > SAGITTA_RATIO, len(begin))
    few: Mask = coarse <= MAX_COARSE_RATIO * np.bincount(group, minlength=len(begin))
    return few & (np.maximum.reduceat(bulge, begin) <= MAX_SAGITTA_RATIO)


def _has_flat_end(depth: Float64, is_broad: Mask, is_sliver: Mask, begin: IntIndex) -> Mask:
    """Return which groups have a broad facet much deeper below the surface than the other facets.

    Unlike its corners, the middle of a flat end is not on the surface that it closes, for example a shallow cone.

    Args:
        depth: (n,) depths of the facets.
        is_broad: (n,) `FacetGraph.is_broad`.
        is_sliver: (n,) `FacetGraph.is_sliver`.
        begin: (g,) position where each group begins.
    """
    usual = np.maximum.reduceat(np.where(is_broad | is_sliver, 0.0, depth), begin)
    broad = np.maximum.reduceat(np.where(is_broad & ~is_sliver, depth, 0.0), begin)
    result: Mask = (usual > 0) & (broad > FLAT_FACE_RATIO * usual)
    return result
