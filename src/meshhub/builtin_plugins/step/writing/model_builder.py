"""Construction of a checked model from a skin: facets, recognized surfaces, outlines, curves, seams.

Surfaces that fail a check become flat facets again, and the model is built anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step import StepWriteOptions
from meshhub.builtin_plugins.step.recognition.arrays import lengths, sort_unique, sum_by_label
from meshhub.builtin_plugins.step.recognition.bodies import Bodies, group_bodies
from meshhub.builtin_plugins.step.recognition.chart_borders import move_chart_borders
from meshhub.builtin_plugins.step.recognition.charts import lay_out_charts
from meshhub.builtin_plugins.step.recognition.chord_cuts import assign_cut_facets
from meshhub.builtin_plugins.step.recognition.cut_corners import (
    find_deep_corners,
    move_cut_corners,
    move_rounded_points,
)
from meshhub.builtin_plugins.step.recognition.design_values import round_to_design_values
from meshhub.builtin_plugins.step.recognition.deviation import find_deviating, find_misshapen
from meshhub.builtin_plugins.step.recognition.edge_flips import flip_spanning_edges
from meshhub.builtin_plugins.step.recognition.facet_graph import FacetGraph, build_facet_graph
from meshhub.builtin_plugins.step.recognition.faceting import FacetedSkin, facet_skin
from meshhub.builtin_plugins.step.recognition.outline import trace_outline
from meshhub.builtin_plugins.step.recognition.patch_search import add_patches
from meshhub.builtin_plugins.step.recognition.recognize import Segments, recognize_surfaces
from meshhub.builtin_plugins.step.recognition.regions import Regions, make_planar_regions, make_regions, region_areas
from meshhub.builtin_plugins.step.recognition.roundness import find_unfounded
from meshhub.builtin_plugins.step.recognition.shared_axes import share_axes
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import FREE_KINDS
from meshhub.builtin_plugins.step.recognition.sweeps import add_swept_surfaces
from meshhub.builtin_plugins.step.writing.band_seams import find_bands, find_new_corners
from meshhub.builtin_plugins.step.writing.brep import BrepModel
from meshhub.builtin_plugins.step.writing.corner_check import find_cusped_regions, find_pinched_regions
from meshhub.builtin_plugins.step.writing.curves import edge_regions, fit_curves
from meshhub.builtin_plugins.step.writing.edge_segments import segment_edges
from meshhub.builtin_plugins.step.writing.finite_check import find_undefined_regions
from meshhub.builtin_plugins.step.writing.model_check import find_invalid_regions, find_invalid_shells
from meshhub.builtin_plugins.step.writing.patch_check import find_bad_patches
from meshhub.builtin_plugins.step.writing.patch_seams import find_patch_bands, find_unslit_patches
from meshhub.builtin_plugins.step.writing.seams import find_unslit_spheres, place_seams
from meshhub.builtin_plugins.step.writing.slits import close_slits
from meshhub.builtin_plugins.step.writing.swept_seams import find_extrusion_bands, find_unslit_sweeps
from meshhub.builtin_plugins.step.writing.trimmed_faces import measure_faces
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_ATTEMPTS_COUNT = 16
"""Models that are built before all surfaces become flat facets; bounds the time."""

_MAX_FLIPS_COUNT = 4
"""Searches for surfaces after edges were flipped; each finds larger surfaces, beside which more edges are flipped."""

_MAX_LEFT_RATIO = 0.5
"""Part of the free facets that may stay free after a search with flipped edges; on a thread, most do."""

_MAX_FREE_COUNT = 1000
"""Free facets beyond which no edges are flipped; threads and scans have thousands, and a search takes seconds."""

_MAX_MOVE_RATIO = 4.0
"""Tolerances by which a point may move onto its surfaces: as far as points may lie off a surface."""

_MAX_RESTORED_COUNT = 4
"""Rejected surfaces that are tried again in a model without faults; each costs the time of a model."""

_MAX_RESTORE_TRIANGLES_COUNT = 20_000
"""Triangles beyond which no rejected surface is tried again; a model of a scan takes seconds."""


class _Search(NamedTuple):
    """A mesh and the surfaces that were recognized in it."""

    skin: Skin
    faceted: FacetedSkin
    graph: FacetGraph
    segments: Segments

    def count_free(self) -> int:
        """Return the number of facets on no surface, except for broad ones."""
        return int(((self.segments.segment < 0) & ~self.graph.is_broad).sum())


class _Surfaces(NamedTuple):
    """A mesh, its analytic surfaces, and all its surfaces."""

    skin: Skin
    faceted: FacetedSkin
    analytic: Segments
    segments: Segments


def _search_surfaces(skin: Skin, faceted: FacetedSkin, requested: float | None) -> _Search:
    """Recognize the surfaces of a mesh."""
    graph = build_facet_graph(skin, faceted)
    return _Search(skin, faceted, graph, recognize_surfaces(graph, faceted.tolerance, requested))


def _search_flipped(search: _Search, requested: float | None) -> _Search | None:
    """Flip the edges that cross a rim, and recognize the surfaces again; None if there are no such edges."""
    if search.count_free() > _MAX_FREE_COUNT:
        return None
    flipped = flip_spanning_edges(search.skin, search.faceted.region, search.graph, search.segments)
    if flipped is search.skin:
        return None
    return _search_surfaces(*close_slits(flipped, facet_skin(flipped)), requested)


class ModelDraft:
    """Facets of a skin and the surfaces that are still to try; each model that is built may be rejected in part."""

    def __init__(self, skin: Skin, options: StepWriteOptions, *, is_strict: bool) -> None:
        """Recognize the surfaces of a skin.

        Args:
            skin: Mesh with outward orientation, millimeters.
            options: Kinds of surfaces to recognize, and their tolerance.
            is_strict: Whether surfaces that CAD programs may reject become flat, because no kernel checks them.
        """
        self._is_strict = is_strict
        # a model that fails a check is built again with its points unmoved, and so are the following ones
        self._has_exact_points = True
        self._options = options
        self._mesh = close_slits(skin, facet_skin(skin))
        self._recognize(may_flip=True)

    def _recognize(self, *, may_flip: bool) -> None:
        """Recognize the surfaces of the mesh.

        Args:
            may_flip: Whether edges that cross the rim between two surfaces are flipped.
        """
        self._segments: Segments | None = None
        self._analytic: Segments | None = None
        self._uncharted: _Surfaces | None = None
        (self._skin, self._faceted), self._is_flipped = self._mesh, False
        if self._options.step_surfaces != "planar":
            requested = self._options.step_tolerance_mm
            search = _search_surfaces(*self._mesh, requested)
            for _ in range(_MAX_FLIPS_COUNT if may_flip else 0):
                following = _search_flipped(search, requested)
                if following is None or following.count_free() > _MAX_LEFT_RATIO * search.count_free():
                    break
                search, self._is_flipped = following, True
            self._skin, self._faceted, graph, segments = search
            segments = assign_cut_facets(self._skin, self._faceted, graph, segments, requested)
            segments = round_to_design_values(graph, segments, self._faceted.tolerance)
            if self._options.step_surfaces == "freeform":
                self._analytic = segments
                segments = add_swept_surfaces(self._skin, self._faceted, graph, segments)
                segments = add_patches(self._skin, self._faceted, graph, segments)
                if requested is not None:
                    segments = self._add_charts(graph, segments, requested)
            self._segments = segments
        self._bodies = group_bodies(self._skin)

    def _add_charts(self, graph: FacetGraph, segments: Segments, allowed: float) -> Segments:
        """Return the segments with charts; cuts the triangles along their borders."""
        assert self._analytic is not None
        layout = lay_out_charts(self._skin, self._faceted, graph, segments, allowed)
        if layout is None:
            return segments
        self._uncharted = _Surfaces(self._skin, self._faceted, self._analytic, segments)
        self._has_exact_points = False
        self._skin, self._faceted, self._analytic = layout.skin, layout.faceted, self._analytic.select(layout.facet)
        return layout.segments

    def _drop_charts(self) -> bool:
        """Return to the triangles of the mesh and to its surfaces before charts, and whether there were any."""
        if self._uncharted is None:
            return False
        self._skin, self._faceted, self._analytic, self._segments = self._uncharted
        self._bodies = group_bodies(self._skin)
        self._uncharted, self._has_exact_points = None, True
        return True

    def build(self) -> BrepModel:
        """Build a model; surfaces that fail a check become flat facets."""
        earlier = self._segments
        for attempt in range(_MAX_ATTEMPTS_COUNT):
            if self._segments is None or not (self._segments.segment >= 0).any():
                break
            regions, model, misfits = self._try_segments(self._segments)
            if model is not None and len(misfits) == 0:
                return self._move_points(self._restore_surfaces(model, earlier or self._segments))
            if attempt == _MAX_ATTEMPTS_COUNT - 2:
                if self._drop_charts():
                    return self.build()
                misfits = np.arange(len(regions.surfaces))
            is_flipped = self._is_flipped
            self.reject(regions, misfits)
            if is_flipped:
                earlier = self._segments
        regions = make_planar_regions(self._faceted)
        return _assemble_model(self._skin, self._skin.points, self._faceted, regions, self._bodies, is_strict=False)[0]

    def _restore_surfaces(self, model: BrepModel, earlier: Segments) -> BrepModel:
        """Return a model with the largest rejected surfaces that pass the checks now.

        Two surfaces that do not go together may both have been rejected, or one of them before the other.

        Args:
            model: Model without faults.
            earlier: Segments before any was rejected.
        """
        assert self._segments is not None
        is_lost = (earlier.segment >= 0) & (self._segments.segment != earlier.segment)
        is_scan = self._uncharted is not None or len(self._skin.faces) > _MAX_RESTORE_TRIANGLES_COUNT
        if is_scan or not is_lost.any():
            return model
        area = sum_by_label(self._faceted.region, lengths(self._skin.cross), self._faceted.faces)
        lost = np.bincount(earlier.segment[is_lost], area[is_lost])
        for number in np.argsort(-lost, kind="stable")[: min(_MAX_RESTORED_COUNT, np.count_nonzero(lost))].tolist():
            segments = self._segments.restore(earlier, np.flatnonzero(earlier.segment == number))
            _, restored, misfits = self._try_segments(segments)
            if restored is not None and len(misfits) == 0:
                self._segments, model = segments, restored
        return model

    def reject(self, regions: Regions, misfits: IntIndex) -> None:
        """Return some regions of a model to facets, and those of swept surfaces to analytic surfaces.

        Facets beside flipped edges are not those of the mesh: the surfaces of the mesh itself are tried instead.
        """
        if self._segments is None:
            return
        if self._is_flipped:
            self._recognize(may_flip=False)
            return
        self._segments = _remove_misfits(self._faceted, regions, self._segments, misfits)
        if self._analytic is not None:
            swept = misfits[np.isin(regions.surfaces.kind[misfits], FREE_KINDS)]
            facets = np.unique(self._faceted.region[np.isin(regions.region, swept)]).astype(np.intp)
            self._segments = self._segments.restore(self._analytic, facets)

    def flatten(self, shells: IntIndex) -> None:
        """Return all surfaces of some shells to facets; the first time, return free-form to analytic surfaces.

        Charts of other shells are lost, too, so that no facet stays cut.
        """
        if self._segments is None or self._drop_charts():
            return
        if self._is_flipped:
            self._recognize(may_flip=False)
        is_mine = np.isin(_facet_shells(self._skin, self._faceted), shells)
        if self._analytic is not None and is_mine.any() and not self._has_analytic(is_mine):
            self._segments = self._segments.restore(self._analytic, np.flatnonzero(is_mine))
        else:
            self._segments = self._segments.without(is_mine)

    def _has_analytic(self, is_mine: NDArray[np.bool_]) -> bool:
        """Return whether no facet of a mask has a free-form surface."""
        assert self._segments is not None
        own = self._segments.segment[is_mine]
        kinds = self._segments.surfaces.kind[own[own >= 0]]
        return not np.isin(kinds, FREE_KINDS).any()

    def _try_segments(self, segments: Segments) -> tuple[Regions, BrepModel | None, IntIndex]:
        """Return regions, their model, and the regions that fail a check; no model if corners cannot be moved."""
        regions = self._make_regions(self._skin, segments)
        is_cut = (segments.segment != segments.uncut)[self._faceted.region]
        misfits = find_deep_corners(self._skin, regions, is_cut)
        if len(misfits):
            return regions, None, misfits
        moved_skin, misfits = move_cut_corners(self._skin, regions, is_cut)
        if len(misfits):
            return regions, None, misfits
        if moved_skin is not self._skin:
            regions = self._make_regions(moved_skin, segments)
        if self._uncharted is not None:
            moved_skin = move_chart_borders(moved_skin, regions)
        if self._has_exact_points:
            exact_skin = move_rounded_points(moved_skin, regions, self._max_move_mm())
            model, misfits = self._check_model(exact_skin, regions)
            if len(misfits) == 0 or exact_skin is moved_skin:
                return regions, model, misfits
            self._has_exact_points = False
        model, misfits = self._check_model(moved_skin, regions)
        return regions, model, misfits

    def _make_regions(self, skin: Skin, segments: Segments) -> Regions:
        """Make the regions of a skin, with common axes."""
        return share_axes(skin, make_regions(skin, self._faceted, segments), self._faceted.tolerance)

    def _move_points(self, model: BrepModel) -> BrepModel:
        """Return a model with its points moved onto their surfaces, if it still passes the checks."""
        if self._has_exact_points or self._uncharted is not None:
            return model
        skin = move_rounded_points(model.skin, model.regions, self._max_move_mm())
        if skin is model.skin:
            return model
        moved, misfits = self._check_model(skin, model.regions)
        return model if len(misfits) else moved

    def _max_move_mm(self) -> float:
        return _MAX_MOVE_RATIO * self._faceted.tolerance

    def _check_model(self, skin: Skin, regions: Regions) -> tuple[BrepModel, IntIndex]:
        """Return the model of a skin with moved points, and the curved regions that fail a check."""
        model, misfits = _assemble_model(
            skin, self._skin.points, self._faceted, regions, self._bodies, is_strict=self._is_strict
        )
        if len(misfits) == 0:
            misfits = _curved_regions(model, model.invalid_shells)
        return model, misfits


def _facet_shells(skin: Skin, faceted: FacetedSkin) -> IntIndex:
    """Return (f,) the shell of each facet."""
    shell = np.empty(faceted.faces, np.intp)
    shell[faceted.region] = skin.shell
    return shell


def _curved_regions(model: BrepModel, shells: IntIndex) -> IntIndex:
    """Return the curved regions of some shells."""
    regions = np.unique(model.regions.region[np.isin(model.skin.shell, shells)])
    curved: IntIndex = regions[model.regions.curved[regions]].astype(np.intp)
    return curved


def _assemble_model(
    skin: Skin, mesh_points: Float64, faceted: FacetedSkin, regions: Regions, bodies: Bodies, *, is_strict: bool
) -> tuple[BrepModel, IntIndex]:
    """Return the model of some regions, and the curved regions that fail a check."""
    kept = np.zeros(len(skin.points), np.bool_)
    while True:
        outline = trace_outline(skin, regions.region, regions.curved, faceted.tolerance, kept)
        curves = fit_curves(skin, outline, regions)
        bands = (
            find_bands(skin, regions, outline, curves)
            + find_extrusion_bands(skin, regions, outline)
            + find_patch_bands(skin, regions, outline)
        )
        more = np.union1d(outline.inner_points(skin, curves.chords), find_new_corners(outline, bands))
        if len(more) == 0:
            break
        kept[more] = True
    seams = place_seams(skin, regions, outline, curves, bands)
    model = BrepModel(skin, mesh_points, regions, outline, curves, seams, bodies)
    undefined = find_undefined_regions(regions, outline, curves, seams)
    if len(undefined):
        return model, undefined
    segments = segment_edges(model)
    faces = measure_faces(model, segments)
    left, right = edge_regions(outline)
    left, right = left[curves.bad], right[curves.bad]
    # of two curved neighbors of a bad edge the smaller one becomes flat
    size = np.where(regions.curved, region_areas(skin, regions), np.inf)
    misfits = [
        np.where(size[left] <= size[right], left, right),
        find_deviating(skin, regions.region, regions.surfaces, regions.limit),
        find_misshapen(skin, regions.region, regions.surfaces, outline),
        find_unfounded(skin, faceted.region, regions),
        find_unslit_spheres(regions, outline, seams),
        find_unslit_sweeps(skin, regions, outline, seams),
        find_unslit_patches(regions, seams),
        find_bad_patches(skin, regions),
        find_pinched_regions(regions, outline, curves),
        find_cusped_regions(skin, regions, outline, curves, size),
        find_invalid_regions(model, segments, faces, size, is_strict=is_strict),
    ]
    model = replace(model, invalid_shells=find_invalid_shells(model, faces))
    return model, sort_unique(np.concatenate(misfits))


def _remove_misfits(faceted: FacetedSkin, regions: Regions, segments: Segments, misfits: IntIndex) -> Segments:
    """Return the segments without the facets of some regions.

    A region that has facets cut by a boolean operation loses only these; it is tried again without them.
    """
    region = np.empty(faceted.faces, np.intp)
    region[faceted.region] = regions.region
    is_misfit = np.zeros(len(regions.surfaces), np.bool_)
    is_misfit[misfits] = True
    has_cut_facets = np.zeros(len(regions.surfaces), np.bool_)
    has_cut_facets[region[segments.segment != segments.uncut]] = True
    reduced = np.where(has_cut_facets[region], segments.uncut, -1)
    uncut = np.where(is_misfit[region] & ~has_cut_facets[region], -1, segments.uncut)
    return Segments(segments.surfaces, segments.limit, np.where(is_misfit[region], reduced, segments.segment), uncut)
