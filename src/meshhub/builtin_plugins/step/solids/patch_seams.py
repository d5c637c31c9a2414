"""Seams of patches that close around a hole or a core."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.solids.band_seams import Band
from meshhub.builtin_plugins.step.solids.seams import Seams
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.patches import Patch
from meshhub.toolkit.geometry import IntIndex


def find_patch_bands(skin: Skin, regions: Regions, outline: Outline) -> tuple[Band, ...]:
    """Return the closed patches, and the corners of their two rims between which their seams run."""
    bands = []
    size = np.diff(outline.chain_begin[outline.loop_begin])
    loop = np.repeat(np.arange(len(size)), size)
    for region in _find_closed(regions).tolist():
        patch: Patch = regions.surfaces.patch[region]
        loops = np.flatnonzero(outline.loop_region == region)
        if len(loops) != 2:
            continue
        points = []
        for number in loops.tolist():
            rim = skin.begin[outline.half[loop == number]]
            ends = skin.points[rim][:, None] - patch.poles[0, [0, -1]]
            off = np.sqrt(np.einsum("ijk,ijk->ij", ends, ends))
            place, end = np.unravel_index(off.argmin(), off.shape)
            points.append((int(rim[place]), int(end), float(off.min())))
        (one, one_end, one_off), (other, other_end, other_off) = points
        if one_end == other_end or max(one_off, other_off) > regions.limit[region]:
            continue
        position = skin.points[[one, other]]
        direction = regions.surfaces.axis[region]
        bands.append(Band(region, direction, (int(loops[0]), int(loops[1])), (one, other), position))
    return tuple(bands)


def find_unslit_patches(regions: Regions, seams: Seams) -> IntIndex:
    """Return the closed patches without a seam edge."""
    return np.setdiff1d(_find_closed(regions), [face.region for face in seams.slit_faces])


def _find_closed(regions: Regions) -> IntIndex:
    patches = np.flatnonzero(traits.IS_PATCH[regions.surfaces.kind])
    closed: IntIndex = patches[[patch.is_closed for patch in regions.surfaces.patch[patches]]]
    return closed
