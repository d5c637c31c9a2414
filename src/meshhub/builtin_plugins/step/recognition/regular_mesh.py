"""A noisy or irregular mesh as a mesh of exact surfaces: each vertex moves onto the surfaces that meet there."""

# why this way: docs/decisions/0058-noisy-meshes.md
from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin, outline_faces
from meshhub.builtin_plugins.step.facets.planar import estimate_tolerance
from meshhub.builtin_plugins.step.facets.skin import Skin, build_skin
from meshhub.builtin_plugins.step.recognition.creases import split_at_creases
from meshhub.builtin_plugins.step.recognition.noisy_design import find_relations, information, round_radii
from meshhub.builtin_plugins.step.recognition.noisy_faces import (
    MIN_POINTS,
    choose_sides,
    dissolve_remainders,
    fill_gaps,
    join_islands,
    list_neighbors,
    list_region_points,
    merge_equal,
    refine,
)
from meshhub.builtin_plugins.step.recognition.noisy_points import estimate_noise, measure_roughness
from meshhub.builtin_plugins.step.recognition.noisy_regions import NoisyRegions, grow_regions
from meshhub.builtin_plugins.step.recognition.noisy_vertices import move_points
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs, lengths
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import distances
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex, face_normals
from meshhub.toolkit.topology import components, first_members

_MIN_REGIONS_COUNT = 2
"""Regions of a mesh that is worth a second attempt."""

_MAX_FREE_RATIO = 0.3
"""Share of triangles without a region, above which the mesh is not made of these surfaces, such as a sculpture."""

_MIN_EDGE_RATIO = 1e-3
"""Length of an edge over the median one, up to which both ends are one point: where four surfaces touch in a point."""


class RegularMesh(NamedTuple):
    """A mesh whose vertices lie on surfaces.

    skin:     mesh
    faceted:  its planar facets; each triangle of a curved region is one
    segments: surfaces of the curved regions
    points:   (p, 3) points of the original
    sigma:    mm, deviation of the noise of the original
    """

    skin: Skin
    faceted: FacetedSkin
    segments: Segments
    points: Float64
    sigma: float


def regularize(skin: Skin) -> RegularMesh | None:
    """Return a mesh with its vertices on the surfaces of its smooth regions; None if it has none.

    Raises:
        SearchStopped: The deadline is near.
    """
    noise = estimate_noise(measure_roughness(split_at_creases(skin)).local)
    sides = split_at_creases(skin, noise)
    regions = grow_regions(sides, measure_roughness(sides))
    if len(regions.surfaces) < _MIN_REGIONS_COUNT or (regions.region < 0).mean() > _MAX_FREE_RATIO:
        return None
    regions = merge_equal(skin, refine(sides, regions))
    if (regions.region < 0).mean() > _MAX_FREE_RATIO:
        return None
    regions = design(skin, dissolve_remainders(skin, fill_gaps(skin, regions)))
    regions = join_islands(skin, choose_sides(skin, regions))
    skin, moved, region = _join_points(skin, move_points(skin, regions), regions.region)
    regions = regions._replace(region=region)
    faceted = _outline_regions(moved, regions)
    surface = np.full(faceted.faces, -1, np.intp)
    is_curved = (region >= 0) & (regions.surfaces.kind[region] != SurfaceKind.PLANE)
    surface[faceted.region[is_curved]] = region[is_curved]
    limit = np.full(len(regions.surfaces), faceted.tolerance)
    segments = Segments(regions.surfaces, limit, surface, surface)
    return RegularMesh(moved, faceted, segments, skin.points, float(regions.sigma.max()))


def _join_points(skin: Skin, points: Float64, region: IntIndex) -> tuple[Skin, Skin, IntIndex]:
    """Join points at the same place; return the mesh without the faces between them, moved, and its regions."""
    length = lengths(points[skin.end] - points[skin.begin])
    short = length < _MIN_EDGE_RATIO * float(np.median(length))
    _, label = components(len(points), skin.begin[short].astype(np.intp), skin.end[short].astype(np.intp))
    first = first_members(label, int(label.max()) + 1)[label]
    faces = first[skin.faces]
    kept = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    moved = build_skin(points, faces[kept].astype(np.int32), skin.paint[kept])
    before = np.empty_like(moved.points)
    before[moved.faces] = skin.points[faces[kept]]
    return replace(moved, points=before, cross=face_normals(before, moved.faces)), moved, region[kept]


def _outline_regions(skin: Skin, regions: NoisyRegions) -> FacetedSkin:
    """Return the skin as planar faces: connected triangles of a plane and a color, and single ones of other regions."""
    half = np.flatnonzero(skin.twin > np.arange(len(skin.twin)))
    one, other = half // 3, skin.twin[half] // 3
    region = regions.region
    is_same = (region[one] == region[other]) & (region[one] >= 0) & (skin.paint[one] == skin.paint[other])
    is_same &= regions.surfaces.kind[region[one]] == SurfaceKind.PLANE
    count, label = components(len(region), one[is_same], other[is_same])
    return outline_faces(skin, label.astype(np.int32), count, estimate_tolerance(skin.points))


def design(skin: Skin, regions: NoisyRegions) -> NoisyRegions:
    """Return the regions with surfaces that meet as those of a designer do."""
    point, owner = list_region_points(skin, regions.region)
    used = np.unique(owner)
    place = np.full(len(regions.surfaces), -1, np.intp)
    place[used] = np.arange(len(used))
    region = np.where(regions.region >= 0, place[regions.region], -1)
    surfaces, owner, sigma = regions.surfaces.take(used), place[owner], regions.sigma[used]
    one, other = list_neighbors(skin)
    meets = (region[one] >= 0) & (region[other] > region[one])
    first, second = distinct_pairs(region[one[meets]], region[other[meets]], len(used))
    middle = np.stack([np.bincount(owner, column) for column in skin.points[point].T], 1) / np.bincount(owner)[:, None]
    along = np.einsum("ij,ij->i", middle - surfaces.origin, surfaces.axis)
    along = np.where(traits.IS_RULED[surfaces.kind], along, 0.0)
    slope = np.where(traits.HAS_SLOPE[surfaces.kind], surfaces.second, 0.0)
    origin = surfaces.origin + along[:, None] * surfaces.axis
    surfaces = replace(surfaces, origin=origin, radius=surfaces.radius + slope * along)
    # the fits used the points that only one region has; where these are few, the surface has a larger uncertainty
    is_own = (np.bincount(point) == 1)[point]
    is_used = is_own | (np.bincount(owner, is_own, len(used)) < MIN_POINTS)[owner]
    matrices = information(surfaces, owner[is_used], skin.points[point[is_used]], sigma)
    relations = find_relations(surfaces, np.stack([first, second], axis=1), matrices, sigma)
    relations.solve()
    round_radii(relations)
    better = relations.solve()
    before, after = (
        np.sqrt(np.bincount(owner, distances(s.take(owner), skin.points[point]) ** 2) / np.bincount(owner))
        for s in (surfaces, better)
    )
    worse = np.flatnonzero(~(after <= 1.3 * before + 0.1 * sigma))
    better = better.replace_rows(worse, surfaces.take(worse))
    return NoisyRegions(region, better, sigma)
