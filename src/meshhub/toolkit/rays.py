"""Rays through a surface: what they hit first, and what is inside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64
from meshhub.toolkit.crossings import build_tree, morton_codes
from meshhub.toolkit.geometry import IntIndex, corner_extremes, unit_vectors

BATCH_COUNT = 20_000
"""Rays that are followed together; bounds the memory."""

EDGE_RATIO = 1e-9
"""Distance from a face per side up to which a ray hits it, so that none slips through between two faces."""

MIN_DIRECTION = 1e-12
"""Component of a direction that replaces zero in divisions."""


class Hits(NamedTuple):
    """Places where rays cross faces, in no order.

    ray:      (k,) number of the ray
    distance: (k,) from the start of the ray
    slope:    (k,) cosine of the ray and the outward normal; positive where the ray leaves
    """

    ray: IntIndex
    distance: Float64
    slope: Float64


class RayTree:
    """Faces in a tree of boxes."""

    def __init__(self, corners: Float64) -> None:
        """Sort faces into boxes.

        Args:
            corners: (m, 3, 3) corners of the faces, at least one, counter-clockwise seen from outside.
        """
        self._corners = corners[np.argsort(morton_codes(corners.mean(axis=1)), kind="stable")]
        self._levels = build_tree(*corner_extremes(self._corners))

    def measure(self, starts: Float64, directions: Float64, reach: Float64, *, enters: bool = False) -> Float64:
        """Return the distances (q,) at which rays first leave a body; infinite beyond their reach.

        Args:
            starts: (q, 3) points.
            directions: (q, 3) unit vectors.
            reach: (q,) lengths of the rays.
            enters: Whether to return where rays enter a body instead.
        """
        result = np.full(len(starts), np.inf)
        for begin in range(0, len(starts), BATCH_COUNT):
            rows = slice(begin, begin + BATCH_COUNT)
            hits = self._follow(starts[rows], directions[rows], reach[rows])
            chosen = hits.slope < 0 if enters else hits.slope > 0
            np.minimum.at(result[rows], hits.ray[chosen], hits.distance[chosen])
        return result

    def count_windings(self, points: Float64) -> IntIndex:
        """Return how many bodies are around points (q, 3); negative in bodies that are inside out."""
        result = np.zeros(len(points), np.intp)
        up = np.array([0.0, 0.0, 1.0])
        for begin in range(0, len(points), BATCH_COUNT):
            own = points[begin : begin + BATCH_COUNT]
            hits = self._follow(own, np.tile(up, (len(own), 1)), np.full(len(own), np.inf))
            winding = np.bincount(hits.ray, np.sign(hits.slope), minlength=len(own))
            result[begin : begin + BATCH_COUNT] = np.rint(winding).astype(np.intp)
        return result

    def _follow(self, starts: Float64, directions: Float64, reach: Float64) -> Hits:
        inverse = 1 / np.where(np.abs(directions) < MIN_DIRECTION, MIN_DIRECTION, directions)
        ray, node = np.repeat(np.arange(len(starts)), 2), np.tile(np.arange(2), len(starts))
        for number, (low, high) in enumerate(self._levels):
            # nodes behind the last face are empty
            span = 1 << (len(self._levels) - 1 - number)
            is_used = node * span < len(self._corners)
            ray, node = ray[is_used], node[is_used]
            enters, leaves = np.zeros(len(ray)), reach[ray]
            for axis in range(3):
                start, factor = starts[ray, axis], inverse[ray, axis]
                first, second = (low[axis, node] - start) * factor, (high[axis, node] - start) * factor
                enters = np.maximum(enters, np.minimum(first, second))
                leaves = np.minimum(leaves, np.maximum(first, second))
            crosses = enters <= leaves
            ray, node = ray[crosses], node[crosses]
            if span > 1:
                ray, node = np.repeat(ray, 2), np.repeat(2 * node, 2) + np.tile(np.arange(2), len(node))
        return _cross(self._corners[node], ray, starts[ray], directions[ray], reach[ray])


def _cross(corners: Float64, ray: IntIndex, starts: Float64, directions: Float64, reach: Float64) -> Hits:
    """Return where rays cross the face in the same row.

    Source:
        Möller and Trumbore, "Fast, minimum storage ray-triangle intersection", Journal of Graphics Tools 2 (1), 1997.
    """
    u, v, offset = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0], starts - corners[:, 0]
    normals = np.cross(u, v)
    steep = np.einsum("ij,ij->i", normals, directions)
    turned = np.cross(offset, directions)
    with np.errstate(all="ignore"):
        a = np.einsum("ij,ij->i", v, turned) / -steep
        b = np.einsum("ij,ij->i", u, turned) / steep
        distance = -np.einsum("ij,ij->i", normals, offset) / steep
        met: NDArray[np.bool_] = (a >= -EDGE_RATIO) & (b >= -EDGE_RATIO) & (a + b <= 1 + EDGE_RATIO)
        met &= (distance >= 0) & (distance <= reach)
    slope = np.einsum("ij,ij->i", unit_vectors(normals[met]), directions[met])
    return Hits(ray[met], distance[met], slope)
