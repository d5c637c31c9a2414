"""Split triangles along the paint of slicers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.paint_trees import PATTERNS, PaintTrees
from meshhub.model.scene import Float64, Int32


def split_triangles(
    vertices: Float64, triangles: NDArray[np.integer], roots: NDArray[np.int64], trees: PaintTrees
) -> tuple[Float64, NDArray[np.int64], NDArray[np.int64], Int32]:
    """Split triangles along their paint. A closed mesh stays closed, because both sides of an edge are split alike.

    Args:
        vertices: (n, 3).
        triangles: (m, 3) vertex indices.
        roots: (m,) root of the paint of each triangle, -1 for an unpainted one.
    Returns:
        Vertices, the given ones first; triangles (k, 3); for each triangle, the index (k,) of the triangle that it is a
        part of, and its filament (k,), 0 for unpainted.
    """
    midpoints = _Midpoints(vertices)
    whole = np.flatnonzero(roots < 0)
    leaves = [(triangles[whole].astype(np.int64), whole, np.zeros(len(whole), np.int64))]
    source = np.flatnonzero(roots >= 0)
    corners, node = triangles[source].astype(np.int64), roots[source]
    while len(node):
        is_leaf = trees.sides[node] == 0
        leaves.append((corners[is_leaf], source[is_leaf], trees.filament[node[is_leaf]]))
        corners, source, node = corners[~is_leaf], source[~is_leaf], node[~is_leaf]
        sides = trees.sides[node]
        corners, parent, number = _split(_rotate(corners, trees.start[node]), sides, midpoints, is_new_allowed=True)
        source, node = source[parent], trees.child[node[parent]] + number
    corners, source, filament = (np.concatenate(columns) for columns in zip(*leaves, strict=True))
    corners, source, filament = _close_edges(corners, source, filament, midpoints)
    return midpoints.vertices(), corners, source, filament.astype(np.int32)


def _close_edges(
    corners: NDArray[np.int64], source: NDArray[np.int64], filament: NDArray[np.int64], midpoints: _Midpoints
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split the triangles whose neighbors were split at a common edge, until no vertex lies inside an edge."""
    finished = []
    while True:
        has_midpoint = midpoints.find(corners, corners[:, [1, 2, 0]]) >= 0
        sides = has_midpoint.sum(axis=1)
        is_whole = sides == 0
        finished.append((corners[is_whole], source[is_whole], filament[is_whole]))
        if is_whole.all():
            corners, source, filament = (np.concatenate(columns) for columns in zip(*finished, strict=True))
            order = np.argsort(source, kind="stable")
            return corners[order], source[order], filament[order]
        corners, source, filament = corners[~is_whole], source[~is_whole], filament[~is_whole]
        has_midpoint, sides = has_midpoint[~is_whole], sides[~is_whole]
        # one side: its edge must come second; two sides: the other edge must come second
        edge = np.where(sides == 1, has_midpoint.argmax(axis=1), has_midpoint.argmin(axis=1))
        start = np.where(sides == 3, 0, (edge + 2) % 3)
        corners, parent, _ = _split(_rotate(corners, start), sides, midpoints, is_new_allowed=False)
        source, filament = source[parent], filament[parent]


def _rotate(corners: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rotate the corners (k, 3) of triangles, so that each begins with its corner `start` (k,)."""
    return np.take_along_axis(corners, (np.arange(3) + start[:, None]) % 3, axis=1)


def _split(
    corners: NDArray[np.int64], sides: NDArray[np.int64], midpoints: _Midpoints, *, is_new_allowed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split triangles (k, 3) at one to three sides: the second; all but the second; all.

    Returns:
        Children (c, 3), and for each of them the index (c,) of its parent and its number (c,) among the siblings.
    """
    get = midpoints.create if is_new_allowed else midpoints.find
    children, parents, numbers = [], [], []
    for count, edges, members in PATTERNS:
        rows = np.flatnonzero(sides == count)
        points = [*corners[rows].T, *(get(corners[rows, a], corners[rows, b]) for a, b in edges)]
        for number, (a, b, c) in enumerate(members):
            children.append(np.stack([points[a], points[b], points[c]], axis=1))
            parents.append(rows)
            numbers.append(np.full(len(rows), number))
    return np.concatenate(children), np.concatenate(parents), np.concatenate(numbers)


class _Midpoints:
    """Vertices at the midpoints of edges, one for both triangles of an edge."""

    def __init__(self, vertices: Float64) -> None:
        self._originals = vertices
        self._edges: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._count = len(vertices)
        self._keys = np.empty(0, np.int64)
        self._indices = np.empty(0, np.int64)

    def find(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the vertex between the vertices `a` and `b`, arrays of one shape; -1 if there is none."""
        if not len(self._keys):
            return np.full(a.shape, -1)
        keys = _edge_keys(a, b)
        rows = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[rows] == keys, self._indices[rows], -1)

    def create(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the vertex between the vertices `a` and `b` (k,); create missing ones."""
        missing = np.flatnonzero(self.find(a, b) < 0)
        keys, first = np.unique(_edge_keys(a[missing], b[missing]), return_index=True)
        if len(keys):
            self._edges.append((a[missing[first]], b[missing[first]]))
            self._keys = np.concatenate([self._keys, keys])
            self._indices = np.concatenate([self._indices, self._count + np.arange(len(keys))])
            order = np.argsort(self._keys, kind="stable")
            self._keys, self._indices = self._keys[order], self._indices[order]
            self._count += len(keys)
        return self.find(a, b)

    def vertices(self) -> Float64:
        """Return the original vertices and the midpoints (n, 3)."""
        vertices = np.empty((self._count, 3))
        end = len(self._originals)
        vertices[:end] = self._originals
        for a, b in self._edges:
            vertices[end : end + len(a)] = (vertices[a] + vertices[b]) / 2
            end += len(a)
        return vertices


def _edge_keys(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.minimum(a, b) << 32 | np.maximum(a, b)
