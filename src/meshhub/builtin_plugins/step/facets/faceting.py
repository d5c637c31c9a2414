"""A skin as planar faces whose polyhedra keep the volumes of the mesh."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.bodies import shell_origins, shell_sizes, shell_volumes
from meshhub.builtin_plugins.step.facets.outline import Outline, signed_areas, trace_outline
from meshhub.builtin_plugins.step.facets.overlaps import find_overlapping
from meshhub.builtin_plugins.step.facets.planar import (
    FLOAT32_HALF_UNIT_RATIO,
    ROUNDING_RATIO,
    Labels,
    Planes,
    estimate_tolerance,
    fit_planes,
    merge_coplanar_faces,
    split_regions,
)
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_VOLUME_CHANGE_RATIO = 3e-7
"""Part of the volume of a shell by which planar faces may change it; `step_surfaces=planar` promises 1e-6."""

_MAX_ATTEMPTS = 5
"""Attempts with finer tolerances; the last one is taken without a check."""

_FINER_RATIO = 0.1
"""Factor of the tolerance from one attempt to the next."""

_MAX_SPLITS = 3
"""Attempts to split faces that swallow an edge, with ever more needles as faces of their own."""

_MAX_OFF_RATIO = 0.5
"""Distance of a corner from its face over the length of an edge at the corner; twice as far, the edge vanishes."""


class FacetedSkin(NamedTuple):
    """A skin as planar faces.

    region:    (m,) face of each triangle
    faces:     number of faces
    planes:    planes of the faces
    outline:   outlines of the faces
    tolerance: millimeters; the tolerance of the merging
    """

    region: NDArray[np.int32]
    faces: int
    planes: Planes
    outline: Outline
    tolerance: float


def facet_skin(skin: Skin) -> FacetedSkin:
    """Merge the triangles of a skin into planar faces whose polyhedra have the volumes of the mesh.

    Coordinates that are finer than float32 can make the estimated tolerance too large, so that merging moves a face too
    far. Then the merging is repeated with a finer tolerance. Faces that overlap themselves are split into triangles, as
    are those that would swallow an edge.
    """
    tolerance = estimate_tolerance(skin.points)
    volume, size = shell_volumes(skin), shell_sizes(skin)
    allowed = _MAX_VOLUME_CHANGE_RATIO * np.maximum(np.abs(volume), _MAX_VOLUME_CHANGE_RATIO * size)
    if np.array_equal(skin.points, skin.points.astype(np.float32)):
        # the volume of the mesh itself is only as exact as its rounded coordinates
        half_unit = tolerance / ROUNDING_RATIO * FLOAT32_HALF_UNIT_RATIO
        allowed = np.maximum(allowed, half_unit * size ** (2 / 3))
    for attempt in range(_MAX_ATTEMPTS):
        faceted = outline_faces(skin, *merge_coplanar_faces(skin, tolerance), tolerance)
        if attempt == _MAX_ATTEMPTS - 1:
            break
        change = np.abs(_polyhedron_volumes(skin, faceted) - volume)
        if (change <= allowed)[skin.closed].all():
            break
        tolerance *= _FINER_RATIO
    overlapping = find_overlapping(skin, faceted.planes, faceted.outline, tolerance)
    if len(overlapping):
        faceted = outline_faces(skin, *split_regions(skin, faceted.region, overlapping, tolerance), tolerance)
    needle_tolerance = tolerance
    for _ in range(_MAX_SPLITS):
        swallowing = _find_swallowing(skin, faceted)
        if len(swallowing) == 0:
            break
        # needles have the shortest edges, and must be more slender to stay with their neighbors
        needle_tolerance *= _FINER_RATIO
        faceted = outline_faces(skin, *split_regions(skin, faceted.region, swallowing, needle_tolerance), tolerance)
    return faceted


def _find_swallowing(skin: Skin, faceted: FacetedSkin) -> IntIndex:
    """Return the faces that are farther from a corner than half of an edge at this corner is long.

    CAD programs give edges and corners a tolerance that reaches their faces; a shorter edge vanishes, and its faces are
    torn.
    """
    outline, planes = faceted.outline, faceted.planes
    length = lengths(skin.points[outline.stop] - skin.points[outline.start])
    length[outline.start == outline.stop] = np.inf
    shortest = np.full(len(skin.points), np.inf)
    np.minimum.at(shortest, outline.start, length)
    np.minimum.at(shortest, outline.stop, length)
    normal, center = planes.normal[outline.region], planes.center[outline.region]
    off = np.max(
        [np.abs(np.einsum("ij,ij->i", skin.points[end] - center, normal)) for end in (outline.start, outline.stop)],
        axis=0,
    )
    reach = np.minimum(shortest[outline.start], shortest[outline.stop])
    return np.unique(outline.region[off > _MAX_OFF_RATIO * reach]).astype(np.intp)


def outline_faces(skin: Skin, region: Labels, count: int, tolerance: float) -> FacetedSkin:
    """Return a skin as planar faces.

    Args:
        skin: Mesh, millimeters.
        region: (m,) face of each triangle.
        count: Number of faces.
        tolerance: Millimeters by which the triangles of a face may lie off its plane.
    """
    planes = fit_planes(skin, region, count)
    outline = trace_outline(skin, region, np.zeros(count, np.bool_), tolerance)
    return FacetedSkin(region, count, planes, outline, tolerance)


def _polyhedron_volumes(skin: Skin, faceted: FacetedSkin) -> Float64:
    """Return the (s,) volume of each shell between the planes of its faces, from the areas of their loops."""
    planes, outline = faceted.planes, faceted.outline
    shell = np.empty(len(planes.normal), np.intp)
    shell[faceted.region] = skin.shell
    height = np.einsum("ij,ij->i", planes.center - shell_origins(skin)[shell], planes.normal)
    loop_region = outline.loop_region
    pyramids = signed_areas(skin, outline, planes.normal) * height[loop_region] / 6
    return sum_by_label(shell[loop_region], pyramids, len(skin.closed))
