"""Recognition of cylinders, spheres, cones and tori in the facets of a mesh.

The vertices of a tessellated CAD surface lie on the surface, up to rounding. That distinguishes it from other shapes.

The search has two stages. First, each smooth piece between sharp edges is tried as a whole, kind by kind. Then, for
surfaces that are tangent to others, the surroundings of single facets are tried; neighbors join if the surface of one
explains the other. Each surface grows over the facets that it explains. Kinds compete, and the one that explains most
wins: a small patch of a cone is also a cylinder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.arrays import distinct_pairs, expand_ranges
from meshhub.builtin_plugins.step.recognition.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.recognition.fit_trials import (
    MAX_BROAD_DEPTH_RATIO,
    MIN_FACET_COUNT,
    MIN_LEANING_COSINE,
    MIN_STEADY_COSINE,
    TrialResults,
    Trials,
)
from meshhub.builtin_plugins.step.recognition.planar import number_labels
from meshhub.builtin_plugins.step.recognition.surfaces import (
    SurfaceArray,
    SurfaceKind,
    concatenate,
    gradients,
    make_planes,
)
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

KINDS = (SurfaceKind.CYLINDER, SurfaceKind.CONE, SurfaceKind.SPHERE, SurfaceKind.TORUS)
"""Order of the search, simple kinds first: one ring of facets is a zone of a sphere as well as of a cone."""

_STRIP = 0
"""Instead of a number of rings: the facets along the strip of a facet, two in each direction."""

_STRIP_STEPS = 2
"""Facets in each direction along a strip."""

_RINGS = {
    SurfaceKind.CYLINDER: (_STRIP, 2, 1),
    SurfaceKind.SPHERE: (1,),
    SurfaceKind.CONE: (_STRIP, 2),
    SurfaceKind.TORUS: (2,),
}
"""Rings of facets around a facet that are tried, in this order."""

_MIN_COARSE_COSINE = float(np.cos(np.radians(45.0)))
"""Cosine of 45°: angle between the surface and a triangle that is coarser than the other facets."""

_MAX_COARSE_DEPTH_RATIO = 2.0
"""Depth of a coarse triangle over that of the deepest other facet."""

_MAX_TORUS_LID_RATIO = 2.0
"""`MAX_BROAD_DEPTH_RATIO` of tori: a lid lies hardly deeper below a torus than the facets around it."""

MAX_GROW_ROUNDS = 200
"""Rounds in which a surface grows by one ring of facets; bounds the time."""

_CHUNK_SEEDS = 8192
"""Surroundings that are fitted at once; bounds the memory."""

_MAX_CONTESTS = 3
"""Contests; each one starts from the facets that are free after the one before."""

_SAMPLE_SEEDS = 2048
"""Surroundings that are tried first; if none fits, a scanned or sculpted mesh is not searched further."""

_FACET_VALUES = {SurfaceKind.CYLINDER: 1.0, SurfaceKind.CONE: 0.6, SurfaceKind.SPHERE: 0.6, SurfaceKind.TORUS: 0.5}
"""Value of a facet in a contest; a kind with more parameters must explain more facets."""

_MIN_FREE_RATIO = 0.9
"""Part of the facets of a bid that must still be free when its turn comes."""

UNITE_LIMIT_RATIO = 3.0
"""Limits within which the points of one surface lie on another if both are the same: the fits differ by rounding."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Segments:
    """Recognized surfaces and their facets.

    surfaces: (s,) surfaces
    limit:    (s,) millimeters that a point may lie off
    segment:  (f,) surface of each facet, -1 for facets that stay planar
    uncut:    (f,) the same without the facets that `assign_cut_facets` added
    """

    surfaces: SurfaceArray
    limit: Float64
    segment: IntIndex
    uncut: IntIndex

    def without(self, flat: Mask) -> Segments:
        """Return the segments without the facets of an (f,) mask."""
        return Segments(self.surfaces, self.limit, np.where(flat, -1, self.segment), np.where(flat, -1, self.uncut))


def recognize_surfaces(graph: FacetGraph, tolerance: float, requested: float | None) -> Segments:
    """Recognize the curved surfaces of a mesh.

    Args:
        graph: Facets of the mesh.
        tolerance: Millimeters that rounding explains.
        requested: Millimeters that points may lie off, instead of what rounding explains; `step_tolerance_mm`.
    """
    search = _Search.start(graph, Trials(graph, tolerance, requested))
    search.try_all_pieces()
    for _ in range(_MAX_CONTESTS):
        before = search.segment >= 0
        if not search.hold_contest():
            break
        search.try_all_pieces()
        search.mark_changed(before)
    return Segments(search.surfaces, search.limit, search.segment, search.segment)


class _Bid(NamedTuple):
    """Claim of one surface to facets, in a contest of kinds."""

    value: float
    facets: IntIndex
    surface: SurfaceArray
    limit: Float64


@dataclass
class _Search:
    """State of a search.

    surfaces: (s,) recognized surfaces
    limit:    (s,) millimeters that a point may lie off
    segment:  (f,) surface of each facet, -1 for free facets
    changed:  (f,) facets whose surroundings changed since the last contest
    lost:     (f,) facets whose strips fit no surface of the kind that is tried
    """

    graph: FacetGraph
    trials: Trials
    surfaces: SurfaceArray
    limit: Float64
    segment: IntIndex
    changed: Mask
    lost: Mask

    @classmethod
    def start(cls, graph: FacetGraph, trials: Trials) -> _Search:
        """Return a search in which all facets are free."""
        return cls(
            graph=graph,
            trials=trials,
            surfaces=make_planes(np.empty((0, 3)), np.empty((0, 3))),
            limit=np.empty(0),
            segment=np.full(graph.count, -1, np.intp),
            changed=np.ones(graph.count, np.bool_),
            lost=np.zeros(graph.count, np.bool_),
        )

    def copy(self) -> _Search:
        """Return a search that continues from this state, and does not change it."""
        return replace(self, segment=self.segment.copy(), lost=self.lost.copy())

    def try_all_pieces(self) -> None:
        """Try whole pieces as each kind, with and without their broad facets."""
        for without_broad in (False, True):
            for kind in KINDS:
                self._try_pieces(kind, without_broad=without_broad)

    def mark_changed(self, before: Mask) -> None:
        """Restrict the next contest to surroundings of facets that were assigned since `before`, an (f,) mask."""
        self.changed = self._surround((self.segment >= 0) & ~before)

    def hold_contest(self) -> bool:
        """Let the kinds compete for the free facets, by surroundings; return whether any surface was recognized."""
        bids: list[_Bid] = []
        started = len(self.surfaces)
        for kind in KINDS:
            trial = self.copy()
            for rings in _RINGS[kind]:
                trial._try_surroundings(kind, rings)
            facet = np.flatnonzero(trial.segment >= started)
            facet = facet[np.argsort(trial.segment[facet], kind="stable")]
            numbers, begin = np.unique(trial.segment[facet], return_index=True)
            for number, facets in zip(numbers.tolist(), np.split(facet, begin[1:]), strict=False):
                row = np.array([number])
                value = len(facets) * _FACET_VALUES[kind]
                bids.append(_Bid(value, facets, trial.surfaces.take(row), trial.limit[row]))
        self._award(bids)
        if len(self.surfaces) == started:
            return False
        # the facets of the losing bids are free again
        self._grow(started)
        for kind in KINDS:
            self._unite(kind)
        return True

    def _award(self, bids: list[_Bid]) -> None:
        """Assign facets to the bids in order of value, if most of the facets of a bid are still free."""
        surfaces: list[SurfaceArray] = [self.surfaces]
        limits: list[Float64] = [self.limit]
        for bid in sorted(bids, key=lambda bid: -bid.value):
            is_free = self.segment[bid.facets] < 0
            if is_free.mean() >= _MIN_FREE_RATIO:
                self.segment[bid.facets[is_free]] = len(self.surfaces) + len(surfaces) - 1
                surfaces.append(bid.surface)
                limits.append(bid.limit)
        self.surfaces = concatenate(surfaces)
        self.limit = np.concatenate(limits)

    def _try_pieces(self, kind: SurfaceKind, *, without_broad: bool) -> None:
        """Try each smooth piece of free facets as one surface."""
        graph = self.graph
        is_usable = self.segment < 0
        if without_broad:
            is_usable &= ~graph.is_broad
        is_inner = is_usable[graph.left] & is_usable[graph.right] & (graph.left < graph.right)
        count, label = components(graph.count, graph.left[is_inner], graph.right[is_inner])
        label = np.where(is_usable, label, -1)
        size = np.bincount(label[is_usable], minlength=count)
        facet = np.flatnonzero(is_usable & (size[label] >= MIN_FACET_COUNT[kind]))
        if len(facet) == 0:
            return
        facet = facet[np.argsort(label[facet], kind="stable")]
        facet = self.trials.drop_hopeless_pieces(kind, label[facet].astype(np.intp), facet)
        if len(facet) == 0:
            return
        group, groups = _number_groups(label[facet])
        self._take(kind, self.trials.fit_groups(kind, group, facet, groups), group, facet)

    def _try_surroundings(self, kind: SurfaceKind, rings: int) -> None:
        """Try the surroundings of each free facet, and join neighbors whose surfaces explain each other."""
        graph = self.graph
        is_free = self.segment < 0
        degree = np.bincount(graph.left[is_free[graph.right]], minlength=graph.count)
        is_usable = is_free & ~graph.is_broad & self.changed & (degree >= (2 if rings == 1 else 1))
        if rings == 2:
            # the two rings include the strip; if the strip fits no surface of this kind, the rings do not, either
            is_usable &= ~self.lost
        seeds = np.flatnonzero(is_usable)
        if len(seeds) == 0 or not self._is_promising(kind, seeds, is_free, rings):
            return
        results, group, facet = self._fit_surroundings(kind, seeds, is_free, rings)
        if results.good.any():
            self._take_agreeing(kind, seeds, results, group, facet)
        if rings == _STRIP:
            self.lost[seeds] = results.lost
            self.lost &= ~self._surround(is_free & (self.segment >= 0))

    def _is_promising(self, kind: SurfaceKind, seeds: IntIndex, is_free: Mask, rings: int) -> bool:
        """Return whether the surroundings of any of a sample of seeds fit."""
        if len(seeds) <= 2 * _SAMPLE_SEEDS:
            return True
        sample = seeds[:: len(seeds) // _SAMPLE_SEEDS]
        group, facet = self._collect_surroundings(sample, is_free, rings)
        return bool(self.trials.fit_groups(kind, group, facet, len(sample)).good.any())

    def _fit_surroundings(
        self, kind: SurfaceKind, seeds: IntIndex, is_free: Mask, rings: int
    ) -> tuple[TrialResults, IntIndex, IntIndex]:
        """Fit the surroundings of each seed, chunk by chunk.

        Returns:
            Results of all seeds, and, where these are good, pairs of a position in `seeds` and a facet around it.
        """
        results: list[TrialResults] = []
        groups: list[IntIndex] = []
        facets: list[IntIndex] = []
        for start in range(0, len(seeds), _CHUNK_SEEDS):
            chunk = seeds[start : start + _CHUNK_SEEDS]
            group, facet = self._collect_surroundings(chunk, is_free, rings)
            result = self.trials.fit_groups(kind, group, facet, len(chunk))
            is_good = result.good[group]
            results.append(result)
            groups.append(group[is_good] + start)
            facets.append(facet[is_good])
        surfaces = concatenate([result.surfaces for result in results])
        limit, good, lost = (np.concatenate(columns) for columns in list(zip(*results, strict=True))[1:])
        return TrialResults(surfaces, limit, good, lost), np.concatenate(groups), np.concatenate(facets)

    def _collect_surroundings(self, seeds: IntIndex, is_free: Mask, rings: int) -> tuple[IntIndex, IntIndex]:
        """Return pairs of a position in `seeds` and a free facet around it: in its rings, or along its strip."""
        graph = self.graph
        left, right = graph.left, graph.right
        if rings == _STRIP:
            left, right = left[graph.strong], right[graph.strong]
        begin = np.searchsorted(left, np.arange(graph.count + 1))
        group, facet = np.arange(len(seeds)), seeds
        for _ in range(rings if rings != _STRIP else _STRIP_STEPS):
            owner, place = expand_ranges(begin[facet], begin[facet + 1] - begin[facet])
            beyond = right[place]
            is_usable = is_free[beyond] & ~graph.is_broad[beyond]
            group = np.concatenate([group, group[owner][is_usable]])
            group, facet = distinct_pairs(group, np.concatenate([facet, beyond[is_usable]]), graph.count)
        return group, facet

    def _surround(self, facets: Mask) -> Mask:
        """Return (f,) the facets whose surroundings can include any of some facets."""
        graph = self.graph
        for _ in range(max(max(rings) for rings in _RINGS.values())):
            reached = facets.copy()
            reached[graph.right[facets[graph.left]]] = True
            facets = reached
        return facets

    def _take_agreeing(
        self, kind: SurfaceKind, seeds: IntIndex, results: TrialResults, group: IntIndex, facet: IntIndex
    ) -> None:
        """Join the surroundings of neighboring seeds whose surfaces explain each other, and fit the unions.

        Args:
            kind: Kind of the surfaces.
            seeds: (n,) facets.
            results: (n,) results of their surroundings.
            group: (k,) positions in `seeds` with good results.
            facet: (k,) facets around them.
        """
        graph, good = self.graph, results.good
        place = np.full(graph.count, -1, np.intp)
        place[seeds[good]] = np.flatnonzero(good)
        left, right = place[graph.left], place[graph.right]
        has_both = (left >= 0) & (right >= 0)
        left, right = left[has_both], right[has_both]
        agrees = self._explains(results.surfaces, results.limit * UNITE_LIMIT_RATIO, left, seeds[right])
        # the graph has each pair in both orders, and both must agree
        agrees = agrees & agrees[np.lexsort((left, right))]
        count, label = components(len(seeds), left[agrees], right[agrees])
        owner, member = distinct_pairs(label[group], facet, graph.count)
        # a facet in several unions goes to the one where it is a seed, else to the largest one
        is_seed = np.where(place[member] >= 0, label[np.maximum(place[member], 0)] == owner, False)
        size = np.bincount(owner, minlength=count)
        order = np.lexsort((owner, -size[owner], ~is_seed, member))
        is_first = np.concatenate([[True], member[order][1:] != member[order][:-1]])
        owner, member = owner[order][is_first], member[order][is_first]
        order = np.argsort(owner, kind="stable")
        member = member[order]
        union, unions = _number_groups(owner[order])
        self._take(kind, self.trials.fit_groups(kind, union, member, unions), union, member)

    def _explains(
        self,
        surfaces: SurfaceArray,
        limit: Float64,
        index: IntIndex,
        facet: IntIndex,
        min_cosine: float | Float64 = MIN_STEADY_COSINE,
    ) -> Mask:
        """Return (n,) whether surface `index[i]` holds all points of facet `facet[i]`, in the direction of the facet.

        Args:
            surfaces: (s,) surfaces.
            limit: (s,) millimeters that a point may lie off.
            index: (n,) surfaces.
            facet: (n,) facets.
            min_cosine: Cosine of the angle between facet and surface; one number, or (n,).
        """
        graph = self.graph
        if len(index) == 0:
            return np.zeros(0, np.bool_)
        owner, point = graph.expand(facet)
        gap, _ = gradients(surfaces.take(index[owner]), graph.points[point])
        begin = np.searchsorted(owner, np.arange(len(facet)))
        worst = np.maximum.reduceat(np.abs(gap), begin)
        _, normal = gradients(surfaces.take(index), graph.probe[facet])
        facing = np.abs(np.einsum("ij,ij->i", normal, graph.normal[facet]))
        good: Mask = (worst <= limit[index]) & ((facing >= min_cosine) | graph.is_sliver[facet])
        return good

    def _take(self, kind: SurfaceKind, results: TrialResults, group: IntIndex, facet: IntIndex) -> None:
        """Add the good groups as surfaces, let them grow, and unite surfaces that are the same."""
        if not results.good.any():
            return
        base = len(self.surfaces)
        self._add(results, group, facet)
        self._grow(base)
        self._unite(kind)

    def _add(self, results: TrialResults, group: IntIndex, facet: IntIndex) -> None:
        """Add the surfaces of the good groups, and assign the facets of these groups."""
        good = results.good
        is_assigned = good[group]
        number = np.cumsum(good) - 1 + len(self.surfaces)
        self.segment[facet[is_assigned]] = number[group[is_assigned]]
        self.surfaces = concatenate([self.surfaces, results.surfaces.take(good)])
        self.limit = np.concatenate([self.limit, results.limit[good]])

    def _grow(self, base: int) -> None:
        """Let the surfaces from number `base` on take the free facets beside theirs that they explain."""
        graph = self.graph
        steady = np.flatnonzero((self.segment >= base) & ~graph.is_sliver)
        deepest = np.zeros(len(self.surfaces))
        np.maximum.at(deepest, self.segment[steady], self._depths(self.segment[steady], steady))
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
        good = self._explains(self.surfaces, self.limit, index, facet)
        ratio = np.where(self.surfaces.kind[index] == SurfaceKind.TORUS, _MAX_TORUS_LID_RATIO, MAX_BROAD_DEPTH_RATIO)
        good &= ~graph.is_broad[facet] | (self._depths(index, facet) <= ratio * deepest[index])
        return index[good], facet[good]

    def _explained_triangles(self, is_new: Mask, deepest: Float64) -> tuple[IntIndex, IntIndex]:
        """Return surfaces, and free triangles beside their new facets that they explain.

        A triangle of three points of a slanting rim leans from the surface, and is no deeper than the other facets.
        Some triangles are coarser than the other facets, and deeper.
        """
        graph = self.graph
        is_next = is_new[graph.beside] & (self.segment[graph.triangle] < 0)
        index, triangle = self.segment[graph.beside[is_next]], graph.triangle[is_next]
        depth = self._depths(index, triangle)
        min_cosine = np.where(depth <= deepest[index], MIN_LEANING_COSINE, _MIN_COARSE_COSINE)
        good = self._explains(self.surfaces, self.limit, index, triangle, min_cosine)
        good &= depth <= _MAX_COARSE_DEPTH_RATIO * deepest[index]
        return index[good], triangle[good]

    def _depths(self, index: IntIndex, facet: IntIndex) -> Float64:
        """Return the (n,) distance of a point of facet `facet[i]` from surface `index[i]`."""
        return np.abs(gradients(self.surfaces.take(index), self.graph.probe[facet])[0])

    def _unite(self, kind: SurfaceKind) -> None:
        """Join neighboring surfaces of one kind that explain each other's facets, and fit the unions."""
        graph = self.graph
        a, b = self.segment[graph.left], self.segment[graph.right]
        meets = (a >= 0) & (b >= 0) & (a != b)
        meets &= (self.surfaces.kind[a] == kind) & (self.surfaces.kind[b] == kind)
        if not meets.any():
            return
        limit = self.limit * UNITE_LIMIT_RATIO
        good = self._explains(self.surfaces, limit, a[meets], graph.right[meets])
        good &= self._explains(self.surfaces, limit, b[meets], graph.left[meets])
        count, label = components(len(self.surfaces), a[meets][good], b[meets][good])
        if count == len(self.surfaces):
            return
        has_several = np.bincount(label)[label] > 1
        facet = np.flatnonzero(self.segment >= 0)
        facet = facet[has_several[self.segment[facet]]]
        facet = facet[np.argsort(label[self.segment[facet]], kind="stable")]
        group, groups = _number_groups(label[self.segment[facet]])
        self._add(self.trials.fit_groups(kind, group, facet, groups), group, facet)


def _number_groups(labels: NDArray[np.integer[Any]]) -> tuple[IntIndex, int]:
    """Renumber labels to 0…count-1, in ascending order; return them and the count."""
    group, count = number_labels(labels)
    return group.astype(np.intp), count
