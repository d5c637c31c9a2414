"""Surfaces and the facets that they claim: growth over neighbors, and union of equal surfaces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.facet_graph import MAX_SMOOTH_TURN_RAD, FacetGraph
from meshhub.builtin_plugins.step.facets.planar import number_labels
from meshhub.builtin_plugins.step.recognition.deviation import MAX_SAGITTA_RATIO
from meshhub.builtin_plugins.step.recognition.fit_trials import (
    FLAT_FACE_RATIO,
    MAX_DEEPER_RATIO,
    MIN_FACING_COSINE,
    MIN_LEANING_COSINE,
    MIN_STEADY_COSINE,
    TrialResults,
    Trials,
)
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind, concatenate, make_planes
from meshhub.builtin_plugins.step.surfaces.surfaces import cylindrical, gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

_MAX_DEPTH_RATIO = float(1 - np.cos(MAX_SMOOTH_TURN_RAD / 2))
"""Depth over radius of a facet as wide as those of a ring of twelve; wider ones are flats."""

MAX_GROW_ROUNDS = 200
"""Rounds in which a surface grows by one ring of facets; bounds the time."""

UNITE_LIMIT_RATIO = 3.0
"""Limits within which the points of one surface lie on another if both are the same: the fits differ by rounding."""

Mask = NDArray[np.bool_]


@dataclass
class Claims:
    """Recognized surfaces, and the facets of each.

    graph:    facets of the mesh
    trials:   trials on the mesh
    surfaces: (s,) recognized surfaces
    limit:    (s,) millimeters that a point may lie off
    segment:  (f,) surface of each facet, -1 for free facets
    """

    graph: FacetGraph
    trials: Trials
    surfaces: SurfaceArray
    limit: Float64
    segment: IntIndex

    @classmethod
    def start(cls, graph: FacetGraph, trials: Trials) -> Claims:
        """Return claims without a surface: all facets are free."""
        planes = make_planes(np.empty((0, 3)), np.empty((0, 3)))
        return cls(graph, trials, planes, np.empty(0), np.full(graph.count, -1, np.intp))

    def copy(self) -> Claims:
        """Return claims that continue from this state, and do not change it."""
        return replace(self, segment=self.segment.copy())

    def take(self, kind: SurfaceKind, results: TrialResults, group: IntIndex, facet: IntIndex) -> None:
        """Add the good groups as surfaces, let them grow, and unite surfaces that are the same."""
        if not results.good.any():
            return
        base = len(self.surfaces)
        self.add(results, group, facet)
        self.grow(base)
        self.unite(kind)

    def add(self, results: TrialResults, group: IntIndex, facet: IntIndex) -> None:
        """Add the surfaces of the good groups, and assign the facets of these groups."""
        good = results.good
        is_assigned = good[group]
        number = np.cumsum(good) - 1 + len(self.surfaces)
        self.segment[facet[is_assigned]] = number[group[is_assigned]]
        self.surfaces = concatenate([self.surfaces, results.surfaces.take(good)])
        self.limit = np.concatenate([self.limit, results.limit[good]])

    def grow(self, base: int) -> None:
        """Let the surfaces from number `base` on take the free facets beside theirs that they explain."""
        graph = self.graph
        deepest = find_deepest(graph, self.surfaces, self.segment)
        is_new = self.segment >= base
        for _ in range(MAX_GROW_ROUNDS):
            index, facet = self._explained_facets(is_new, deepest)
            triangle_index, triangle = self._explained_triangles(is_new, deepest)
            index, facet = np.concatenate([index, triangle_index]), np.concatenate([facet, triangle])
            if len(facet) == 0:
                return
            # the last assignment wins: the surface with the lowest number
            order = np.argsort(-index, kind="stable")
            self.segment[facet[order]] = index[order]
            # surfaces do not change while they grow, so that facets they rejected stay rejected
            is_new = np.zeros(graph.count, np.bool_)
            is_new[facet] = True

    def _explained_facets(self, is_new: Mask, deepest: Float64) -> tuple[IntIndex, IntIndex]:
        """Return surfaces, and free facets beside their new facets that they explain, except for flat ends."""
        graph = self.graph
        is_next = is_new[graph.left] & (self.segment[graph.right] < 0)
        index, facet = self.segment[graph.left[is_next]], graph.right[is_next]
        good = explains(graph, self.surfaces, self.limit, index, facet)
        ratio = np.where(traits.HAS_TUBE[self.surfaces.kind[index]], MAX_DEEPER_RATIO, FLAT_FACE_RATIO)
        good &= ~graph.is_broad[facet] | (self._depths(index, facet) <= ratio * deepest[index])
        return index[good], facet[good]

    def _explained_triangles(self, is_new: Mask, deepest: Float64) -> tuple[IntIndex, IntIndex]:
        """Return surfaces, and free triangles beside their new facets that they explain.

        A triangle with all corners on an oblique rim may be inclined to the surface if it is not deeper than the other
        facets. A coarser triangle may be deeper by `MAX_DEEPER_RATIO`.
        """
        graph = self.graph
        is_next = is_new[graph.beside] & (self.segment[graph.triangle] < 0)
        index, triangle = self.segment[graph.beside[is_next]], graph.triangle[is_next]
        depth = self._depths(index, triangle)
        min_cosine = np.where(depth <= deepest[index], MIN_LEANING_COSINE, MIN_FACING_COSINE)
        good = explains(graph, self.surfaces, self.limit, index, triangle, min_cosine)
        good &= depth <= MAX_DEEPER_RATIO * deepest[index]
        return index[good], triangle[good]

    def _depths(self, index: IntIndex, facet: IntIndex) -> Float64:
        """Return the distance (n,) of a point of facet `facet[i]` from surface `index[i]`."""
        return np.abs(gradients(self.surfaces.take(index), self.graph.probe[facet])[0])

    def release_flats(self) -> None:
        """Free the flats across cylinders and cones: their corners are on the surface, but they are far too wide.

        Triangles stay: irregular ones may be wide.
        """
        graph, count = self.graph, len(self.surfaces)
        is_round = traits.IS_RULED[self.surfaces.kind]
        facet = np.flatnonzero((self.segment >= 0) & ~graph.is_sliver)
        facet = facet[is_round[self.segment[facet]]]
        if len(facet) == 0:
            return
        facet = facet[np.argsort(self.segment[facet], kind="stable")]
        owner = self.segment[facet]
        surfaces = self.surfaces.take(owner)
        height, distance, _ = cylindrical(surfaces, graph.probe[facet])
        slope = np.where(traits.HAS_SLOPE[surfaces.kind], surfaces.second, 0.0)
        depth = 1 - distance / (surfaces.radius + slope * height)
        begin = np.searchsorted(owner, np.arange(count + 1))
        median = depth[np.lexsort((depth, owner))][(begin[:-1] + begin[1:] - 1) // 2]
        is_flat = (depth > FLAT_FACE_RATIO * median[owner]) | (depth > _MAX_DEPTH_RATIO)
        self.segment[facet[is_flat & ~graph.is_triangle[facet]]] = -1

    def unite(self, kind: SurfaceKind) -> None:
        """Join neighboring surfaces of one kind that explain each other's facets, and fit the unions."""
        graph = self.graph
        a, b = self.segment[graph.left], self.segment[graph.right]
        meets = (a >= 0) & (b >= 0) & (a != b)
        meets &= (self.surfaces.kind[a] == kind) & (self.surfaces.kind[b] == kind)
        if not meets.any():
            return
        limit = self.limit * UNITE_LIMIT_RATIO
        good = explains(graph, self.surfaces, limit, a[meets], graph.right[meets])
        good &= explains(graph, self.surfaces, limit, b[meets], graph.left[meets])
        count, label = components(len(self.surfaces), a[meets][good], b[meets][good])
        if count == len(self.surfaces):
            return
        has_several = np.bincount(label)[label] > 1
        facet = np.flatnonzero(self.segment >= 0)
        facet = facet[has_several[self.segment[facet]]]
        facet = facet[np.argsort(label[self.segment[facet]], kind="stable")]
        group, groups = number_groups(label[self.segment[facet]])
        self.add(self.trials.fit_groups(kind, group, facet, groups), group, facet)


def find_deepest(graph: FacetGraph, surfaces: SurfaceArray, segment: IntIndex) -> Float64:
    """Return the distance (s,) of the deepest facet of each surface, millimeters.

    Args:
        graph: Facets of the mesh.
        surfaces: (s,) surfaces.
        segment: (f,) surface of each facet, -1 for free facets.
    """
    steady = np.flatnonzero((segment >= 0) & ~graph.is_sliver)
    deepest = np.zeros(len(surfaces))
    depth = np.abs(gradients(surfaces.take(segment[steady]), graph.probe[steady])[0])
    np.maximum.at(deepest, segment[steady], depth)
    return deepest


def explains(
    graph: FacetGraph,
    surfaces: SurfaceArray,
    limit: Float64,
    index: IntIndex,
    facet: IntIndex,
    min_cosine: float | Float64 = MIN_STEADY_COSINE,
) -> Mask:
    """Return whether surface `index[i]` holds all points of facet `facet[i]`, in the direction of the facet (n,).

    Args:
        graph: Facets of the mesh.
        surfaces: (s,) surfaces.
        limit: (s,) millimeters that a point may lie off.
        index: (n,) surfaces.
        facet: (n,) facets.
        min_cosine: Cosine of the angle between facet and surface; one number, or (n,).
    """
    if len(index) == 0:
        return np.zeros(0, np.bool_)
    owner, point = graph.expand(facet)
    gap, _ = gradients(surfaces.take(index[owner]), graph.points[point])
    begin = np.searchsorted(owner, np.arange(len(facet)))
    worst = np.maximum.reduceat(np.abs(gap), begin)
    depth, normal = gradients(surfaces.take(index), graph.probe[facet])
    facing = np.abs(np.einsum("ij,ij->i", normal, graph.normal[facet]))
    is_chord = (facing >= min_cosine) & (np.abs(depth) <= MAX_SAGITTA_RATIO * graph.extent[facet])
    good: Mask = (worst <= limit[index]) & (is_chord | graph.is_sliver[facet])
    return good


def number_groups(labels: NDArray[np.integer[Any]]) -> tuple[IntIndex, int]:
    """Renumber labels to 0…count-1, in ascending order; return them and the count."""
    group, count = number_labels(labels)
    return group.astype(np.intp), count
