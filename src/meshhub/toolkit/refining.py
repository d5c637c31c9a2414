"""Division of triangles by halving edges, without gaps between neighbors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import Edges, half_edges


class Division(NamedTuple):
    """Triangles that were divided.

    vertices: (n, 3) positions; those of before come first
    faces:    (m, 3) vertex indices, in the order of the faces of before
    origin:   (m,) face of before in which each face lies
    """

    vertices: Float64
    faces: Int32
    origin: IntIndex


def edge_lengths(vertices: Float64, mesh_edges: Edges, faces: Int32) -> Float64:
    """Return the (e,) lengths of edges."""
    begin, end = half_edges(faces)
    first = mesh_edges.order[mesh_edges.start]
    lengths: Float64 = np.linalg.norm(vertices[end[first]] - vertices[begin[first]], axis=1)
    return lengths


def halve_edges(vertices: Float64, faces: Int32, mesh_edges: Edges, chosen: IntIndex) -> Division:
    """Halve edges, and divide the triangles on both sides of them into two to four.

    Args:
        vertices: (n, 3) positions.
        faces: (m, 3) vertex indices.
        mesh_edges: Edges of the faces.
        chosen: (k,) edges to halve.
    """
    begin, end = half_edges(faces)
    first = mesh_edges.order[mesh_edges.start[chosen]]
    middles = (vertices[begin[first]] + vertices[end[first]]) / 2
    middle_of_edge = np.full(len(mesh_edges.size), -1)
    middle_of_edge[chosen] = len(vertices) + np.arange(len(chosen))
    middle = np.empty(faces.shape, np.intp)
    middle.reshape(-1)[mesh_edges.order] = np.repeat(middle_of_edge, mesh_edges.size)
    is_halved = middle >= 0
    vertices = np.concatenate([vertices, middles])
    count = is_halved.sum(axis=1)
    # triangles are turned so that their whole edges come last
    turn = np.select([count == 1, count == 2], [is_halved.argmax(axis=1), is_halved.argmin(axis=1) + 1], 0)
    order = (turn[:, None] + np.arange(3)) % 3
    a, b, c = np.take_along_axis(faces, order, axis=1).T
    p, q, r = np.take_along_axis(middle, order, axis=1).T
    # where two edges are halved, the four corners that are left get their shorter diagonal
    is_turned = np.linalg.norm(vertices[a] - vertices[q], axis=1) < np.linalg.norm(vertices[p] - vertices[c], axis=1)
    patterns = [
        (count == 0, [(a, b, c)]),
        (count == 1, [(a, p, c), (p, b, c)]),
        ((count == 2) & is_turned, [(p, b, q), (a, p, q), (a, q, c)]),
        ((count == 2) & ~is_turned, [(p, b, q), (a, p, c), (p, q, c)]),
        (count == 3, [(a, p, r), (p, b, q), (r, q, c), (p, q, r)]),
    ]
    origins, pieces = [], []
    for mask, children in patterns:
        rows = np.flatnonzero(mask)
        for child in children:
            origins.append(rows)
            pieces.append(np.stack([corner[rows] for corner in child], axis=1))
    origin = np.concatenate(origins)
    by_origin = np.argsort(origin, kind="stable")
    return Division(vertices, np.concatenate(pieces)[by_origin].astype(np.int32), origin[by_origin])
