"""Which facets stand for one cylinder, sphere, cone or torus.

The vertices of a tessellated CAD surface lie on it, to rounding: that is what tells it from anything
else. SurfaceArray are looked for in two ways: whole smooth pieces between sharp edges are tried first,
kind by kind. For what is tangent to something else, neighbourhoods of single facets are tried, and
joined where one facet's surface explains the next facet. What was found grows over the facets that
its surface explains; of several kinds the one that explains most wins, since a small patch of a cone
is a cylinder, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.arrays import distinct_pairs
from meshhub.builtin_plugins.step.recognition.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.recognition.fit_trials import DEEPER, FEWEST_FACETS, LEANING, TILT, Trials, Tried
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
"""Simple ones first: one ring of facets is a zone of a sphere as well as a cone."""

_STRIP = 0
_RINGS = {
    SurfaceKind.CYLINDER: (_STRIP, 2, 1),
    SurfaceKind.SPHERE: (1,),
    SurfaceKind.CONE: (_STRIP, 2),
    SurfaceKind.TORUS: (2,),
}
_COARSE = float(np.cos(np.radians(45.0)))
_COARSER = 2.0
_LIDS = 2.0
_ROUNDS = 200
_CHUNK = 8192
_CONTESTS = 3
_SAMPLE = 2048
_WORTH = {SurfaceKind.CYLINDER: 1.0, SurfaceKind.CONE: 0.6, SurfaceKind.SPHERE: 0.6, SurfaceKind.TORUS: 0.5}
"""What a facet counts for a kind: one with more freedom must explain that much more."""
_STILL_FREE = 0.9

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Segments:
    """Recognised surfaces and the facets they hold.

    surfaces: (s,)
    limit:    (s,) how far a point may lie off
    segment:  (f,) the surface of each facet, -1 for those that stay planar
    uncut:    (f,) the same without the facets that were cut
    """

    surfaces: SurfaceArray
    limit: Float64
    segment: IntIndex
    uncut: IntIndex

    def without(self, flat: Mask) -> Segments:
        """Return the segments without some facets."""
        return Segments(self.surfaces, self.limit, np.where(flat, -1, self.segment), np.where(flat, -1, self.uncut))


def recognize_surfaces(graph: FacetGraph, tolerance: float, given: float | None) -> Segments:
    """The curved surfaces of a mesh.

    tolerance: what rounding explains; given: the distance that was asked for, which then counts instead.
    """
    search = _Search(graph, Trials(graph, tolerance, given))
    search.all_pieces()
    for _ in range(_CONTESTS):
        before = search.segment >= 0
        if not search.contest():
            break
        search.all_pieces()
        search.refresh(before)
    return search.found()


class _Search:
    """The state of a search: what has been found, and which facets are taken."""

    def __init__(self, graph: FacetGraph, trials: Trials) -> None:
        self.graph = graph
        self.trials = trials
        self.segment = np.full(graph.count, -1, np.intp)
        self.surfaces = make_planes(np.empty((0, 3)), np.empty((0, 3)))
        self.limit = np.empty(0)
        self.fresh = np.ones(graph.count, np.bool_)
        self.lost = np.zeros(graph.count, np.bool_)

    def found(self) -> Segments:
        return Segments(self.surfaces, self.limit, self.segment, self.segment)

    def all_pieces(self) -> None:
        """Try whole pieces as each kind, with and without their broad facets."""
        for spare_broad in (False, True):
            for kind in KINDS:
                self.whole_pieces(kind, spare_broad=spare_broad)

    def refresh(self, before: Mask) -> None:
        """Look again only where neighbourhoods changed, because some of their facets were taken."""
        self.fresh = self._around((self.segment >= 0) & ~before)

    def _around(self, facets: Mask) -> Mask:
        """Facets whose neighbourhoods some facets may be in."""
        graph = self.graph
        for _ in range(max(max(rings) for rings in _RINGS.values())):
            reached = facets.copy()
            reached[graph.right[facets[graph.left]]] = True
            facets = reached
        return facets

    def contest(self) -> bool:
        """Let the kinds compete for what is free, by neighbourhoods; whether any won something."""
        bids: list[tuple[float, int, IntIndex, SurfaceArray, Float64]] = []
        started = len(self.surfaces)
        for kind in KINDS:
            base = len(self.surfaces)
            trial = _Search(self.graph, self.trials)
            trial.segment, trial.surfaces, trial.limit = self.segment.copy(), self.surfaces, self.limit
            trial.fresh = self.fresh
            for rings in _RINGS[kind]:
                trial.neighbourhoods(kind, rings)
            facet = np.flatnonzero(trial.segment >= base)
            facet = facet[np.argsort(trial.segment[facet], kind="stable")]
            numbers, begin = np.unique(trial.segment[facet], return_index=True)
            for number, facets in zip(numbers.tolist(), np.split(facet, begin[1:]), strict=False):
                only = np.array([number])
                worth = -len(facets) * _WORTH[kind]
                bids.append((worth, len(bids), facets, trial.surfaces.take(only), trial.limit[only]))
        self._award(bids)
        if len(self.surfaces) == started:
            return False
        # what losers held is free again
        self._grow(started)
        for kind in KINDS:
            self._unite(kind)
        return True

    def _award(self, bids: list[tuple[float, int, IntIndex, SurfaceArray, Float64]]) -> None:
        """Give facets to the bids that hold most, as long as most of what they hold is free."""
        won: list[SurfaceArray] = [self.surfaces]
        limits: list[Float64] = [self.limit]
        for _, _, facets, surface, limit in sorted(bids, key=lambda bid: bid[:2]):
            free = self.segment[facets] < 0
            if free.mean() >= _STILL_FREE:
                self.segment[facets[free]] = len(self.surfaces) + len(won) - 1
                won.append(surface)
                limits.append(limit)
        self.surfaces = concatenate(won)
        self.limit = np.concatenate(limits)

    def whole_pieces(self, kind: SurfaceKind, *, spare_broad: bool) -> None:
        """Try each smooth piece of free facets as one surface."""
        graph = self.graph
        usable = self.segment < 0
        if spare_broad:
            usable &= ~graph.is_broad
        inside = usable[graph.left] & usable[graph.right] & (graph.left < graph.right)
        count, label = components(graph.count, graph.left[inside], graph.right[inside])
        label = np.where(usable, label, -1)
        size = np.bincount(label[usable], minlength=count)
        facet = np.flatnonzero(usable & (size[label] >= FEWEST_FACETS[kind]))
        if len(facet) == 0:
            return
        facet = facet[np.argsort(label[facet], kind="stable")]
        facet = self.trials.likely(kind, label[facet].astype(np.intp), facet)
        if len(facet) == 0:
            return
        group, groups = number_labels(label[facet])
        self._take(kind, self.trials.tried(kind, group.astype(np.intp), facet, groups), group.astype(np.intp), facet)

    def neighbourhoods(self, kind: SurfaceKind, rings: int) -> None:
        """Try the surroundings of each free facet, and join neighbours whose surfaces explain each other."""
        graph = self.graph
        free = self.segment < 0
        degree = np.bincount(graph.left[free[graph.right]], minlength=graph.count)
        usable = free & ~graph.is_broad & self.fresh & (degree >= (2 if rings == 1 else 1))
        if rings == 2:
            # whose strip fits no surface of that kind, its whole surroundings do not either
            usable &= ~self.lost
        seeds = np.flatnonzero(usable)
        if len(seeds) == 0 or not self._promising(kind, seeds, free, rings):
            return
        parts: list[tuple[IntIndex, IntIndex, Tried]] = []
        for start in range(0, len(seeds), _CHUNK):
            group, facet = self._surroundings(seeds[start : start + _CHUNK], free, rings)
            count = len(seeds[start : start + _CHUNK])
            tried = self.trials.tried(kind, group, facet, count)
            keep = tried.good[group]
            parts.append((group[keep] + start, facet[keep], tried))
        made = [part[2] for part in parts]
        good = np.concatenate([one.good for one in made])
        if good.any():
            surfaces, limit = concatenate([one.surfaces for one in made]), np.concatenate([one.limit for one in made])
            group, facet = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
            self._take_agreeing(kind, seeds, surfaces, limit, good, group, facet)
        if rings == _STRIP:
            self.lost[seeds] = np.concatenate([one.lost for one in made])
            self.lost &= ~self._around(free & (self.segment >= 0))

    def _promising(self, kind: SurfaceKind, seeds: IntIndex, free: Mask, rings: int) -> bool:
        """Whether any of a sample fits: a scanned or sculpted mesh is not searched to its end."""
        if len(seeds) <= 2 * _SAMPLE:
            return True
        sample = seeds[:: len(seeds) // _SAMPLE]
        group, facet = self._surroundings(sample, free, rings)
        return bool(self.trials.tried(kind, group, facet, len(sample)).good.any())

    def _surroundings(self, seeds: IntIndex, free: Mask, rings: int) -> tuple[IntIndex, IntIndex]:
        """The facets around each seed, ring by ring; those along its strip, for two rings, when `rings` is _STRIP."""
        graph = self.graph
        left, right = graph.left, graph.right
        if rings == _STRIP:
            left, right = left[graph.strong], right[graph.strong]
        begin = np.searchsorted(left, np.arange(graph.count + 1))
        group, facet = np.arange(len(seeds)), seeds
        for _ in range(rings if rings != _STRIP else 2):
            size = begin[facet + 1] - begin[facet]
            owner = np.repeat(np.arange(len(facet)), size)
            place = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
            beyond = right[begin[facet][owner] + place]
            fine = free[beyond] & ~graph.is_broad[beyond]
            group = np.concatenate([group, group[owner][fine]])
            group, facet = distinct_pairs(group, np.concatenate([facet, beyond[fine]]), graph.count)
        return group, facet

    def _take_agreeing(
        self,
        kind: SurfaceKind,
        seeds: IntIndex,
        surfaces: SurfaceArray,
        limit: Float64,
        good: Mask,
        group: IntIndex,
        facet: IntIndex,
    ) -> None:
        graph = self.graph
        place = np.full(graph.count, -1, np.intp)
        place[seeds[good]] = np.flatnonzero(good)
        left, right = place[graph.left], place[graph.right]
        both = (left >= 0) & (right >= 0)
        left, right = left[both], right[both]
        agree = self._explains(surfaces, limit * 3, left, seeds[right])
        # pairs stand in the graph both ways: both must agree
        backward = np.lexsort((left, right))
        agree = agree & agree[backward]
        count, label = components(len(seeds), left[agree], right[agree])
        owner, member = distinct_pairs(label[group], facet, graph.count)
        # a facet at the rim of two surroundings belongs where it is the centre of one, else to the larger one
        central = np.where(place[member] >= 0, label[np.maximum(place[member], 0)] == owner, False)
        size = np.bincount(owner, minlength=count)
        order = np.lexsort((owner, -size[owner], ~central, member))
        first = np.concatenate([[True], member[order][1:] != member[order][:-1]])
        owner, member = owner[order][first], member[order][first]
        order = np.argsort(owner, kind="stable")
        member = member[order]
        united, groups = number_labels(owner[order])
        self._take(
            kind, self.trials.tried(kind, united.astype(np.intp), member, groups), united.astype(np.intp), member
        )

    def _explains(
        self, surfaces: SurfaceArray, limit: Float64, index: IntIndex, facet: IntIndex, tilt: float | Float64 = TILT
    ) -> Mask:
        """Whether each surface (by index) holds all points of the facet beside it, and faces along with it."""
        graph = self.graph
        if len(index) == 0:
            return np.zeros(0, np.bool_)
        owner, point = graph.expand(facet)
        gap, _ = gradients(surfaces.take(index[owner]), graph.points[point])
        begin = np.searchsorted(owner, np.arange(len(facet)))
        worst = np.maximum.reduceat(np.abs(gap), begin)
        _, normal = gradients(surfaces.take(index), graph.probe[facet])
        facing = np.abs(np.einsum("ij,ij->i", normal, graph.normal[facet]))
        good: Mask = (worst <= limit[index]) & ((facing >= tilt) | graph.is_sliver[facet])
        return good

    def _take(self, kind: SurfaceKind, tried: Tried, group: IntIndex, facet: IntIndex) -> None:
        if not tried.good.any():
            return
        base = len(self.surfaces)
        self._add(tried, group, facet)
        self._grow(base)
        self._unite(kind)

    def _add(self, tried: Tried, group: IntIndex, facet: IntIndex) -> None:
        """Give facets to the surfaces of those groups that have one."""
        good = tried.good
        taken = good[group]
        number = np.cumsum(good) - 1 + len(self.surfaces)
        self.segment[facet[taken]] = number[group[taken]]
        self.surfaces = concatenate([self.surfaces, tried.surfaces.take(good)])
        self.limit = np.concatenate([self.limit, tried.limit[good]])

    def _grow(self, base: int) -> None:
        graph = self.graph
        known = np.flatnonzero((self.segment >= base) & ~graph.is_sliver)
        deepest = np.zeros(len(self.surfaces))
        np.maximum.at(deepest, self.segment[known], self._depth(self.segment[known], known))
        new = self.segment >= base
        for _ in range(_ROUNDS):
            reach = new[graph.left] & (self.segment[graph.right] < 0)
            index, facet = self.segment[graph.left[reach]], graph.right[reach]
            good = self._explains(self.surfaces, self.limit, index, facet)
            much = np.where(self.surfaces.kind[index] == SurfaceKind.TORUS, _LIDS, DEEPER)
            good &= ~graph.is_broad[facet] | (self._depth(index, facet) <= much * deepest[index])
            index, facet = index[good], facet[good]
            # three points of a slanting rim make a facet that leans from the surface, no deeper than the others are;
            # some are coarser than the others, and deeper
            reach = new[graph.beside] & (self.segment[graph.triangle] < 0)
            beside, rim = self.segment[graph.beside[reach]], graph.triangle[reach]
            depth = self._depth(beside, rim)
            tilt = np.where(depth <= deepest[beside], LEANING, _COARSE)
            good = self._explains(self.surfaces, self.limit, beside, rim, tilt) & (depth <= _COARSER * deepest[beside])
            index, facet = np.concatenate([index, beside[good]]), np.concatenate([facet, rim[good]])
            if len(facet) == 0:
                return
            # the lowest number wins, whatever the order
            order = np.argsort(-index, kind="stable")
            self.segment[facet[order]] = index[order]
            # what was not explained by a surface will not be
            new = np.zeros(graph.count, np.bool_)
            new[facet] = True

    def _depth(self, index: IntIndex, facet: IntIndex) -> Float64:
        """How far the middle of each facet lies off the surface beside it."""
        return np.abs(gradients(self.surfaces.take(index), self.graph.probe[facet])[0])

    def _unite(self, kind: SurfaceKind) -> None:
        """Join neighbouring surfaces of one kind that are one."""
        graph = self.graph
        a, b = self.segment[graph.left], self.segment[graph.right]
        meet = (a >= 0) & (b >= 0) & (a != b)
        meet &= (self.surfaces.kind[a] == kind) & (self.surfaces.kind[b] == kind)
        if not meet.any():
            return
        good = self._explains(self.surfaces, self.limit * 3, a[meet], graph.right[meet])
        good &= self._explains(self.surfaces, self.limit * 3, b[meet], graph.left[meet])
        count, label = components(len(self.surfaces), a[meet][good], b[meet][good])
        if count == len(self.surfaces):
            return
        several = np.bincount(label)[label] > 1
        facet = np.flatnonzero(self.segment >= 0)
        facet = facet[several[self.segment[facet]]]
        facet = facet[np.argsort(label[self.segment[facet]], kind="stable")]
        group, groups = number_labels(label[self.segment[facet]])
        self._add(self.trials.tried(kind, group.astype(np.intp), facet, groups), group.astype(np.intp), facet)
