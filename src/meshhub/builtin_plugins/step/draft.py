"""Choice of the surfaces that a model is written with.

Candidates form a ladder, from the most curved surfaces to planar facets. Each candidate is assembled and checked, and
simpler surfaces replace those that fail. Where it is unclear which surfaces make a body invalid, halves of them are
tried.
"""

# why this way: docs/decisions/0033-step-passes.md
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.step import StepWriteOptions
from meshhub.builtin_plugins.step.facets.bodies import Bodies, group_bodies
from meshhub.builtin_plugins.step.facets.facet_graph import build_facet_graph
from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin, facet_skin
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.facets.spare_points import remove_spare_points
from meshhub.builtin_plugins.step.kernel.kernel_check import FaceCorners
from meshhub.builtin_plugins.step.recognition.chord_cuts import assign_cut_facets
from meshhub.builtin_plugins.step.recognition.cut_corners import find_deep_corners, move_cut_corners
from meshhub.builtin_plugins.step.recognition.design_values import round_to_design_values
from meshhub.builtin_plugins.step.recognition.patch_search import add_patches
from meshhub.builtin_plugins.step.recognition.recognize import Segments, make_segments, recognize_surfaces
from meshhub.builtin_plugins.step.recognition.regions import Regions, make_planar_regions, make_regions, region_areas
from meshhub.builtin_plugins.step.solids.builder import (
    IMPLAUSIBLE,
    Misfits,
    assemble_model,
    check_model,
    find_implausible,
)
from meshhub.builtin_plugins.step.solids.distances import find_distant_regions
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.solids.model_check import find_other_genus
from meshhub.builtin_plugins.step.solids.slits import close_slits
from meshhub.builtin_plugins.step.solids.tolerances import MIN_EDGE_MM
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.toolkit.geometry import IntIndex

_MAX_ROUNDS_COUNT = 16
"""Maximum models of one candidate, each without the faulty surfaces of the one before; bounds the time."""

_MAX_CHEAP_ROUNDS_COUNT = 64
"""The same if surfaces are rejected before a model is assembled."""

_MAX_TRIALS_COUNT = 24
"""Maximum models with a part of the surfaces of a body: enough to find one bad surface among thousands, or four among
forty."""

_MIN_TRIALS_COUNT = 4
"""The same for the largest meshes, because each of their models takes seconds."""

_MAX_TRIANGLES_COUNT = 500_000
"""Triangles of all these models together; bounds the time."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mesh, and the surfaces to write it with.

    bodies:    roles of the shells
    simpler:   surfaces that replace free-form ones; None: facets replace them
    is_fitted: whether surfaces were fitted to points, so that the shapes of facets are no evidence against them
    """

    skin: Skin
    faceted: FacetedSkin
    segments: Segments
    bodies: Bodies
    simpler: Segments | None = None
    is_fitted: bool = False

    @property
    def is_planar(self) -> bool:
        """Whether all facets stay flat."""
        return not (self.segments.segment >= 0).any()

    def without(self, facets: IntIndex) -> Candidate:
        """Return the candidate with simpler surfaces for some facets: free-form facets get analytic surfaces."""
        is_lost = np.zeros(self.faceted.faces, np.bool_)
        is_lost[facets] = True
        segments, own = self.segments.without(is_lost), self.segments.segment
        if self.simpler is not None:
            is_free = is_lost & (own >= 0)
            is_free[is_free] = traits.IS_PATCH[self.segments.surfaces.kind[own[is_free]]]
            segments = segments.restore(self.simpler, np.flatnonzero(is_free))
        return replace(self, segments=segments)

    def reject(self, regions: Regions, misfits: list[Misfits]) -> Candidate:
        """Return the candidate without some of its regions, or without their facets at the faulty corners.

        A region with facets that a boolean operation has cut loses only these facets, and is tried again.
        """
        region = np.empty(self.faceted.faces, np.intp)
        region[self.faceted.region] = regions.region
        is_cut = self.segments.segment != self.segments.uncut
        is_misfit, has_cut = np.zeros((2, len(regions.surfaces)), np.bool_)
        is_lost = np.zeros(self.faceted.faces, np.bool_)
        for misfit in misfits:
            if misfit.corners is None:
                is_misfit[misfit.regions] = True
            else:
                is_lost[self._list_facets_at(regions, misfit.regions, misfit.corners)] = True
        has_cut[region[is_cut]] = True
        is_uncut = is_misfit[region] & has_cut[region]
        whole = self.without(np.flatnonzero((is_misfit[region] & ~is_uncut) | is_lost))
        segment = np.where(is_uncut & ~is_lost, self.segments.uncut, whole.segments.segment)
        return replace(whole, segments=replace(whole.segments, segment=segment))

    def _list_facets_at(self, regions: Regions, numbers: IntIndex, corners: IntIndex) -> IntIndex:
        """Return the facets of (k,) regions that have a corner at (k,) points."""
        corner, count = self.skin.faces.ravel(), len(self.skin.points)
        keys = np.repeat(regions.region.astype(np.int64), 3) * count + corner
        place = np.flatnonzero(np.isin(keys, numbers * count + corners))
        return self.faceted.region[place // 3].astype(np.intp)


class _Attempt(NamedTuple):
    """An assembled candidate.

    regions: regions with their surfaces
    misfits: regions that fail a check by themselves; if there are any, the model may be incomplete
    model:   None if a check failed before it was assembled
    failing: closed shells that fail a check, and would pass it with planar facets
    """

    regions: Regions
    misfits: list[Misfits]
    model: BrepModel | None
    failing: IntIndex

    @property
    def passes(self) -> bool:
        """Whether all checks pass."""
        return not self.misfits and not len(self.failing)


@dataclass(frozen=True, eq=False)
class Rejections:
    """Curved regions that failed a check.

    reasons:      number of regions by the reason, without wrong guesses
    pieces_count: number of regions that lost only some of their facets
    guesses:      facets of wrong guesses; they are flat
    """

    reasons: Counter[str]
    pieces_count: int
    guesses: frozenset[int]

    def add(self, reason: str, count: int) -> Rejections:
        """Return these rejections and those of some whole regions."""
        return replace(self, reasons=self.reasons + Counter({reason: count}))

    def add_misfits(self, attempt: _Attempt, faceted: FacetedSkin) -> Rejections:
        """Return these rejections and those of an attempt."""
        result = self
        for misfit in attempt.misfits:
            regions = np.unique(misfit.regions)
            if misfit.reason == IMPLAUSIBLE:
                facets = np.unique(faceted.region[np.isin(attempt.regions.region, regions)]).tolist()
                result = replace(result, guesses=result.guesses.union(facets))
                continue
            result = result.add(misfit.reason, len(regions))
            if misfit.corners is not None:
                result = replace(result, pieces_count=result.pieces_count + len(regions))
        return result


@dataclass(frozen=True, eq=False)
class Draft:
    """Model that passes the checks without a kernel, if any model does."""

    candidate: Candidate
    model: BrepModel
    rejected: Rejections

    def find_curved(self, shells: IntIndex) -> IntIndex:
        """Return the curved regions of some shells, the largest first, and analytic ones before free-form ones."""
        regions = self.model.regions
        number = np.unique(regions.region[np.isin(self.model.skin.shell, shells)]).astype(np.intp)
        number = number[regions.curved[number]]
        is_free = traits.IS_PATCH[regions.surfaces.kind[number]]
        return number[np.lexsort((-region_areas(self.model.skin, regions)[number], is_free))]

    def find_faces(self, faces: Sequence[FaceCorners], shells: IntIndex) -> IntIndex:
        """Return the curved regions of some shells that have all corners of one of the faces."""
        outline, curved = self.model.outline, self.find_curved(shells)
        # seams have moved their corners
        points = self.model.skin.points.copy()
        points[self.model.seams.corner] = self.model.seams.position
        place = cKDTree(points[outline.start])
        found: set[int] = set()
        for corners in faces:
            near = place.query_ball_point(np.array(corners).reshape(-1, 3), MIN_EDGE_MM)
            # OpenCASCADE adds corners where it cuts a face
            sides = [set(outline.region[chains].tolist()) for chains in near if chains]
            found |= set.intersection(*sides) if sides else set()
        return np.intersect1d(curved, np.array(sorted(found), np.intp))

    def list_facets(self, regions: IntIndex) -> IntIndex:
        """Return the facets of some regions."""
        is_mine = np.isin(self.model.regions.region, regions)
        facets: IntIndex = np.unique(self.candidate.faceted.region[is_mine]).astype(np.intp)
        return facets


@dataclass(frozen=True, eq=False)
class Drafting:
    """Checks of the candidates for one mesh.

    ladder:       candidates, from the most curved to planar facets
    is_strict:    whether surfaces that CAD programs may reject become flat, because no kernel checks them
    tolerance_mm: largest distance between a curved face and the mesh; None for no limit
    """

    ladder: tuple[Candidate, ...]
    is_strict: bool
    tolerance_mm: float | None = None

    def draft(self) -> Draft:
        """Return the draft with the most surfaces: the first candidate that passes, without its faulty surfaces."""
        rejected = Rejections(Counter(), 0, frozenset())
        for candidate in self.ladder[:-1]:
            draft, rejected = self._settle(candidate, rejected)
            if draft is not None:
                return draft
        return Draft(self.ladder[-1], self._planar, rejected)

    def keep_valid(
        self, draft: Draft, shells: IntIndex, reason: str, accept: Callable[[BrepModel], bool], deadline: float
    ) -> Draft:
        """Return a draft with as many surfaces of a body as another check accepts.

        Args:
            draft: Draft that the check rejects.
            shells: Shells of the body.
            reason: For the report.
            accept: The check.
            deadline: Time (`time.monotonic`) after which the check accepts nothing.
        Returns:
            Flat facets of the body if the check accepts nothing.
        """

        def try_candidate(candidate: Candidate) -> _Attempt | None:
            attempt = self._try(candidate) if time.monotonic() < deadline else None
            is_good = attempt is not None and attempt.passes and attempt.model is not None and accept(attempt.model)
            return attempt if is_good else None

        kept = _keep_good(draft, shells, reason, try_candidate)
        return kept or self._flatten(draft, shells, reason)

    def step_down(self, draft: Draft, regions: IntIndex, reason: str) -> Draft | None:
        """Return a draft with simpler surfaces in place of some regions; None if no curved surface passes then."""
        rejected = draft.rejected.add(reason, len(regions))
        return self._settle(draft.candidate.without(draft.list_facets(regions)), rejected)[0]

    def _flatten(self, draft: Draft, shells: IntIndex, reason: str) -> Draft:
        """Return a draft with flat facets in some shells, or in all shells if that draft fails the checks."""
        lost = draft.find_curved(shells)
        candidate = replace(draft.candidate, simpler=None).without(draft.list_facets(lost))
        attempt = self._try(candidate)
        rejected = draft.rejected.add(reason, len(lost))
        if attempt.model is None or not attempt.passes:
            return Draft(self.ladder[-1], self._planar, rejected)
        return Draft(replace(candidate, simpler=draft.candidate.simpler), attempt.model, rejected)

    def count_flat_facets(self, draft: Draft) -> int:
        """Return the number of recognized facets that are flat in a draft, without those of wrong guesses."""
        is_flat = (self.ladder[0].segments.segment >= 0) & (draft.candidate.segments.segment < 0)
        is_flat[list(draft.rejected.guesses)] = False
        return int(is_flat.sum())

    @cached_property
    def _planar(self) -> BrepModel:
        """The model of planar facets."""
        candidate = self.ladder[-1]
        regions, points = make_planar_regions(candidate.faceted), candidate.skin.points
        model = assemble_model(candidate.skin, points, candidate.faceted, regions, candidate.bodies)
        return check_model(model, is_strict=False)[0]

    @cached_property
    def _unusual(self) -> IntIndex:
        """Shells whose genus differs from that of their triangles even with planar faces, so it indicates no defect."""
        return find_other_genus(self._planar)

    def _settle(self, candidate: Candidate, rejected: Rejections) -> tuple[Draft | None, Rejections]:
        """Assemble and check a candidate until its surfaces pass.

        Returns:
            The draft, None if no surface passes; and the rejections so far.
        """
        for number in range(_MAX_CHEAP_ROUNDS_COUNT):
            if candidate.is_planar:
                break
            attempt = self._try(candidate)
            if attempt.model is not None:
                draft = Draft(candidate, attempt.model, rejected)
                if attempt.passes:
                    return draft, rejected
                if number >= _MAX_ROUNDS_COUNT or not attempt.misfits:
                    shells = np.arange(len(candidate.skin.closed)) if attempt.misfits else attempt.failing
                    return self._keep_closed(draft, shells), rejected
            rejected = rejected.add_misfits(attempt, candidate.faceted)
            candidate = candidate.reject(attempt.regions, attempt.misfits)
        return None, rejected

    def _keep_closed(self, draft: Draft, shells: IntIndex) -> Draft | None:
        """Return a draft whose shells are closed and have the volume of the mesh."""

        def try_candidate(candidate: Candidate) -> _Attempt | None:
            attempt = self._try(candidate)
            return attempt if attempt.passes else None

        return _keep_good(draft, shells, "another volume of the body", try_candidate)

    def _try(self, candidate: Candidate) -> _Attempt:
        """Assemble and check a candidate."""
        none = np.empty(0, np.intp)
        if candidate.is_planar:
            return _Attempt(self._planar.regions, [], self._planar, none)
        skin, regions, misfits = _place_corners(candidate)
        if misfits:
            return _Attempt(regions, misfits, None, none)
        model = assemble_model(skin, candidate.skin.points, candidate.faceted, regions, candidate.bodies)
        model, misfits = check_model(model, is_strict=self.is_strict)
        if not misfits and self.tolerance_mm is not None:
            distant = find_distant_regions(model, self.tolerance_mm)
            misfits = [Misfits("distance from the mesh", distant)] if len(distant) else []
        genus = find_other_genus(model) if not misfits else none
        if len(genus):
            invalid = np.union1d(model.invalid_shells, np.setdiff1d(genus, self._unusual)).astype(np.intp)
            model = replace(model, invalid_shells=invalid)
        failing = model.invalid_shells
        if len(failing):
            failing = np.setdiff1d(failing, self._planar.invalid_shells)
        return _Attempt(regions, misfits, model, failing)


def list_candidates(skin: Skin, options: StepWriteOptions) -> tuple[Candidate, ...]:
    """Recognize the surfaces of a mesh; return candidates from the most curved to planar facets.

    Args:
        skin: Mesh with outward orientation, millimeters.
        options: Kinds of surfaces to recognize, and their tolerance.
    """
    faceted = facet_skin(skin)
    if options.step_surfaces != "planar":
        skin, faceted = remove_spare_points(skin, faceted)
    skin, faceted = close_slits(skin, faceted)
    planar = Candidate(skin, faceted, make_segments(faceted.faces), group_bodies(skin))
    if options.step_surfaces == "planar":
        return (planar,)
    requested = options.step_tolerance_mm
    graph = build_facet_graph(skin, faceted)
    analytic = recognize_surfaces(graph, faceted.tolerance, requested)
    analytic = assign_cut_facets(skin, faceted, graph, analytic, requested)
    analytic = round_to_design_values(graph, analytic, faceted.tolerance)
    ladder: tuple[Candidate, ...] = (replace(planar, segments=analytic), planar)
    if options.step_surfaces == "analytic":
        return ladder
    free = add_patches(skin, faceted, graph, analytic, requested)
    if len(free.surfaces) > len(analytic.surfaces):
        ladder = (replace(planar, segments=free, simpler=analytic), *ladder)
    return ladder


def _place_corners(candidate: Candidate) -> tuple[Skin, Regions, list[Misfits]]:
    """Return the mesh with corners on the surfaces that meet there, its regions, and those that are no surface."""
    skin, segments, faceted = candidate.skin, candidate.segments, candidate.faceted

    regions = make_regions(skin, faceted, segments)
    is_cut = (segments.segment != segments.uncut)[faceted.region]
    deep = find_deep_corners(skin, regions, is_cut)
    if len(deep):
        return skin, regions, [Misfits("corners that are too deep", deep)]
    moved, folded = move_cut_corners(skin, regions, is_cut)
    if len(folded):
        return skin, regions, [Misfits("corners that cannot move onto them", folded)]
    if moved is not skin:
        regions = make_regions(moved, faceted, segments)
    if candidate.is_fitted:
        return moved, regions, []
    implausible = find_implausible(moved, faceted, regions)
    return moved, regions, [Misfits(IMPLAUSIBLE, implausible)] if len(implausible) else []


def _keep_good(
    draft: Draft, shells: IntIndex, reason: str, try_candidate: Callable[[Candidate], _Attempt | None]
) -> Draft | None:
    """Return a draft without the surfaces of some shells that make them fail; None if they fail without any, too.

    Simpler surfaces replace the surfaces or, if the shells still fail, facets do. Then groups of surfaces are added
    again, and a group with which the shells fail is halved. Surfaces that are left after the last trial stay simple.

    Args:
        draft: Draft that fails.
        shells: Shells that fail.
        reason: For the report.
        try_candidate: Returns the attempt at a candidate that passes, None if it fails.
    Source:
        Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE Transactions on Software
        Engineering 28, 2002 (delta debugging).
    """
    lost, base = draft.find_curved(shells), draft.candidate
    best = try_candidate(base.without(draft.list_facets(lost)))
    if best is None and base.simpler is not None:
        base = replace(base, simpler=None)
        best = try_candidate(base.without(draft.list_facets(lost)))
    groups = np.array_split(lost, 2) if len(lost) > 1 else []
    trials = _MAX_TRIANGLES_COUNT // len(base.skin.faces)
    for _ in range(min(max(trials, _MIN_TRIALS_COUNT), _MAX_TRIALS_COUNT)):
        if not groups or best is None:
            break
        group = groups.pop(0)
        rest = np.setdiff1d(lost, group)
        attempt = try_candidate(base.without(draft.list_facets(rest)))
        if attempt is not None:
            lost, best = rest, attempt
        elif len(group) > 1:
            groups += np.array_split(group, 2)
    candidate = base.without(draft.list_facets(lost))
    if best is None or best.model is None:
        return None
    candidate = replace(candidate, simpler=draft.candidate.simpler)
    return replace(draft, candidate=candidate, model=best.model, rejected=draft.rejected.add(reason, len(lost)))
