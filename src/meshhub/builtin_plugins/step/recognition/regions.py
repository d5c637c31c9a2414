"""Facets and recognised surfaces together: one region for each face that will be written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.faceting import FacetedSkin
from meshhub.builtin_plugins.step.recognition.planar import planes_of
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.recognition.skin import Skin, lengths
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceArray, SurfaceKind, gradients, joined, planes
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Regions:
    """Faces to be: connected triangles of one surface.

    region:   (m,) the region of each triangle
    surfaces: (r,)
    limit:    (r,) how far its points may lie off its surface
    outward:  (r,) whether the surface's normal is the face's
    segment:  (r,) the recognised surface, -1 for a plane
    """

    region: NDArray[np.int32]
    surfaces: SurfaceArray
    limit: Float64
    outward: Mask
    segment: IntIndex

    @property
    def curved(self) -> Mask:
        """(r,) whether the surface is no plane."""
        made: Mask = self.surfaces.kind != SurfaceKind.PLANE
        return made


def make_planar_regions(faceted: FacetedSkin) -> Regions:
    """Every facet a region of its own."""
    count = faceted.faces
    return Regions(
        faceted.region,
        planes(faceted.planes.normal, faceted.planes.centre),
        np.full(count, faceted.tolerance),
        np.ones(count, np.bool_),
        np.full(count, -1, np.intp),
    )


def make_regions(skin: Skin, faceted: FacetedSkin, segments: Segments) -> Regions:
    """Facets of one recognised surface that hang together become one region."""
    segment = segments.segment[faceted.region]
    label = np.where(segment >= 0, faceted.faces + segment, faceted.region)
    half = np.flatnonzero((skin.twin >= 0) & (np.arange(len(skin.twin)) < skin.twin))
    one, other = half // 3, skin.twin[half] // 3
    same = (label[one] == label[other]) & (skin.paint[one] == skin.paint[other])
    count, region = components(len(label), one[same], other[same])
    own = np.empty(count, np.intp)
    own[region] = segment
    known = planes_of(skin, region, count)
    flat_ones = planes(known.normal, known.centre)
    both = joined([flat_ones, segments.surfaces])
    surfaces = both.take(np.where(own >= 0, count + own, np.arange(count)))
    limit = np.where(own >= 0, np.append(segments.limit, 0.0)[own], faceted.tolerance)
    middle = skin.points[skin.faces].mean(axis=1)
    _, normal = gradients(surfaces.take(region), middle)
    facing = np.bincount(region, np.einsum("ij,ij->i", normal, skin.cross), count)
    return Regions(region, surfaces, np.maximum(limit, faceted.tolerance), facing > 0, own)


def region_areas(skin: Skin, regions: Regions) -> Float64:
    """(r,) the area of each region's triangles."""
    return np.bincount(regions.region, lengths(skin.cross), len(regions.surfaces)) / 2
