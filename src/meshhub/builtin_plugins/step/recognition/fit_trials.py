"""Groups of facets, tried as surfaces of one kind: fitted, and judged whether they are that beyond doubt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.recognition.fitting import DEPTH_RATIO, FitLimits, fit_surfaces
from meshhub.builtin_plugins.step.recognition.sample_blocks import Samples, group_extents, select_groups
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceArray, SurfaceKind, gradients, make_planes
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

FEWEST_FACETS = {SurfaceKind.CYLINDER: 3, SurfaceKind.SPHERE: 5, SurfaceKind.CONE: 4, SurfaceKind.TORUS: 6}
FEWEST_POINTS = {SurfaceKind.CYLINDER: 7, SurfaceKind.SPHERE: 8, SurfaceKind.CONE: 9, SurfaceKind.TORUS: 12}
_OF_SIZE = 1e-5
_OF_DEPTH_SCARCE = 0.005
TILT = np.cos(np.radians(20.0))
LEANING = float(np.cos(np.radians(80.0)))
_MOST_LEANING = 0.1
DEEPER = 4.0
_LARGEST = 20.0
_THINNEST_RING = 0.02
_GLANCE = 1024
_LARGE = 4 * _GLANCE

Mask = NDArray[np.bool_]


class Tried(NamedTuple):
    """What became of groups of facets that were fitted.

    surfaces: (g,)
    limit:    (g,) how far the points of each may lie off
    good:     (g,) whether it is that surface beyond doubt
    lost:     (g,) whether its points are on no such surface, nor are those of a group that it is part of
    """

    surfaces: SurfaceArray
    limit: Float64
    good: Mask
    lost: Mask


class Trials:
    """What decides for one mesh.

    tolerance: what rounding explains; given: the distance that was asked for, which then counts instead
    """

    def __init__(self, graph: FacetGraph, tolerance: float, given: float | None) -> None:
        self.graph = graph
        self.tolerance = tolerance
        self.given = given

    def likely(self, kind: SurfaceKind, piece: IntIndex, facet: IntIndex) -> IntIndex:
        """The facets without those of large pieces that are no surface of that kind, as a part of their facets tells.

        piece: (n,) the piece of each facet, ascending
        """
        first = np.flatnonzero(np.diff(piece, prepend=-1))
        size = np.diff(first, append=len(piece))
        large = np.flatnonzero(size > _LARGE)
        if len(large) == 0:
            return facet
        taken = [
            facet[begin : begin + many : many // _GLANCE] for begin, many in zip(first[large], size[large], strict=True)
        ]
        group = np.repeat(np.arange(len(large)), [len(some) for some in taken])
        samples = self.graph.collect_samples(group, np.concatenate(taken), len(large))
        limits = self._limits(kind, size[large], group_extents(samples))
        lost = fit_surfaces(samples, kind, limits)[1] > 2 * limits.allowed
        gone = np.zeros(len(size), np.bool_)
        gone[large[lost]] = True
        return facet[~np.repeat(gone, size)]

    def tried(self, kind: SurfaceKind, group: IntIndex, facet: IntIndex, count: int) -> Tried:
        """Fit each group; group, facet: (n,) pairs in ascending order.

        Most groups are none, and what is seen of that early saves what would be asked later.
        """
        samples = self.graph.collect_samples(group, facet, count)
        facets = np.bincount(group, minlength=count)
        points = np.bincount(samples.group, minlength=count)
        surfaces = make_planes(np.zeros((count, 3)), np.zeros((count, 3)))
        limit, good, lost = np.zeros(count), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        index = np.flatnonzero((facets >= FEWEST_FACETS[kind]) & (points >= FEWEST_POINTS[kind]))
        if len(index) == 0:
            return Tried(surfaces, limit, good, lost)
        samples, facet = _some(samples, facet, index)
        size = group_extents(samples)
        limits = self._limits(kind, facets[index], size)
        made, worst = fit_surfaces(samples, kind, limits)
        lost[index] = ~(worst <= limits.allowed)
        near = np.flatnonzero(~lost[index])
        if len(near) == 0:
            return Tried(surfaces, limit, good, lost)
        samples, facet = _some(samples, facet, near)
        index, made = index[near], made.take(near)
        surfaces = surfaces.replace_rows(index, made)
        limit[index], fine = self._judged(kind, samples, facet, made, limits.take(near), size[near])
        good[index] = fine & (worst[near] <= limit[index])
        return Tried(surfaces, limit, good, lost)

    def _limits(self, kind: SurfaceKind, facets: IntIndex, size: Float64) -> FitLimits:
        """How far the points of groups of so many facets, and of such extents, may lie off."""
        count = len(facets)
        if self.given is not None:
            return FitLimits(np.full(count, self.given), np.full(count, DEPTH_RATIO), np.zeros(count))
        # few facets prove little: they must fit as well as rounding lets them
        scarce = facets < 2 * FEWEST_FACETS[kind]
        return FitLimits(
            np.maximum(self.tolerance * 4, _OF_SIZE * size),
            np.where(scarce, _OF_DEPTH_SCARCE, DEPTH_RATIO),
            np.where(scarce, self.tolerance, 0.0),
        )

    def _judged(
        self,
        kind: SurfaceKind,
        samples: Samples,
        facet: IntIndex,
        surfaces: SurfaceArray,
        limits: FitLimits,
        size: Float64,
    ) -> tuple[Float64, Mask]:
        """How far the points of each group may lie off the surface that fits it, and whether its facets agree."""
        graph, group, count = self.graph, samples.normal_group, samples.groups
        gap, normal = gradients(surfaces.take(group), graph.probe[facet])
        facing = np.einsum("ij,ij->i", normal, graph.normal[facet])
        begin = np.searchsorted(group, np.arange(count))
        sliver = graph.is_sliver[facet]
        steady = (np.abs(facing) >= TILT) & ~sliver
        depth = np.maximum.reduceat(np.where(steady, np.abs(gap), 0.0), begin)
        leaning = graph.is_triangle[facet] & (np.abs(facing) >= LEANING) & (np.abs(gap) <= depth[group])
        out = np.logical_and.reduceat(((facing > 0) & (steady | leaning)) | sliver, begin)
        into = np.logical_and.reduceat(((facing < 0) & (steady | leaning)) | sliver, begin)
        limit = limits.for_depth(depth)
        few = np.bincount(group, leaning & ~steady, count) <= _MOST_LEANING * np.bincount(group, minlength=count)
        good = (out | into) & few & ~_capped(np.abs(gap), graph.is_broad[facet], sliver, begin)
        good &= plausible(kind, surfaces, samples, size, limit)
        return limit, good


def _some(samples: Samples, facet: IntIndex, groups: IntIndex) -> tuple[Samples, IntIndex]:
    """The samples of some groups, renumbered, and their facets."""
    if len(groups) == samples.groups:
        return samples, facet
    wanted = np.zeros(samples.groups, np.bool_)
    wanted[groups] = True
    return select_groups(samples, groups), facet[wanted[samples.normal_group]]


def plausible(kind: SurfaceKind, surfaces: SurfaceArray, samples: Samples, size: Float64, limit: Float64) -> Mask:
    """Whether surfaces of one kind are such as somebody designs: not next to flat, nor folded over at an axis or a tip.

    size: (g,) the extent of the points of each; limit: (g,) how far those may lie off
    """
    good: Mask = (surfaces.radius > 0) & (surfaces.radius < _LARGEST * size)
    if kind == SurfaceKind.TORUS:
        # of one whose tube is thicker than its ring, as where a fillet nearly makes a ball, the outer side is meant
        good &= (surfaces.second > 1e-3 * size) & (surfaces.radius > _THINNEST_RING * surfaces.second)
        good &= np.abs(surfaces.radius - surfaces.second) > 0.01 * surfaces.second
    if kind == SurfaceKind.CONE:
        height = np.einsum("ij,ij->i", samples.point - surfaces.origin[samples.group], surfaces.axis[samples.group])
        reach = surfaces.radius[samples.group] + height * surfaces.second[samples.group]
        begin = np.searchsorted(samples.group, np.arange(samples.groups))
        good &= np.minimum.reduceat(reach, begin) >= -limit
        good &= (np.abs(surfaces.second) > 1e-3) & (np.abs(surfaces.second) < 100)
    return good


def _capped(depth: Float64, broad: Mask, sliver: Mask, begin: IntIndex) -> Mask:
    """Whether a group has a broad facet much deeper below its surface than the other facets are.

    The corners of a flat end lie on the surface whose rim they are, on a shallow cone for one; its middle tells.
    """
    fine = np.maximum.reduceat(np.where(broad | sliver, 0.0, depth), begin)
    wide = np.maximum.reduceat(np.where(broad & ~sliver, depth, 0.0), begin)
    made: Mask = (fine > 0) & (wide > DEEPER * fine)
    return made
