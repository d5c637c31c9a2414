"""Seams of swept surfaces that close around their direction or axis.

The seam of an extrusion is a straight edge between its two rims, where the profile begins and ends. The seam of a
surface of revolution is the profile; `seams` finds it like those of other surfaces around an axis.
"""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.recognition.arrays import lengths, sum_by_label
from meshhub.builtin_plugins.step.recognition.outline import Outline
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceKind, cylindrical
from meshhub.builtin_plugins.step.writing.band_seams import Band
from meshhub.builtin_plugins.step.writing.seams import Seams
from meshhub.toolkit.geometry import IntIndex


def find_extrusion_bands(skin: Skin, regions: Regions, outline: Outline) -> tuple[Band, ...]:
    """Return the closed extrusions with two rims, and the corners between which their seams run."""
    size = np.diff(outline.chain_begin[outline.loop_begin])
    loop = np.repeat(np.arange(len(size)), size)
    point = skin.begin[outline.half]
    bands = []
    for region in _find_closed(regions).tolist():
        rows = np.flatnonzero(outline.loop_region[loop] == region)
        band = _find_band(skin, regions, region, point[rows].astype(np.intp), loop[rows])
        if band is not None:
            bands.append(band)
    return tuple(bands)


def find_unslit_sweeps(skin: Skin, regions: Regions, outline: Outline, seams: Seams) -> IntIndex:
    """Return the swept surfaces that close around their direction or axis, but have no seam edge."""
    slit = [face.region for face in seams.slit_faces]
    half = outline.half[regions.surfaces.kind[regions.region[outline.half // 3]] == SurfaceKind.REVOLUTION]
    surfaces = regions.surfaces.take(regions.region[half // 3])
    _, _, low = cylindrical(surfaces, skin.points[skin.begin[half]])
    _, _, high = cylindrical(surfaces, skin.points[skin.end[half]])
    sine = np.einsum("ij,ij->i", np.cross(low, high), surfaces.axis)
    turn = np.arctan2(sine, np.einsum("ij,ij->i", low, high))
    loop_of_half = np.zeros(len(skin.twin), np.intp)
    size = np.diff(outline.chain_begin[outline.loop_begin])
    loop_of_half[outline.half] = np.repeat(np.arange(len(size)), size)
    # the turns of a loop add up to zero, or to ±2π if it winds around the axis
    winds = np.abs(sum_by_label(loop_of_half[half], turn, len(size))) > np.pi
    around = np.union1d(_find_closed(regions), outline.loop_region[winds])
    return np.setdiff1d(around, slit)


def _find_closed(regions: Regions) -> IntIndex:
    extrusions = np.flatnonzero(regions.surfaces.kind == SurfaceKind.EXTRUSION)
    closed: IntIndex = extrusions[[profile.is_closed for profile in regions.surfaces.profile[extrusions]]]
    return closed


def _find_band(skin: Skin, regions: Regions, region: int, point: IntIndex, loop: IntIndex) -> Band | None:
    """Return a closed extrusion with the ends of its seam; None if its outline does not have two corners there.

    Args:
        skin: Mesh, millimeters.
        regions: Regions of the mesh.
        region: The extrusion.
        point: (h,) points of its outline.
        loop: (h,) their loops.
    """
    surfaces = regions.surfaces
    profile, axis = surfaces.profile[region], surfaces.axis[region]
    x_axis = profile.x_axis
    basis = np.stack([x_axis, np.cross(axis, x_axis)], axis=1)
    offset = skin.points[point] - surfaces.origin[region]
    at_seam = np.flatnonzero(lengths(offset @ basis - profile.poles[0]) <= 2 * regions.limit[region])
    if len(at_seam) != 2 or loop[at_seam[0]] == loop[at_seam[1]]:
        return None
    ends, loops = point[at_seam], loop[at_seam]
    return Band(region, x_axis, (int(loops[0]), int(loops[1])), (int(ends[0]), int(ends[1])), skin.points[ends])
