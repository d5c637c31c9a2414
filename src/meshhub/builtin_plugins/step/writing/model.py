"""From a skin to a checked model: facets, recognised surfaces, outlines, curves; what does not fit goes back."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step import StepWriteOptions
from meshhub.builtin_plugins.step.recognition.arrays import sort_unique
from meshhub.builtin_plugins.step.recognition.bodies import Bodies, group_bodies
from meshhub.builtin_plugins.step.recognition.chord_cuts import assign_cut_facets, move_cut_corners
from meshhub.builtin_plugins.step.recognition.deviation import find_deviating, find_misshapen
from meshhub.builtin_plugins.step.recognition.facet_graph import build_facet_graph
from meshhub.builtin_plugins.step.recognition.faceting import FacetedSkin, facet_skin
from meshhub.builtin_plugins.step.recognition.outline import trace_outline
from meshhub.builtin_plugins.step.recognition.recognize import Segments, recognize_surfaces
from meshhub.builtin_plugins.step.recognition.regions import Regions, make_planar_regions, make_regions, region_areas
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.writing.brep import Model
from meshhub.builtin_plugins.step.writing.corners import cusped_regions, pinched_regions
from meshhub.builtin_plugins.step.writing.curves import curves_of, edge_regions
from meshhub.builtin_plugins.step.writing.ring_seams import belts_of, new_corners
from meshhub.builtin_plugins.step.writing.seams import pierced_spheres, seams_of
from meshhub.builtin_plugins.step.writing.validity import unsound_regions, unsound_shells
from meshhub.toolkit.geometry import IntIndex

_PATIENCE = 16


def modelled(skin: Skin, options: StepWriteOptions, flat_shells: IntIndex) -> Model:
    """The model of a skin, with the surfaces that were asked for; some shells keep flat faces."""
    faceted, bodies = facet_skin(skin), group_bodies(skin)
    if options.step_surfaces == "analytic":
        graph = build_facet_graph(skin, faceted)
        found = recognize_surfaces(graph, faceted.tolerance, options.step_tolerance_mm)
        found = assign_cut_facets(skin, faceted, graph, found, options.step_tolerance_mm)
        found = found.without(np.isin(_shells(skin, faceted), flat_shells))
        for attempt in range(_PATIENCE):
            if not (found.segment >= 0).any():
                break
            regions = make_regions(skin, faceted, found)
            on_surfaces, misfits = move_cut_corners(skin, regions, (found.segment != found.uncut)[faceted.region])
            if len(misfits) == 0:
                if on_surfaces is not skin:
                    regions = make_regions(on_surfaces, faceted, found)
                model, misfits = _outlined(on_surfaces, faceted, regions, bodies)
            if len(misfits) == 0:
                misfits = _curved_in(model, unsound_shells(model))
            if len(misfits) == 0:
                return model
            if attempt == _PATIENCE - 2:
                misfits = np.arange(len(regions.surfaces))
            found = _returned(faceted, regions, found, misfits)
    return _outlined(skin, faceted, make_planar_regions(faceted), bodies)[0]


def _shells(skin: Skin, faceted: FacetedSkin) -> IntIndex:
    """(f,) the shell of each facet."""
    shell = np.empty(faceted.faces, np.intp)
    shell[faceted.region] = skin.shell
    return shell


def _curved_in(model: Model, shells: IntIndex) -> IntIndex:
    """The curved regions of some shells."""
    regions = np.unique(model.regions.region[np.isin(model.skin.shell, shells)])
    made: IntIndex = regions[model.regions.curved[regions]].astype(np.intp)
    return made


def _outlined(skin: Skin, faceted: FacetedSkin, regions: Regions, bodies: Bodies) -> tuple[Model, IntIndex]:
    """The model of some regions, and the curved ones among them that do not fit."""
    kept = np.zeros(len(skin.points), np.bool_)
    while True:
        outline = trace_outline(skin, regions.region, regions.curved, faceted.tolerance, kept)
        curves = curves_of(skin, outline, regions)
        belts = belts_of(skin, regions, outline, curves)
        more = np.union1d(outline.inner_points(skin, curves.chords), new_corners(outline, belts))
        if len(more) == 0:
            break
        kept[more] = True
    model = Model(skin, regions, outline, curves, seams_of(skin, regions, outline, curves, belts), bodies)
    left, right = edge_regions(outline)
    left, right = left[curves.bad], right[curves.bad]
    # of two curved neighbours the smaller one goes
    size = np.where(regions.curved, region_areas(skin, regions), np.inf)
    unfit = np.where(size[left] <= size[right], left, right)
    strange = [
        unfit,
        find_deviating(skin, regions.region, regions.surfaces),
        find_misshapen(skin, regions.region, regions.surfaces, outline),
        pierced_spheres(regions, outline, model.seams),
        pinched_regions(regions, outline, curves),
        cusped_regions(skin, regions, outline, curves, size),
        unsound_regions(model, size),
    ]
    return model, sort_unique(np.concatenate(strange))


def _returned(faceted: FacetedSkin, regions: Regions, found: Segments, misfits: IntIndex) -> Segments:
    """The segments without the facets of some regions; only without those that were cut, where there are any."""
    region = np.empty(faceted.faces, np.intp)
    region[faceted.region] = regions.region
    gone = np.zeros(len(regions.surfaces), np.bool_)
    gone[misfits] = True
    cut = np.zeros(len(regions.surfaces), np.bool_)
    cut[region[found.segment != found.uncut]] = True
    back = np.where(cut[region], found.uncut, -1)
    sure = np.where(gone[region] & ~cut[region], -1, found.uncut)
    return Segments(found.surfaces, found.limit, np.where(gone[region], back, found.segment), sure)
