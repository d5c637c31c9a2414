"""Choice between two beginnings for a mesh: facets as CAD programs make them, or regions of a noisy mesh."""

# why this way: docs/decisions/0058-noisy-meshes.md
from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step import StepWriteOptions
from meshhub.builtin_plugins.step.draft import Candidate, Draft, Drafting, list_candidates
from meshhub.builtin_plugins.step.facets.bodies import group_bodies
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.noisy_regions import SearchStopped
from meshhub.builtin_plugins.step.recognition.recognize import make_segments
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.regular_mesh import regularize
from meshhub.builtin_plugins.step.solids.distances import measure_distances
from meshhub.model.deadline import seconds_left
from meshhub.model.scene import Float64

_MAX_SINGLE_COUNT = 2
"""Triangles of a planar face that is a facet by itself."""

_MAX_SINGLE_RATIO = 0.2
"""Share of triangles that are facets by themselves, above which a mesh is tried as a noisy one."""

_MIN_NOTED_RATIO = 0.5
"""Share of triangles that are flat faces by themselves, above which a note says so."""

_MIN_IRREGULAR_COUNT = 300
"""Triangles of a mesh from which its noise can be estimated."""

_MAX_IRREGULAR_COUNT = 100_000
"""Triangles of a mesh up to which a second attempt without a result takes some ten seconds."""

_MIN_GAIN_RATIO = 3.0
"""Faces of the first result over those of the second from which the latter is kept: moved points need a reason."""

_MAX_NOISE_RATIO = 6.0
"""Distance between the second result and the mesh over the deviation of its noise, up to which it counts as noise."""

_MAX_CHORD_RATIO = 1.5
"""Distance of a chord of the mesh from its surface over the largest one after its points were evenly spread."""

_MIN_LEFT_RATIO = 3.0
"""Seconds until the deadline over those of the first attempt, from which there is time for a second one."""


class DraftedSkin(NamedTuple):
    """A mesh with its surfaces.

    drafting:    candidates, and their checks
    draft:       what is written
    mesh_points: (p, 3) points of the mesh, if they were moved onto surfaces before
    noise_mm:    mm, deviation of its noise; zero where the points were not moved
    unmoved:     the mesh with its own points, in case that a CAD program rejects this one
    is_searched: whether surfaces were fitted to its smooth regions, if most triangles are facets by themselves
    """

    drafting: Drafting
    draft: Draft
    mesh_points: Float64 | None
    noise_mm: float
    unmoved: DraftedSkin | None
    is_searched: bool


def draft_skin(skin: Skin, options: StepWriteOptions, *, is_strict: bool) -> DraftedSkin:
    """Choose the surfaces of a mesh.

    Recognition begins from planar facets as CAD programs make them. If most triangles of the result are facets by
    themselves, the mesh is noisy, or triangulated in another way: surfaces are fitted to its smooth regions instead.
    The result with fewer faces is kept.

    Args:
        skin: Mesh with outward orientation, millimeters.
        options: Kinds of surfaces to recognize, and their tolerance.
        is_strict: Whether surfaces that CAD programs may reject become flat, because no kernel checks them.
    """
    tolerance, begin = options.step_tolerance_mm, time.monotonic()
    drafting = Drafting(list_candidates(skin, options), is_strict, tolerance)
    draft = drafting.draft()
    first = DraftedSkin(drafting, draft, None, 0.0, None, False)
    if options.step_surfaces == "planar" or not _is_faceted(draft.model.regions):
        return first
    left = seconds_left()
    if left is not None and left < _MIN_LEFT_RATIO * (time.monotonic() - begin):
        return first
    try:
        regular = regularize(skin)
    except SearchStopped:
        return first
    first = first._replace(is_searched=True)
    if regular is None:
        return first
    planar = Candidate(regular.skin, regular.faceted, make_segments(regular.faceted.faces), group_bodies(regular.skin))
    drafting = Drafting((replace(planar, segments=regular.segments, is_fitted=True), planar), is_strict, tolerance)
    second = drafting.draft()
    if len(second.model.regions.surfaces) * _MIN_GAIN_RATIO > len(draft.model.regions.surfaces):
        return first
    chords = measure_distances(second.model).largest
    limit = _MAX_NOISE_RATIO * regular.sigma + _MAX_CHORD_RATIO * chords
    largest = measure_distances(replace(second.model, mesh_points=regular.points)).largest
    if largest > (limit if tolerance is None else min(limit, tolerance)):
        return first
    return DraftedSkin(drafting, second, regular.points, regular.sigma, first, True)


def count_facets(regions: Regions) -> int:
    """Return the number of triangles that are flat faces by themselves; 0 if these are few.

    Two triangles are a rectangle, of which brackets and boxes consist.
    """
    size = np.bincount(regions.region)
    is_alone = (size[regions.region] == 1) & ~regions.curved[regions.region]
    count, total = int(is_alone.sum()), len(regions.region)
    return count if total >= _MIN_IRREGULAR_COUNT and count > _MIN_NOTED_RATIO * total else 0


def _is_faceted(regions: Regions) -> bool:
    """Return whether many triangles are faces by themselves, but not so many that a second attempt takes long."""
    count = len(regions.region)
    size = np.bincount(regions.region)
    is_single = (size[regions.region] <= _MAX_SINGLE_COUNT) & ~regions.curved[regions.region]
    return _MIN_IRREGULAR_COUNT <= count <= _MAX_IRREGULAR_COUNT and bool(is_single.mean() > _MAX_SINGLE_RATIO)
