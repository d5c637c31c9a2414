"""Regions of connected triangles on one plane or recognized surface; each region is written as one face."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin
from meshhub.builtin_plugins.step.facets.planar import fit_planes
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, sum_by_label
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, concatenate, make_planes
from meshhub.builtin_plugins.step.surfaces.surfaces import gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Regions:
    """Connected triangles of one surface and one color.

    region:   (m,) region of each triangle
    surfaces: (r,) surface of each region
    limit:    (r,) millimeters that the points of a region may lie off its surface
    outward:  (r,) whether the normal of the surface is the normal of the face
    segment:  (r,) index of the recognized surface, -1 for a plane
    """

    region: NDArray[np.int32]
    surfaces: SurfaceArray
    limit: Float64
    outward: Mask
    segment: IntIndex

    @property
    def curved(self) -> Mask:
        """(r,) whether the surface is not a plane."""
        result: Mask = ~traits.IS_PLANE[self.surfaces.kind]
        return result


def make_planar_regions(faceted: FacetedSkin) -> Regions:
    """Make a region of each facet."""
    count = faceted.faces
    return Regions(
        faceted.region,
        make_planes(faceted.planes.normal, faceted.planes.center),
        np.full(count, faceted.tolerance),
        np.ones(count, np.bool_),
        np.full(count, -1, np.intp),
    )


def make_regions(skin: Skin, faceted: FacetedSkin, segments: Segments) -> Regions:
    """Make a region of each facet that stays planar, and of each set of connected facets on one recognized surface."""
    segment = segments.segment[faceted.region]
    label = np.where(segment >= 0, faceted.faces + segment, faceted.region)
    half = np.flatnonzero((skin.twin >= 0) & (np.arange(len(skin.twin)) < skin.twin))
    one, other = half // 3, skin.twin[half] // 3
    is_same = (label[one] == label[other]) & (skin.paint[one] == skin.paint[other])
    count, region = components(len(label), one[is_same], other[is_same])
    region_segment = np.empty(count, np.intp)
    region_segment[region] = segment
    is_recognized = region_segment >= 0
    planes = fit_planes(skin, region, count)
    candidates = concatenate([make_planes(planes.normal, planes.center), segments.surfaces])
    surfaces = candidates.take(np.where(is_recognized, count + region_segment, np.arange(count)))
    limit = np.where(is_recognized, np.append(segments.limit, 0.0)[region_segment], faceted.tolerance)
    _, normal = gradients(surfaces.take(region), skin.points[skin.faces].mean(axis=1))
    facing = sum_by_label(region, np.einsum("ij,ij->i", normal, skin.cross), count)
    return Regions(region, surfaces, np.maximum(limit, faceted.tolerance), facing > 0, region_segment)


def region_areas(skin: Skin, regions: Regions) -> Float64:
    """Return the (r,) area of the triangles of each region in mm²."""
    return sum_by_label(regions.region, lengths(skin.cross), len(regions.surfaces)) / 2
