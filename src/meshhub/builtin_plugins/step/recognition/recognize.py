"""Recognition of cylinders, spheres, cones and tori in the facets of a mesh.

The vertices of a tessellated CAD surface lie on the surface, up to rounding. That distinguishes it from other shapes.

The search has two stages. First, each smooth piece between sharp edges is tried as a whole, kind by kind. Then, for
surfaces that are tangent to others, the surroundings of single facets are tried; neighbors join if the surface of one
explains the other. Each surface grows over the facets that it explains. Kinds compete, and the one that explains most
wins: a small patch of a cone is also a cylinder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.facets.facet_groups import (
    collect_surroundings,
    find_pieces,
    have_even_areas,
    reach_surroundings,
    turn_little,
)
from meshhub.builtin_plugins.step.recognition.claims import UNITE_LIMIT_RATIO, Claims, explains, number_groups
from meshhub.builtin_plugins.step.recognition.fit_trials import (
    TrialResults,
    Trials,
)
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs
from meshhub.builtin_plugins.step.surfaces.kinds import STRIP, TRIALS
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind, concatenate, make_planes
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

_MAX_RINGS = max(ring for trial in TRIALS.values() for ring in trial.rings)
"""Rings of the largest surroundings."""

_CHUNK_SEEDS = 8192
"""Maximum surroundings that are fitted at once; bounds the memory."""

_MAX_CONTESTS = 3
"""Maximum contests; each starts from the facets that the previous one left free."""

_SAMPLE_SEEDS = 2048
"""Surroundings that are tried first; if none fits, a scanned or sculpted mesh is not searched further."""

_LARGE_COUNT = 8 * _SAMPLE_SEEDS
"""Number of surroundings above which more of the sample must fit; in large scans, chance fits would cost seconds."""

_MIN_PROMISING_RATIO = 0.03
"""Share of the sample that must fit. By chance, 1 % fits on a scanned turbine blade, and 0.3 % on a sculpture."""

_MIN_PROMISING_COUNT = 32
"""Facets over which a surface of the sample must grow if a smaller share fits; on the blade, the largest has 28."""

_MIN_FIRST_VALUE = 12.0
"""Value from which a bid need not wait for the next contest. Next to its own surface, a strip of a shallow cone fits a
cylinder by chance; once the larger surface has its facets, the cone is a piece by itself."""

_MIN_FREE_RATIO = 0.9
"""Share of the facets of a bid that must still be free when the bid is accepted."""

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

    def restore(self, earlier: Segments, facets: IntIndex) -> Segments:
        """Return the segments in which some facets have their earlier surfaces; others were added since."""
        segment, uncut = self.segment.copy(), self.uncut.copy()
        segment[facets], uncut[facets] = earlier.segment[facets], earlier.uncut[facets]
        return Segments(self.surfaces, self.limit, segment, uncut)


def make_segments(count: int) -> Segments:
    """Return the segments of facets that all stay planar."""
    free = np.full(count, -1, np.intp)
    return Segments(make_planes(np.empty((0, 3)), np.empty((0, 3))), np.empty(0), free, free)


def recognize_surfaces(graph: FacetGraph, tolerance: float, requested: float | None) -> Segments:
    """Recognize the curved surfaces of a mesh.

    Args:
        graph: Facets of the mesh.
        tolerance: Millimeters that rounding explains.
        requested: Millimeters that points may lie off, instead of what rounding explains; `step_tolerance_mm`.
    """
    claims = Claims.start(graph, Trials(graph, tolerance, requested))
    nothing = np.zeros(graph.count, np.bool_)
    search = _Search(claims, changed=~nothing, lost=nothing, waiting=nothing, failed=set())
    search.try_all_pieces()
    for contest in range(_MAX_CONTESTS):
        before = claims.segment >= 0
        if not search.hold_contest(is_last=contest == _MAX_CONTESTS - 1):
            break
        search.try_all_pieces()
        search.mark_changed(before)
    claims.release_flats()
    return Segments(claims.surfaces, claims.limit, claims.segment, claims.segment)


class _Bid(NamedTuple):
    """Claim of one surface to facets, in a contest of kinds."""

    value: float
    facets: IntIndex
    surface: SurfaceArray
    limit: Float64


@dataclass
class _Search:
    """State of a search.

    claims:  recognized surfaces and their facets
    changed: (f,) facets whose surroundings changed since the last contest
    lost:    (f,) facets whose strips fit no surface of the kind that is tried
    waiting: (f,) facets of bids that the last contest left for the next one
    failed:  kinds and facets of the pieces that are not one surface of that kind
    """

    claims: Claims
    changed: Mask
    lost: Mask
    waiting: Mask
    failed: set[tuple[SurfaceKind, bytes]]

    def copy(self) -> _Search:
        """Return a search that continues from this state, and changes nothing of it but the failed pieces."""
        return replace(self, claims=self.claims.copy(), lost=self.lost.copy())

    def try_all_pieces(self) -> None:
        """Try whole pieces as each kind, with and without their broad facets."""
        for without_broad in (False, True):
            for kind in TRIALS:
                self._try_pieces(kind, without_broad=without_broad)

    def mark_changed(self, before: Mask) -> None:
        """Restrict the next contest to waiting facets, and surroundings of those assigned since `before`, (f,) mask."""
        self.changed = reach_surroundings(self.claims.graph, (self.claims.segment >= 0) & ~before, _MAX_RINGS)
        self.changed |= self.waiting

    def hold_contest(self, *, is_last: bool) -> bool:
        """Let the kinds compete for the free facets, by surroundings; return whether any surface was recognized."""
        bids: list[_Bid] = []
        started = len(self.claims.surfaces)
        has_even_areas, turns_little = have_even_areas(self.claims.graph), turn_little(self.claims.graph)
        for kind in TRIALS:
            trial = self.copy()
            for rings in TRIALS[kind].rings:
                trial._try_surroundings(kind, rings)
            # a row of facets of a torus has even areas, too, and is a zone of a cone: these pieces must compete
            trial._try_pieces(kind, without_broad=True, is_joined=has_even_areas)
            if not self._is_scan():
                trial._try_pieces(kind, without_broad=True, is_joined=turns_little)
            bids += trial._collect_bids(kind, started)
        small = [bid for bid in bids if bid.value < _MIN_FIRST_VALUE]
        self._award([bid for bid in bids if bid.value >= _MIN_FIRST_VALUE])
        self.waiting = np.zeros(self.claims.graph.count, np.bool_)
        if is_last or len(self.claims.surfaces) == started:
            self._award(small)
        else:
            self.waiting[np.concatenate([np.empty(0, np.intp), *(bid.facets for bid in small)])] = True
        return self._grow_winners(started)

    def _is_scan(self) -> bool:
        """Return whether so many facets are free that small pieces of them fit surfaces by chance."""
        return int((self.claims.segment < 0).sum()) > _LARGE_COUNT

    def _collect_bids(self, kind: SurfaceKind, started: int) -> list[_Bid]:
        """Return the bids of the surfaces from number `started` on, all of one kind."""
        claims = self.claims
        facet = np.flatnonzero(claims.segment >= started)
        facet = facet[np.argsort(claims.segment[facet], kind="stable")]
        numbers, begin, group = np.unique(claims.segment[facet], return_index=True, return_inverse=True)
        is_certain = claims.trials.select_certain(kind, group, facet, len(numbers))
        pieces = np.split(facet, begin[1:])
        return [
            _Bid(
                len(pieces[k]) * TRIALS[kind].value,
                pieces[k],
                claims.surfaces.take(numbers[k : k + 1]),
                claims.limit[numbers[k : k + 1]],
            )
            for k in np.flatnonzero(is_certain).tolist()
        ]

    def _grow_winners(self, started: int) -> bool:
        """Let the surfaces from number `started` on grow; return whether there are any."""
        if len(self.claims.surfaces) == started:
            return False
        # the facets of the losing bids are free again
        self.claims.grow(started)
        for kind in TRIALS:
            self.claims.unite(kind)
        return True

    def _award(self, bids: list[_Bid]) -> None:
        """Assign facets to the bids in order of value, if most of the facets of a bid are still free."""
        surfaces: list[SurfaceArray] = [self.claims.surfaces]
        limits: list[Float64] = [self.claims.limit]
        for bid in sorted(bids, key=lambda bid: -bid.value):
            is_free = self.claims.segment[bid.facets] < 0
            if is_free.mean() >= _MIN_FREE_RATIO:
                self.claims.segment[bid.facets[is_free]] = len(self.claims.surfaces) + len(surfaces) - 1
                surfaces.append(bid.surface)
                limits.append(bid.limit)
        self.claims.surfaces = concatenate(surfaces)
        self.claims.limit = np.concatenate(limits)

    def _try_pieces(self, kind: SurfaceKind, *, without_broad: bool, is_joined: Mask | None = None) -> None:
        """Try each smooth piece of free facets as one surface."""
        claims = self.claims
        is_usable = claims.segment < 0
        if without_broad:
            is_usable &= ~claims.graph.is_broad
        label, facet = find_pieces(claims.graph, is_usable, TRIALS[kind].min_facets, is_joined)
        label, facet = self._drop_failed(kind, label, facet)
        kept = claims.trials.select_hopeful_pieces(kind, label, facet)
        self._take_pieces(kind, label[kept], facet[kept])

    def _drop_failed(self, kind: SurfaceKind, label: IntIndex, facet: IntIndex) -> tuple[IntIndex, IntIndex]:
        """Return the pieces, as `find_pieces` does, without those that were tried as this kind before."""
        begin = np.flatnonzero(np.diff(label, prepend=-1, append=-1))
        pieces = [facet[start:stop] for start, stop in pairwise(begin.tolist())]
        is_new = np.array([(kind, piece.tobytes()) not in self.failed for piece in pieces], np.bool_)
        kept = np.repeat(is_new, np.diff(begin))
        return label[kept], facet[kept]

    def _take_pieces(self, kind: SurfaceKind, label: IntIndex, facet: IntIndex) -> None:
        """Fit a surface to each piece, and add the good ones.

        Args:
            kind: Kind of the surfaces.
            label: (n,) piece of each facet, ascending.
            facet: (n,) facets.
        """
        claims = self.claims
        if len(facet) == 0:
            return
        group, groups = number_groups(label)
        results = claims.trials.fit_groups(kind, group, facet, groups)
        results = results._replace(good=results.good & claims.trials.select_certain(kind, group, facet, groups))
        pieces = np.split(facet, np.searchsorted(group, np.arange(1, groups)))
        self.failed.update((kind, pieces[place].tobytes()) for place in np.flatnonzero(~results.good).tolist())
        claims.take(kind, results, group, facet)

    def _try_surroundings(self, kind: SurfaceKind, rings: int) -> None:
        """Try the surroundings of each free facet, and join neighbors whose surfaces explain each other."""
        graph = self.claims.graph
        is_free = self.claims.segment < 0
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
        if rings == STRIP:
            self.lost[seeds] = results.lost
            self.lost &= ~reach_surroundings(graph, is_free & (self.claims.segment >= 0), _MAX_RINGS)

    def _is_promising(self, kind: SurfaceKind, seeds: IntIndex, is_free: Mask, rings: int) -> bool:
        """Return whether the surroundings of a sample of seeds fit surfaces more often than by chance."""
        if len(seeds) <= 2 * _SAMPLE_SEEDS:
            return True
        sample = seeds[:: len(seeds) // _SAMPLE_SEEDS]
        group, facet = collect_surroundings(self.claims.graph, sample, is_free, rings)
        results = self.claims.trials.fit_groups(kind, group, facet, len(sample))
        if len(seeds) <= _LARGE_COUNT or results.good.mean() >= _MIN_PROMISING_RATIO:
            return bool(results.good.any())
        trial, started = self.claims.copy(), len(self.claims.surfaces)
        trial.add(results, group, facet)
        trial.grow(started)
        sizes = np.bincount(trial.segment[trial.segment >= started])
        return int(sizes.max(initial=0)) >= _MIN_PROMISING_COUNT

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
            group, facet = collect_surroundings(self.claims.graph, chunk, is_free, rings)
            result = self.claims.trials.fit_groups(kind, group, facet, len(chunk))
            is_good = result.good[group]
            results.append(result)
            groups.append(group[is_good] + start)
            facets.append(facet[is_good])
        surfaces = concatenate([result.surfaces for result in results])
        limit, good, lost = (np.concatenate(columns) for columns in list(zip(*results, strict=True))[1:])
        return TrialResults(surfaces, limit, good, lost), np.concatenate(groups), np.concatenate(facets)

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
        graph, good = self.claims.graph, results.good
        place = np.full(graph.count, -1, np.intp)
        place[seeds[good]] = np.flatnonzero(good)
        left, right = place[graph.left], place[graph.right]
        has_both = (left >= 0) & (right >= 0)
        left, right = left[has_both], right[has_both]
        agrees = explains(graph, results.surfaces, results.limit * UNITE_LIMIT_RATIO, left, seeds[right])
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
        union, unions = number_groups(owner[order])
        self.claims.take(kind, self.claims.trials.fit_groups(kind, union, member, unions), union, member)
