"""The planar regions of a skin as a graph: which meet smoothly, and which points each one has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.faceting import FacetedSkin
from meshhub.builtin_plugins.step.recognition.sample_blocks import Samples
from meshhub.builtin_plugins.step.recognition.skin import Skin, distinct_pairs, lengths, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

TURN = np.radians(30.5)
"""Facets that turn by more are meant: a hexagon and an octagon stay, twelve sides and more are round."""

_SLIVER = 20.0
_LONG = 0.5


@dataclass(frozen=True, eq=False)
class FacetGraph:
    """Facets and their neighbours.

    count:       how many facets
    left, right: (e,) pairs of facets that meet smoothly, both ways
    strong:      (e,) whether a pair shares one of the long edges of `left`: what a strip of facets goes on by
    beside, rim: (r,) pairs of a facet and a triangle, whether they meet smoothly or not
    begin:       (count + 1,) where each facet begins in `point`
    point:       (n,) indices of the skin's points, distinct within a facet
    normal, centre, area: of each facet
    probe:       a point on each facet; the centre of one with a hole may lie in the hole
    sliver:      whether a facet is so thin that its normal is noise
    small:       whether a facet is a triangle
    broad:       whether a facet has more corners than the facets of a curved surface have
    """

    points: Float64
    count: int
    left: IntIndex
    right: IntIndex
    strong: NDArray[np.bool_]
    beside: IntIndex
    rim: IntIndex
    begin: IntIndex
    point: IntIndex
    normal: Float64
    centre: Float64
    probe: Float64
    area: Float64
    sliver: NDArray[np.bool_]
    small: NDArray[np.bool_]
    broad: NDArray[np.bool_]

    def samples(self, group: IntIndex, facet: IntIndex, count: int) -> Samples:
        """What the facets of each group say about a surface; (n,) pairs of group and facet."""
        owner, point = self.expand(facet)
        among, point = distinct_pairs(group[owner], point, len(self.points))
        return Samples(
            count, among, self.points[point], group,
            self.centre[facet], self.normal[facet], self.area[facet],
        )  # fmt: skip

    def expand(self, facet: IntIndex) -> tuple[IntIndex, IntIndex]:
        """All points of some facets: which of the facets (as a place in the argument), and which point."""
        size = self.begin[facet + 1] - self.begin[facet]
        owner = np.repeat(np.arange(len(facet)), size)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
        return owner, self.point[self.begin[facet][owner] + place]


def build_facet_graph(skin: Skin, faceted: FacetedSkin) -> FacetGraph:
    """The graph of the planar regions of a skin."""
    region, count, planes = faceted.region, faceted.faces, faceted.planes
    owner, point = distinct_pairs(np.repeat(region, 3), skin.faces.ravel(), len(skin.points))
    begin = np.searchsorted(owner, np.arange(count + 1))
    half = np.flatnonzero(skin.twin >= 0)
    a, b = region[half // 3], region[skin.twin[half] // 3]
    meet = (a != b) & (skin.paint[half // 3] == skin.paint[skin.twin[half] // 3])
    key, place = np.unique(a[meet].astype(np.int64) * count + b[meet], return_inverse=True)
    edge = skin.points[skin.end[half[meet]]] - skin.points[skin.begin[half[meet]]]
    shared = sum_by_label(place.reshape(-1), lengths(edge), len(key))
    left, right = key // count, key % count
    corners = np.bincount(faceted.outline.region, minlength=count)
    small = corners == 3
    beside, rim = left[small[right]], right[small[right]]
    sliver = planes.height < _SLIVER * faceted.tolerance
    smooth = np.einsum("ij,ij->i", planes.normal[left], planes.normal[right]) >= np.cos(TURN)
    smooth |= sliver[left] | sliver[right]
    left, right, shared = left[smooth], right[smooth], shared[smooth]
    longest = np.zeros(count)
    np.maximum.at(longest, left, shared)
    broad = corners > 4
    pierced = np.bincount(faceted.outline.loop_region, minlength=count) > 1
    area = lengths(skin.cross)
    largest = np.empty(count, np.intp)
    rising = np.argsort(area, kind="stable")
    largest[region[rising]] = rising
    return FacetGraph(
        points=skin.points,
        count=count,
        left=left,
        right=right,
        strong=shared >= _LONG * longest[left],
        beside=beside,
        rim=rim,
        begin=begin,
        point=point,
        normal=planes.normal,
        centre=planes.centre,
        probe=np.where(pierced[:, None], skin.points[skin.faces[largest]].mean(axis=1), planes.centre),
        area=np.bincount(region, area, count) / 2,
        sliver=sliver,
        small=small,
        broad=broad,
    )
