"""Division of the triangles that close a hole or a cut, so that each place gets the color of the surface beside it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import Index, edges


class DividedPatches(NamedTuple):
    """Pieces of the triangles over corners of loops.

    triangles: (t, 3) corners; indices from the number of loop corners on are new corners
    middles:   (k, 2) corners whose middle each of the first new corners is
    centers:   (c, 3) corners whose center each of the others is
    """

    triangles: Index
    middles: Index
    centers: Index

    def place_corners(self, points: Float64) -> Float64:
        """Return the positions of all corners; `points` (n, 3) are those of the loops."""
        return np.concatenate([points, points[self.middles].mean(axis=1), points[self.centers].mean(axis=1)])

    def find_nearest(self, points: Float64) -> IntIndex:
        """Return the corner (t,) of the loops that is nearest to each piece; `points` (n, 3) are their positions."""
        from scipy.spatial import cKDTree  # few models need it, and the import would slow down every cut

        nearest: IntIndex = cKDTree(points).query(self.place_corners(points)[self.triangles].mean(axis=1))[1]
        return nearest


def divide_patches(triangles: Index, label: Index) -> DividedPatches:
    """Divide triangles between corners with different labels, so that pieces are near to few of them.

    Sides between two triangles are split at their midpoints. Sides on a loop are not split, because the surface beside
    them is not split either.

    Args:
        triangles: (t, 3) corners of loops.
        label: (n,) label of each corner.
    """
    count = len(label)
    mesh_edges = edges(triangles)
    half = mesh_edges.order[mesh_edges.start]
    begin, end = triangles.ravel()[half], triangles[:, [1, 2, 0]].ravel()[half]
    is_split = (mesh_edges.size == 2) & (label[begin] != label[end])
    middle = np.full(len(half), -1)
    middle[is_split] = count + np.arange(int(is_split.sum()))
    middle_of_half = np.empty(triangles.size, np.intp)
    middle_of_half[mesh_edges.order] = np.repeat(middle, mesh_edges.size)
    middles = middle_of_half.reshape(-1, 3)
    is_divided = (middles >= 0).any(axis=1)
    divided = triangles[is_divided]
    first, last, between = divided.ravel(), divided[:, [1, 2, 0]].ravel(), middles[is_divided].ravel()
    center = np.repeat(count + int(is_split.sum()) + np.arange(len(divided)), 3)
    is_halved = between >= 0
    pieces = [
        triangles[~is_divided],
        np.stack([first, np.where(is_halved, between, last), center], axis=1),
        np.stack([between, last, center], axis=1)[is_halved],
    ]
    return DividedPatches(np.concatenate(pieces), np.stack([begin, end], axis=1)[is_split], divided)
