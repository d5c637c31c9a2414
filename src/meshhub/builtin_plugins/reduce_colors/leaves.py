"""Leaves: pieces of the triangles of a surface, split at common points, so that neighbors always fit together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float32, Float64, Int32, UInt8
from meshhub.toolkit.geometry import IntIndex, face_normals
from meshhub.toolkit.topology import Edges


@dataclass(frozen=True, eq=False)
class Leaves:
    """Pieces of triangles.

    points:  (p, 3) welded positions, in the frame of the mesh
    corners: (m, 3) points of each leaf
    face:    (m,) triangle that contains the leaf
    weights: (m, 3, 3) barycentric coordinates of the corners in this triangle
    label:   (m,) entry of the palette
    error: (m,) share of the leaf whose color belongs to another entry
    """

    points: Float64
    corners: Int32
    face: Int32
    weights: Float32
    label: UInt8
    error: Float32

    def sides(self, rows: IntIndex | slice = slice(None)) -> Float64:
        """Return the length (m, 3) of the sides of some leaves; side i leads from corner i to the next one."""
        corners = self.points[self.corners[rows]]
        result: Float64 = np.linalg.norm(corners[:, [1, 2, 0]] - corners, axis=2)
        return result

    def areas(self, rows: IntIndex | slice = slice(None)) -> Float64:
        """Return the areas (m,) of some leaves."""
        normals = face_normals(self.points, self.corners[rows])
        result: Float64 = np.sqrt(np.einsum("kd,kd->k", normals, normals)) / 2
        return result


def split_leaves(leaves: Leaves, edges: Edges, edge: IntIndex, position: Float64) -> tuple[Leaves, IntIndex]:
    """Split edges, and all leaves beside them; each leaf becomes two, three or four.

    Args:
        edge: (k,) edges to split, without duplicates.
        position: (k,) position of the split, from 0 at the lower point to 1 at the higher point.
    Returns:
        The leaves, those without a split edge first, and the number of these leaves.
    """
    half = edges.order[edges.start[edge]]
    begin, end = leaves.corners.ravel()[half], leaves.corners[:, [1, 2, 0]].ravel()[half]
    low, high = np.minimum(begin, end), np.maximum(begin, end)
    new = leaves.points[low] + position[:, None] * (leaves.points[high] - leaves.points[low])
    points = np.concatenate([leaves.points, new])
    rank = np.full(len(edges.start), -1, np.int32)
    rank[edge] = np.arange(len(edge), dtype=np.int32)
    of_half = np.empty(len(edges.order), np.int32)
    of_half[edges.order] = np.repeat(rank, edges.size)
    cut = of_half.reshape(-1, 3)
    pattern = (cut >= 0) @ np.array([1, 2, 4])
    pieces = [_select(leaves, np.flatnonzero(pattern == 0))]
    for number in range(1, 8):
        rows = np.flatnonzero(pattern == number)
        if len(rows):
            pieces += _split_pattern(leaves, rows, cut[rows], position, points)
    whole = len(pieces[0].face)
    return (
        Leaves(
            points,
            *(
                np.concatenate([getattr(piece, name) for piece in pieces])
                for name in ("corners", "face", "weights", "label", "error")
            ),
        ),
        np.arange(whole, sum(len(piece.face) for piece in pieces)),
    )


def _select(leaves: Leaves, rows: IntIndex) -> Leaves:
    return replace(
        leaves,
        corners=leaves.corners[rows],
        face=leaves.face[rows],
        weights=leaves.weights[rows],
        label=leaves.label[rows],
        error=leaves.error[rows],
    )


def _split_pattern(leaves: Leaves, rows: IntIndex, cut: Int32, position: Float64, points: Float64) -> list[Leaves]:
    """Split leaves with the same split sides; the new points follow the points of the leaves.

    Args:
        rows: (r,) leaves to split.
        cut: (r, 3) rank of the split edge at each side, or -1.
        position: (k,) position on each split edge.
        points: All points, with the new ones.
    """
    is_cut = cut[0] >= 0
    # rotate the corners, so that a single split side comes first, and a single unsplit side comes last
    count = int(is_cut.sum())
    first = int(is_cut.argmax()) if count == 1 else (int(is_cut.argmin()) + 1) % 3 if count == 2 else 0
    turn = [first, (first + 1) % 3, (first + 2) % 3]
    cut, corner, weight = cut[:, turn], leaves.corners[rows][:, turn], leaves.weights[rows][:, turn]
    node, node_weight = [corner[:, i] for i in range(3)], [weight[:, i] for i in range(3)]
    for side in range(count):
        a, b = corner[:, side], corner[:, (side + 1) % 3]
        share = position[cut[:, side]].astype(np.float32)
        share = np.where(a < b, share, 1 - share)[:, None]
        node.append((len(leaves.points) + cut[:, side]).astype(np.int32))
        node_weight.append(weight[:, side] * (1 - share) + weight[:, (side + 1) % 3] * share)
    triangles: list[tuple[tuple[int, int, int], NDArray[np.bool_] | None]]
    if count == 1:
        triangles = [((0, 3, 2), None), ((3, 1, 2), None)]
    elif count == 2:
        # the quadrilateral 0, 3, 4, 2 is split along its shorter diagonal
        is_near = _distances(points, node[0], node[4]) < _distances(points, node[3], node[2])
        triangles = [((3, 1, 4), None)]
        triangles += [((0, 3, 4), is_near), ((0, 4, 2), is_near), ((0, 3, 2), ~is_near), ((3, 4, 2), ~is_near)]
    else:
        triangles = [((0, 3, 5), None), ((3, 1, 4), None), ((5, 4, 2), None), ((3, 4, 5), None)]
    pieces = []
    for triangle, mask in triangles:
        keep = slice(None) if mask is None else mask
        pieces.append(
            Leaves(
                leaves.points,
                np.stack([node[i][keep] for i in triangle], axis=1),
                leaves.face[rows][keep],
                np.stack([node_weight[i][keep] for i in triangle], axis=1),
                leaves.label[rows][keep],
                leaves.error[rows][keep],
            )
        )
    return pieces


def _distances(points: Float64, a: Int32, b: Int32) -> Float64:
    result: Float64 = np.square(points[a] - points[b]).sum(axis=1)
    return result
