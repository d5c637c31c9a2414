"""Assembly of a model from regions: outlines, curves, seams, and the checks of the result."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.facets.bodies import Bodies
from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin
from meshhub.builtin_plugins.step.facets.outline import Outline, trace_outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.deviation import find_deviating, find_misshapen
from meshhub.builtin_plugins.step.recognition.regions import Regions, region_areas
from meshhub.builtin_plugins.step.recognition.roundness import find_unfounded
from meshhub.builtin_plugins.step.solids.band_seams import Band, find_bands, find_new_corners
from meshhub.builtin_plugins.step.solids.corner_check import find_cusps, find_pinches
from meshhub.builtin_plugins.step.solids.curves import Curves, edge_regions, fit_curves
from meshhub.builtin_plugins.step.solids.edge_segments import segment_edges
from meshhub.builtin_plugins.step.solids.finite_check import find_undefined_regions
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.solids.model_check import find_invalid_regions, find_invalid_shells
from meshhub.builtin_plugins.step.solids.patch_check import find_bad_patches
from meshhub.builtin_plugins.step.solids.patch_seams import find_patch_bands, find_unslit_patches
from meshhub.builtin_plugins.step.solids.seams import find_unslit_spheres, place_seams
from meshhub.builtin_plugins.step.solids.trimmed_faces import measure_faces
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

IMPLAUSIBLE = "facets that are not round"
"""Reason of surfaces that were wrong guesses: their facets stay flat because they are flat."""


class Misfits(NamedTuple):
    """Curved regions that a check rejects.

    reason:  ends the sentence "flat because of …"
    regions: (k,) regions
    corners: (k,) points at which they fail, if it is enough that their facets there become flat; None for whole regions
    """

    reason: str
    regions: IntIndex
    corners: IntIndex | None = None


def find_implausible(skin: Skin, faceted: FacetedSkin, regions: Regions) -> IntIndex:
    """Return the curved regions that their own facets do not explain; these guesses are wrong in any model."""
    found = [
        find_deviating(skin, regions.region, regions.surfaces, regions.limit),
        find_unfounded(skin, faceted.region, regions),
        find_bad_patches(skin, regions),
    ]
    return np.unique(np.concatenate(found)).astype(np.intp)


def assemble_model(
    skin: Skin, mesh_points: Float64, faceted: FacetedSkin, regions: Regions, bodies: Bodies
) -> BrepModel:
    """Return the model of some regions, with unchecked shells.

    Args:
        skin: Mesh; corners may have been moved onto surfaces.
        mesh_points: (p, 3) points of the mesh before that.
        faceted: Planar facets of the mesh.
        regions: Regions with their surfaces.
        bodies: Roles of the shells.
    """
    outline, curves, bands = _trace_edges(skin, faceted, regions)
    seams = place_seams(skin, regions, outline, curves, bands)
    return BrepModel(skin, mesh_points, regions, outline, curves, seams, bodies)


def _trace_edges(skin: Skin, faceted: FacetedSkin, regions: Regions) -> tuple[Outline, Curves, tuple[Band, ...]]:
    """Return the outlines of the regions, their curves, and the bands that seams cut; the latter need more corners."""
    kept = np.zeros(len(skin.points), np.bool_)
    while True:
        outline = trace_outline(skin, regions.region, regions.curved, faceted.tolerance, kept)
        curves = fit_curves(skin, outline, regions)
        bands = find_bands(skin, regions, outline, curves) + find_patch_bands(skin, regions, outline)
        more = np.union1d(outline.inner_points(skin, curves.chords), find_new_corners(outline, bands))
        if len(more) == 0:
            return outline, curves, bands
        kept[more] = True


def check_model(model: BrepModel, *, is_strict: bool) -> tuple[BrepModel, list[Misfits]]:
    """Return a model with its invalid shells, and the curved regions that fail a check by themselves.

    Args:
        model: Assembled model.
        is_strict: Whether to reject also what only some CAD programs do, because no kernel checks the file.
    """
    skin, regions, outline, curves, seams = model.skin, model.regions, model.outline, model.curves, model.seams
    undefined = find_undefined_regions(regions, outline, curves, seams)
    if len(undefined):
        return model, [Misfits("numbers that are not finite", undefined)]
    segments = segment_edges(model)
    faces = measure_faces(model, segments)
    left, right = (side[curves.bad] for side in edge_regions(outline))
    # of two curved neighbors of a bad edge the smaller one becomes flat
    size = np.where(regions.curved, region_areas(skin, regions), np.inf)
    unslit = [
        find_unslit_spheres(regions, outline, seams),
        find_unslit_patches(regions, seams),
    ]
    misfits = [
        Misfits("edges off their surfaces", np.where(size[left] <= size[right], left, right)),
        Misfits(IMPLAUSIBLE, find_misshapen(skin, regions.region, regions.surfaces, outline)),
        Misfits("a seam without room", np.concatenate(unslit)),
        Misfits("arcs that touch", *find_pinches(regions, outline, curves)),
        Misfits("arcs that touch", *find_cusps(skin, regions, outline, curves, size)),
        Misfits("outlines that cross", find_invalid_regions(model, segments, faces, size, is_strict=is_strict)),
    ]
    model = replace(model, invalid_shells=find_invalid_shells(model, faces))
    return model, [misfit for misfit in misfits if len(misfit.regions)]
