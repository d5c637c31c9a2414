"""Cuts of charts by planes: their borders are smooth, whatever the triangles are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

_MIN_SHARE = 0.05
"""Part of an edge that a cut leaves at least; a cut nearer to a corner passes through the corner."""

_MAX_PASSES = 8
"""Passes of a cut; an edge on the border of two charts is split by one of their planes in each."""


@dataclass(frozen=True, eq=False)
class ChartMesh:
    """Triangles with charts.

    points: (p, 3) millimeters
    faces:  (m, 3) points of the triangles
    twin:   (3m,) the half-edge in the opposite direction, -1 on the border
    origin: (m,) triangle of the first mesh that each triangle is a part of
    parent: (m,) the same of the mesh before the last cut
    chart:  (m,) chart of each triangle, -1 for none
    """

    points: Float64
    faces: IntIndex
    twin: IntIndex
    origin: IntIndex
    parent: IntIndex
    chart: IntIndex

    def cut(self, charts: IntIndex, origin: Float64, normal: Float64) -> ChartMesh:
        """Return the mesh with some charts (c,) cut by a plane each, through points (c, 3), into connected parts.

        The parts have new numbers.
        """
        mesh, count = replace(self, parent=np.arange(len(self.faces))), int(self.chart.max()) + 1
        plane = np.full(count + 1, -1)
        plane[charts] = np.arange(len(charts))
        for _ in range(_MAX_PASSES):
            distance = mesh._measure(plane, origin, normal)
            split = mesh._find_crossings(distance)
            if not len(split[0]):
                break
            mesh = mesh._split(*split)
        middle = mesh._measure(plane, origin, normal).mean(axis=1)
        side = np.where(plane[mesh.chart] >= 0, 1 + (middle > 0), 0)
        return mesh.separate(3 * mesh.chart + side)

    def separate(self, group: IntIndex) -> ChartMesh:
        """Return the mesh with a chart for each connected part of a group (m,) of triangles; -1 is no group."""
        half = np.flatnonzero(self.twin >= 0)
        left, right = half // 3, self.twin[half] // 3
        joins = group[left] == group[right]
        label = components(len(self.faces), left[joins], right[joins])[1].astype(np.intp)
        chart = np.full(len(self.faces), -1, np.intp)
        chart[group >= 0] = np.unique(label[group >= 0], return_inverse=True)[1].reshape(-1)
        return replace(self, chart=chart)

    def _measure(self, plane: IntIndex, origin: Float64, normal: Float64) -> Float64:
        """Return (m, 3) signed distances of the corners from the planes of their charts, zero near enough."""
        number = plane[self.chart]
        rows = np.flatnonzero(number >= 0)
        distance = np.zeros((len(self.faces), 3))
        offset = self.points[self.faces[rows]] - origin[number[rows], None]
        distance[rows] = np.einsum("ijk,ik->ij", offset, normal[number[rows]])
        ahead = np.roll(distance, -1, axis=1)
        face, corner = np.nonzero(distance * ahead < 0)
        share = distance[face, corner] / (distance[face, corner] - ahead[face, corner])
        near = np.concatenate(
            [
                3 * face[share < _MIN_SHARE] + corner[share < _MIN_SHARE],
                3 * face[share > 1 - _MIN_SHARE] + (corner[share > 1 - _MIN_SHARE] + 1) % 3,
            ]
        )
        key = number.repeat(3) * len(self.points) + self.faces.ravel()
        distance.ravel()[np.isin(key, key[near])] = 0.0
        return distance

    def _find_crossings(self, distance: Float64) -> tuple[IntIndex, Float64]:
        """Return half-edges that cross the planes, one for each edge, and the points (e, 3) where they do."""
        ahead = np.roll(distance, -1, axis=1)
        half = np.flatnonzero((distance * ahead < 0).ravel())
        edge = np.where(self.twin[half] >= 0, np.minimum(half, self.twin[half]), half)
        half = half[np.unique(edge, return_index=True)[1]]
        begin, end = self.faces.ravel()[half], np.roll(self.faces, -1, axis=1).ravel()[half]
        # the same point for both sides
        share = distance.ravel()[half] / (distance.ravel()[half] - ahead.ravel()[half])
        return half, self.points[begin] + share[:, None] * (self.points[end] - self.points[begin])

    def _split(self, half: IntIndex, position: Float64) -> ChartMesh:
        """Return the mesh with half-edges and their twins split at points."""
        middle = np.full(len(self.twin), -1)
        middle[half] = len(self.points) + np.arange(len(half))
        twin = self.twin[half]
        middle[twin[twin >= 0]] = middle[half[twin >= 0]]
        middles = middle.reshape(-1, 3)
        is_split = middles >= 0
        count = is_split.sum(axis=1)
        # turn the triangles so that the split edges come first
        turn = np.where(count == 1, is_split.argmax(axis=1), np.where(count == 2, (is_split.argmin(axis=1) + 1) % 3, 0))
        corner = (turn[:, None] + np.arange(3)) % 3
        a, b, c = np.take_along_axis(self.faces, corner, axis=1).T
        m, n, k = np.take_along_axis(middles, corner, axis=1).T
        old = 3 * np.arange(len(self.faces))[:, None] + corner
        sizes = count + 1
        start = np.cumsum(sizes) - sizes
        faces = np.empty((int(sizes.sum()), 3), np.intp)
        first, last = np.empty(len(self.twin), np.intp), np.empty(len(self.twin), np.intp)
        new_twin = np.full(3 * len(faces), -1, np.intp)
        for number, pattern in enumerate(_PATTERNS):
            rows = np.flatnonzero(count == number)
            names = {"a": a[rows], "b": b[rows], "c": c[rows], "m": m[rows], "n": n[rows], "k": k[rows]}
            for place, triangle in enumerate(pattern.triangles):
                faces[start[rows] + place] = np.stack([names[name] for name in triangle], axis=1)
            for edge, (one, other) in enumerate(pattern.edges):
                first[old[rows, edge]] = 3 * start[rows] + one
                last[old[rows, edge]] = 3 * start[rows] + other
            for one, other in pattern.inner:
                new_twin[3 * start[rows] + one] = 3 * start[rows] + other
                new_twin[3 * start[rows] + other] = 3 * start[rows] + one
        paired = np.flatnonzero(self.twin >= 0)
        new_twin[first[paired]] = last[self.twin[paired]]
        new_twin[last[paired]] = first[self.twin[paired]]
        return ChartMesh(
            np.concatenate([self.points, position]), faces, new_twin,
            np.repeat(self.origin, sizes), np.repeat(self.parent, sizes), np.repeat(self.chart, sizes),
        )  # fmt: skip


@dataclass(frozen=True)
class _Pattern:
    """Triangles of a split one with corners a, b, c, and middles m of ab, n of bc, k of ca.

    edges: half-edges, 3 × triangle + corner, at the begin and at the end of ab, bc and ca
    inner: pairs of half-edges between the triangles
    """

    triangles: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    inner: tuple[tuple[int, int], ...]


_PATTERNS = (
    _Pattern(("abc",), ((0, 0), (1, 1), (2, 2)), ()),
    _Pattern(("amc", "mbc"), ((0, 3), (4, 4), (2, 2)), ((1, 5),)),
    _Pattern(("mbn", "amn", "anc"), ((3, 0), (1, 7), (8, 8)), ((2, 4), (5, 6))),
    _Pattern(("amk", "mbn", "knc", "mnk"), ((0, 3), (4, 7), (8, 2)), ((1, 11), (5, 9), (6, 10))),
)
"""Patterns by the number of split edges: none, ab, ab and bc, all."""
