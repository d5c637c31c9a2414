"""Facets from which another body was cut: they have corners on chords instead of on the true surface.

A mesh boolean cuts facets, not surfaces. Where two round walls meet, half of the new corners lie on the chords of one
wall, half on the chords of the other. A surface that is known from the corners that the cut did not make explains the
cut facets, too. `cut_corners` then moves their corners onto the surfaces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.facet_graph import MAX_SMOOTH_TURN_RAD, FacetGraph
from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin
from meshhub.builtin_plugins.step.facets.planar import number_labels
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.claims import MAX_GROW_ROUNDS, UNITE_LIMIT_RATIO
from meshhub.builtin_plugins.step.recognition.fit_trials import (
    FLAT_FACE_RATIO,
    MAX_DEEPER_RATIO,
    MIN_STEADY_COSINE,
    Trials,
    has_even_steps,
    is_plausible,
)
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.fitting import DEPTH_RATIO, FitLimits, fit_surfaces
from meshhub.builtin_plugins.step.surfaces.kinds import TRIALS
from meshhub.builtin_plugins.step.surfaces.sample_blocks import Samples, group_extents, select_groups
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind, concatenate
from meshhub.builtin_plugins.step.surfaces.surfaces import cylindrical, gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

_MAX_SPLINE_ERROR_MM = 5e-3
"""Millimeters that CAD programs let a spline edge lie off its surfaces; triangles end on the spline."""

Mask = NDArray[np.bool_]


def assign_cut_facets(
    skin: Skin, faceted: FacetedSkin, graph: FacetGraph, segments: Segments, requested: float | None
) -> Segments:
    """Add the facets that were cut to their surfaces, and recognize surfaces all of whose facets were cut.

    Args:
        skin: Mesh.
        faceted: Facets of the mesh.
        graph: Graph of the facets.
        segments: Surfaces that were recognized without cut facets.
        requested: Millimeters that points may lie off, instead of what rounding explains; `step_tolerance_mm`.
    """
    is_rim = _find_rims(skin, faceted, graph)
    if not is_rim.any():
        return segments
    trials = Trials(graph, faceted.tolerance, requested)
    search = _CutSearch(graph, trials, segments.surfaces, segments.limit, segments.segment.copy(), is_rim)
    # without surfaces, both give the same pieces
    for with_assigned in (True, False) if len(search.surfaces) else (False,):
        for kind in TRIALS:
            search.try_pieces(kind, with_assigned=with_assigned)
        search.grow()
    search.unite()
    return Segments(search.surfaces, search.limit, search.segment, segments.segment)


def _find_rims(skin: Skin, faceted: FacetedSkin, graph: FacetGraph) -> Mask:
    """Return which points (p,) are on sharp edges, where a body can have been cut off."""
    half = np.arange(len(skin.twin))
    a, b = faceted.region[half // 3], faceted.region[np.where(skin.twin >= 0, skin.twin, half) // 3]
    is_sharp = np.einsum("ij,ij->i", graph.normal[a], graph.normal[b]) < np.cos(MAX_SMOOTH_TURN_RAD)
    is_sharp &= ~graph.is_sliver[a] & ~graph.is_sliver[b]
    is_rim = np.zeros(len(skin.points), np.bool_)
    is_rim[skin.begin[is_sharp]] = is_rim[skin.end[is_sharp]] = True
    return is_rim


def _is_at_depth(gap: Float64, depth: Float64, surfaces: SurfaceArray, points: Float64) -> Mask:
    """Return which distances from a surface are on the side of its facets, and about as deep as the facets.

    The inner half of a torus is a saddle: its chords lie on both sides. Those of the outer half lie within the tube; a
    cone that is tangent to a rounding lies outside, and would be cut off otherwise.

    Args:
        gap: (n,) signed distances.
        depth: (n,) signed depth of the deepest facet of the surface.
        surfaces: (n,) surfaces.
        points: (n, 3) points at these distances.
    """
    is_torus = traits.HAS_TUBE[surfaces.kind]
    _, distance, _ = cylindrical(surfaces, points)
    is_on_side = np.where(is_torus, (distance <= surfaces.radius) | (gap <= 0), gap * depth >= 0)
    result: Mask = is_on_side & (np.abs(gap) <= MAX_DEEPER_RATIO * np.abs(depth))
    return result


@dataclass
class _CutSearch:
    """State of the search for cut facets.

    trials:   trials on the mesh
    surfaces: (s,) recognized surfaces
    limit:    (s,) millimeters that a point may lie off
    segment:  (f,) surface of each facet, -1 for free facets
    is_rim:   (p,) result of `_find_rims`
    """

    graph: FacetGraph
    trials: Trials
    surfaces: SurfaceArray
    limit: Float64
    segment: IntIndex
    is_rim: Mask

    def grow(self) -> None:
        """Let surfaces take the free facets beside theirs whose corners are on them or were cut from them."""
        graph = self.graph
        if len(self.surfaces) == 0:
            return
        is_new, before = self.segment >= 0, self._depths()
        for _ in range(MAX_GROW_ROUNDS):
            is_next = is_new[graph.left] & (self.segment[graph.right] < 0)
            index, facet = self.segment[graph.left[is_next]], graph.right[is_next]
            good = self._holds(index, facet)
            if not good.any():
                return
            index, facet = index[good][::-1], facet[good][::-1]
            order = np.argsort(-index, kind="stable")
            self.segment[facet[order]] = index[order]
            # a rejected facet stays rejected, unless its surface got deeper facets
            depths = self._depths()
            is_new = (self.segment >= 0) & (depths != before)[self.segment]
            is_new[facet] = True
            before = depths

    def _depths(self) -> Float64:
        """Return the signed distance (s,) of the deepest facet of each surface."""
        facet = np.flatnonzero((self.segment >= 0) & ~self.graph.is_sliver)
        owner = self.segment[facet]
        gap, _ = gradients(self.surfaces.take(owner), self.graph.center[facet])
        low, high = np.zeros(len(self.surfaces)), np.zeros(len(self.surfaces))
        np.minimum.at(low, owner, gap)
        np.maximum.at(high, owner, gap)
        return np.where(-low > high, low, high)

    def _holds(self, index: IntIndex, facet: IntIndex, limit_ratio: float = 1.0) -> Mask:
        """Return whether surface `index[i]` holds facet `facet[i]`, for each i (n,).

        A surface holds a facet if each corner is on the surface, or is at a rim and about as deep as the other facets.

        Args:
            index: (n,) surfaces.
            facet: (n,) facets.
            limit_ratio: Distance that a corner may lie off, over the limit of the surface.
        """
        graph = self.graph
        if len(facet) == 0:
            return np.zeros(0, np.bool_)
        depth, surfaces = self._depths()[index], self.surfaces.take(index)
        owner, point = graph.expand(facet)
        corner_surfaces, corners = surfaces.take(owner), graph.points[point]
        gap, _ = gradients(corner_surfaces, corners)
        is_on = np.abs(gap) <= limit_ratio * self.limit[index[owner]]
        is_fine = is_on | (self.is_rim[point] & _is_at_depth(gap, depth[owner], corner_surfaces, corners))
        begin = np.searchsorted(owner, np.arange(len(facet)))
        middle, normal = gradients(surfaces, graph.center[facet])
        facing = np.abs(np.einsum("ij,ij->i", normal, graph.normal[facet]))
        good: Mask = np.logical_and.reduceat(is_fine, begin) & np.logical_or.reduceat(is_on, begin)
        good &= (
            _is_at_depth(middle, depth, surfaces, graph.center[facet]) & (facing >= MIN_STEADY_COSINE)
        ) | graph.is_sliver[facet]
        return good

    def try_pieces(self, kind: SurfaceKind, *, with_assigned: bool) -> None:
        """Try each smooth piece of free facets as one surface, by the corners that no cut made.

        Args:
            kind: Kind of the surfaces.
            with_assigned: Include assigned facets in pieces with free ones: of a surface that was cut into many pieces,
                the first search recognizes small parts.
        """
        group, facet, groups = self._collect_pieces(kind, with_assigned=with_assigned)
        if groups == 0:
            return
        samples = self._uncut_samples(kind, group, facet, groups)
        has_enough = np.bincount(samples.group, minlength=groups) >= TRIALS[kind].min_points
        if not has_enough.any():
            return
        facet = facet[has_enough[group]]
        samples = select_groups(samples, np.flatnonzero(has_enough))
        self._take(kind, samples, facet, self.trials.allowed_distances(group_extents(samples)))

    def _collect_pieces(self, kind: SurfaceKind, *, with_assigned: bool) -> tuple[IntIndex, IntIndex, int]:
        """Return the smooth pieces with free facets: piece of each facet, facets, and number of pieces."""
        graph = self.graph
        is_free = self.segment < 0
        is_usable = is_free | with_assigned
        is_inner = is_usable[graph.left] & is_usable[graph.right] & (graph.left < graph.right)
        count, label = components(graph.count, graph.left[is_inner], graph.right[is_inner])
        is_usable &= (np.bincount(label[is_free], minlength=count) > 0)[label]
        size = np.bincount(label[is_usable], minlength=count)
        facet = np.flatnonzero(is_usable & (size[label] >= TRIALS[kind].min_facets))
        facet = facet[np.argsort(label[facet], kind="stable")]
        group, groups = number_labels(label[facet])
        return group.astype(np.intp), facet, groups

    def _uncut_samples(self, kind: SurfaceKind, group: IntIndex, facet: IntIndex, groups: int) -> Samples:
        """Return the samples of pieces, with only the corners that no cut made.

        These are the corners off the rims. All corners of a strip are on its rims; there, they are the corners that
        two facets share.
        """
        graph = self.graph
        owner, point = graph.expand(facet)
        pair, times = np.unique(group[owner] * len(graph.points) + point, return_counts=True)
        piece, point = pair // len(graph.points), pair % len(graph.points)
        is_uncut = ~self.is_rim[point]
        if traits.IS_RULED[kind]:
            is_uncut |= times > 1
        samples = graph.collect_samples(group, facet, groups)
        return samples._replace(group=piece[is_uncut], point=graph.points[point[is_uncut]])

    def _take(self, kind: SurfaceKind, samples: Samples, facet: IntIndex, allowed: Float64) -> None:
        """Fit a surface to each piece, and keep the surfaces that explain all corners of their pieces.

        Args:
            kind: Kind of the surfaces.
            samples: Uncut corners by piece.
            facet: (n,) facets of the pieces, in the order of `samples.normal_group`.
            allowed: (g,) millimeters that a point may lie off.
        """
        group, groups = samples.normal_group, samples.groups
        limits = FitLimits(allowed, np.full(groups, DEPTH_RATIO), np.zeros(groups))
        surfaces, worst = fit_surfaces(samples, kind, limits)
        depth, is_even = self._check_facets(samples, surfaces, facet)
        limit = limits.for_depth(np.abs(depth))
        good = (worst <= limit) & is_even & is_plausible(kind, surfaces, samples, group_extents(samples), limit)
        good &= self._check_corners(surfaces, group, facet, (limit, depth))
        if traits.HAS_TUBE[kind]:
            good = has_even_steps(self.graph, surfaces, group, facet, good)
        good &= self.trials.select_certain(kind, group, facet, groups)
        number = np.cumsum(good) - 1 + len(self.surfaces)
        is_assigned = good[group]
        self.segment[facet[is_assigned]] = number[group[is_assigned]]
        self.surfaces = concatenate([self.surfaces, surfaces.take(good)])
        self.limit = np.concatenate([self.limit, limit[good]])

    def _check_facets(self, samples: Samples, surfaces: SurfaceArray, facet: IntIndex) -> tuple[Float64, Mask]:
        """Check that the facets of each piece follow its surface on one side, without a flat end.

        Returns:
            (g,) signed distance of the deepest facet, and (g,) whether the facets agree.
        """
        group = samples.normal_group
        gap, normal = gradients(surfaces.take(group), samples.center)
        facing = np.einsum("ij,ij->i", normal, samples.normal)
        is_sliver = self.graph.is_sliver[facet]
        gap = np.where(is_sliver, 0.0, gap)
        first = np.searchsorted(group, np.arange(samples.groups + 1))
        is_outward = np.logical_and.reduceat((facing >= MIN_STEADY_COSINE) | is_sliver, first[:-1])
        is_inward = np.logical_and.reduceat((facing <= -MIN_STEADY_COSINE) | is_sliver, first[:-1])
        low, high = np.minimum.reduceat(gap, first[:-1]), np.maximum.reduceat(gap, first[:-1])
        depth = np.where(-low > high, low, high)
        median = np.abs(gap)[np.lexsort((np.abs(gap), group))][(first[:-1] + first[1:]) // 2]
        return depth, (is_outward | is_inward) & (np.abs(depth) <= FLAT_FACE_RATIO * median)

    def _check_corners(
        self, surfaces: SurfaceArray, group: IntIndex, facet: IntIndex, bounds: tuple[Float64, Float64]
    ) -> Mask:
        """Return whether all corners of each piece (g,) are on its surface, or at a rim and as deep as its facets.

        The corners of a spline edge may be on both sides.

        Args:
            surfaces: (g,) surfaces.
            group: (n,) piece of each facet, ascending.
            facet: (n,) facets.
            bounds: (g,) limit and (g,) signed depth of each piece.
        """
        limit, depth = bounds
        owner, point = self.graph.expand(facet)
        piece = group[owner]
        corner_surfaces, corners = surfaces.take(piece), self.graph.points[point]
        gap, _ = gradients(corner_surfaces, corners)
        is_chord = self.is_rim[point] & _is_at_depth(gap, depth[piece], corner_surfaces, corners)
        spline_error = np.minimum(_MAX_SPLINE_ERROR_MM, np.abs(depth))
        is_spline = self.is_rim[point] & (np.abs(gap) <= spline_error[piece])
        is_fine = (np.abs(gap) <= limit[piece]) | is_chord | is_spline
        result: Mask = np.logical_and.reduceat(is_fine, np.searchsorted(piece, np.arange(len(surfaces))))
        return result

    def unite(self) -> None:
        """Merge adjacent surfaces that were one surface before a cut divided it; the larger one takes the facets."""
        graph = self.graph
        if len(self.surfaces) == 0:
            return
        a, b = self.segment[graph.left], self.segment[graph.right]
        meets = (a >= 0) & (b >= 0) & (a != b)
        meets &= self.surfaces.kind[np.maximum(a, 0)] == self.surfaces.kind[np.maximum(b, 0)]
        meets[meets] = self._holds(a[meets], graph.right[meets], UNITE_LIMIT_RATIO)
        pairs = np.unique(np.stack([a[meets], b[meets]], axis=1), axis=0)
        size = np.bincount(self.segment[self.segment >= 0], minlength=len(self.surfaces))
        one, other = pairs.T
        pairs = pairs[(size[one] > size[other]) | ((size[one] == size[other]) & (one < other))]
        successor = np.arange(len(self.surfaces))
        for large, small in pairs[np.argsort(-size[pairs[:, 0]], kind="stable")].tolist():
            large = int(successor[large])
            facet = np.flatnonzero(self.segment == small)
            if large == small or len(facet) == 0:
                continue
            if self._holds(np.full(len(facet), large), facet, UNITE_LIMIT_RATIO).all():
                self.segment[facet] = large
                successor[successor == small] = large
