"""Graph of the planar facets of a skin: which facets meet smoothly, and which points each facet has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin
from meshhub.builtin_plugins.step.facets.planar import SLIVER_RATIO
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs, expand_ranges, lengths, sum_by_label
from meshhub.builtin_plugins.step.surfaces.sample_blocks import Samples
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

MAX_SMOOTH_TURN_RAD = np.radians(30.5)
"""Radians; a ring of twelve facets turns by 30° at each edge and is round, one of eleven turns by 32.7° and is not."""

_MIN_STRONG_RATIO = 0.5
"""Share of the length of a facet's longest smooth edge from which its other edges also count as long."""

_MAX_FACET_CORNERS = 4
"""Corners of a facet of a tessellated surface; a facet with more is a flat face, or was cut."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FacetGraph:
    """Facets and their neighbors; millimeters, in the frame of the mesh.

    points:           (p, 3) points of the skin
    count:            number of facets
    left, right:      (e,) pairs of facets that meet smoothly, in both orders
    strong:           (e,) whether a pair shares a long edge of `left`; strips of facets continue across long edges
    beside, triangle: (n,) pairs of a facet and a triangular facet that meet, smoothly or not
    begin:            (f + 1,) position in `point` where each facet begins
    point:            (k,) points of the facets, distinct within a facet
    normal:           (f, 3) unit normals
    center:           (f, 3) centers of the planes
    probe:            (f, 3) a point on each facet; the center of a ring or an arc lies beside it
    area:             (f,) mm²
    extent:           (f,) millimeters, diagonal of the bounding box
    is_sliver:        (f,) whether a facet is so thin that its normal is noise
    is_triangle:      (f,) whether a facet has three corners
    is_broad:         (f,) whether a facet has more corners than the facets of a tessellated surface
    """

    points: Float64
    count: int
    left: IntIndex
    right: IntIndex
    strong: Mask
    beside: IntIndex
    triangle: IntIndex
    begin: IntIndex
    point: IntIndex
    normal: Float64
    center: Float64
    probe: Float64
    area: Float64
    extent: Float64
    is_sliver: Mask
    is_triangle: Mask
    is_broad: Mask

    def collect_samples(self, group: IntIndex, facet: IntIndex, count: int) -> Samples:
        """Collect the points, centers and normals of groups of facets.

        Args:
            group: (n,) group of each facet, 0…count-1, ascending.
            facet: (n,) facets.
            count: Number of groups.
        """
        owner, point = self.expand(facet)
        point_group, point = distinct_pairs(group[owner], point, len(self.points))
        return Samples(
            count, point_group, self.points[point], group,
            self.center[facet], self.normal[facet], self.area[facet],
        )  # fmt: skip

    def expand(self, facet: IntIndex) -> tuple[IntIndex, IntIndex]:
        """List the points of facets (n,): for each point, the position of its facet in `facet`, and the point."""
        owner, place = expand_ranges(self.begin[facet], self.begin[facet + 1] - self.begin[facet])
        return owner, self.point[place]


def build_facet_graph(skin: Skin, faceted: FacetedSkin) -> FacetGraph:
    """Build the graph of the planar facets of a skin; facets of different colors are not neighbors."""
    region, count, planes = faceted.region, faceted.faces, faceted.planes
    owner, point = distinct_pairs(np.repeat(region, 3), skin.faces.ravel(), len(skin.points))
    left, right, shared = _shared_lengths(skin, faceted)
    corners = np.bincount(faceted.outline.region, minlength=count)
    is_triangle = corners == 3
    beside, triangle = left[is_triangle[right]], right[is_triangle[right]]
    is_sliver = planes.height < SLIVER_RATIO * faceted.tolerance
    is_smooth = np.einsum("ij,ij->i", planes.normal[left], planes.normal[right]) >= np.cos(MAX_SMOOTH_TURN_RAD)
    is_smooth |= is_sliver[left] | is_sliver[right]
    left, right, shared = left[is_smooth], right[is_smooth], shared[is_smooth]
    longest = np.zeros(count)
    np.maximum.at(longest, left, shared)
    is_broad = corners > _MAX_FACET_CORNERS
    area = lengths(skin.cross)
    largest = np.empty(count, np.intp)
    rising = np.argsort(area, kind="stable")
    largest[region[rising]] = rising
    return FacetGraph(
        points=skin.points,
        count=count,
        left=left,
        right=right,
        strong=shared >= _MIN_STRONG_RATIO * longest[left],
        beside=beside,
        triangle=triangle,
        begin=np.searchsorted(owner, np.arange(count + 1)),
        point=point,
        normal=planes.normal,
        center=planes.center,
        probe=np.where(
            (is_broad & ~_has_center(skin, faceted))[:, None],
            skin.points[skin.faces[largest]].mean(axis=1),
            planes.center,
        ),
        area=sum_by_label(region, area, count) / 2,
        extent=_extents(skin.points[point], np.searchsorted(owner, np.arange(count))),
        is_sliver=is_sliver,
        is_triangle=is_triangle,
        is_broad=is_broad,
    )


def _has_center(skin: Skin, faceted: FacetedSkin) -> Mask:
    """Return whether the center of each facet (f,) is in one of its triangles."""
    corner = skin.points[skin.faces]
    center = faceted.planes.center[faceted.region][:, None]
    sides = np.cross(np.roll(corner, -1, axis=1) - corner, center - corner)
    is_in = (np.einsum("ijk,ik->ij", sides, skin.cross) >= 0).all(axis=1)
    return np.bincount(faceted.region, is_in, faceted.faces) > 0


def _extents(points: Float64, begin: IntIndex) -> Float64:
    """Return the diagonal (f,) of each facet's bounding box; the points (k, 3) of each facet start at `begin`."""
    extents: Float64 = lengths(np.maximum.reduceat(points, begin) - np.minimum.reduceat(points, begin))
    return extents


def _shared_lengths(skin: Skin, faceted: FacetedSkin) -> tuple[IntIndex, IntIndex, Float64]:
    """Return pairs of neighboring facets of one color, in both orders, and the length of their common boundary."""
    region, count = faceted.region, faceted.faces
    half = np.flatnonzero(skin.twin >= 0)
    a, b = region[half // 3], region[skin.twin[half] // 3]
    meets = (a != b) & (skin.paint[half // 3] == skin.paint[skin.twin[half] // 3])
    key, pair = np.unique(a[meets].astype(np.int64) * count + b[meets], return_inverse=True)
    edge = skin.points[skin.end[half[meets]]] - skin.points[skin.begin[half[meets]]]
    return key // count, key % count, sum_by_label(pair.reshape(-1), lengths(edge), len(key))
