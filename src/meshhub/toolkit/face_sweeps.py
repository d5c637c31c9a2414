"""Volumes that faces sweep when they move along their normals: prisms of flat neighbors, and hulls around others."""

# why this way: docs/decisions/0052-moved-faces.md
from __future__ import annotations

import numpy as np
from manifold3d import Manifold, Mesh64, OpType

from meshhub.model.scene import Float64
from meshhub.toolkit.crossings import morton_codes
from meshhub.toolkit.face_moves import Mask, Moves, keep_still
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import Index, components, edges, half_edges, preceding, remove_degenerate_faces

FLAT_COSINE = 0.99
"""Cosine of the angle of two faces above which the sweeps of both leave no gap between them."""

UNION_COUNT = 8
"""Neighboring volumes that are united at once; operands stay small, or meet others in few places."""


def to_solid(points: Float64, faces: Index) -> Manifold:
    """Return the solid of points (n, 3) and faces (m, 3); its status says whether these are closed."""
    # manifold3d rejects read-only arrays and views
    return Manifold(Mesh64(np.array(points, np.float64, order="C"), np.array(faces, np.uint64, order="C")))


def _move(moves: Moves, still: Mask) -> Manifold:
    """Return the solid whose vertices have moved, except those that stay."""
    targets, cluster = keep_still(moves, still)
    used, corners = np.unique(cluster[moves.faces], return_inverse=True)
    return to_solid(targets[used], remove_degenerate_faces(corners.reshape(-1, 3)))


def list_sweeps(moves: Moves, still: Mask, distance: float) -> tuple[list[Float64], list[IntIndex]]:
    """Return what the faces of still vertices sweep: points of convex volumes, and faces of prisms."""
    swept = still[moves.faces].any(axis=1)
    is_loose = swept & (moves.is_turned | moves.is_wide[moves.faces].any(axis=1))
    return _list_hulls(moves, is_loose, distance), _group_prisms(moves, swept & ~is_loose)


def sweep(moves: Moves, still: Mask, hulls: list[Float64], prisms: list[IntIndex], distance: float) -> Manifold:
    """Return the solid whose vertices have moved, united with the swept volumes, or without them."""
    moved, volume = _move(moves, still), _unite(moves, hulls, prisms, distance)
    return moved + volume if distance > 0 else moved - volume


def _unite(moves: Moves, hulls: list[Float64], prisms: list[IntIndex], distance: float) -> Manifold:
    """Return the union of swept volumes, without the solid, because each operation with a large one takes long."""
    tools = [_make_prism(moves, rows, distance < 0) for rows in prisms]
    tools += [Manifold.hull_points(np.array(points, np.float64, order="C")) for points in hulls]
    tools = [tool for tool in tools if not tool.is_empty()]
    if not tools:
        return Manifold()
    boxes = np.array([tool.bounding_box() for tool in tools]).reshape(-1, 2, 3)
    tools = [tools[number] for number in np.argsort(morton_codes(boxes.mean(axis=1)))]
    while len(tools) > 1:
        tools = [
            Manifold.batch_boolean(tools[start : start + UNION_COUNT], OpType.Add)
            for start in range(0, len(tools), UNION_COUNT)
        ]
        # without an evaluation here, manifold3d would join all of them to one union
        tools = [tool for tool in tools if not tool.is_empty()]
    return tools[0]


def _group_prisms(moves: Moves, chosen: Mask) -> list[IntIndex]:
    """Group chosen faces that are connected and have the same main direction, so that their sweep is one prism."""
    rows = np.flatnonzero(chosen)
    if len(rows) == 0:
        return []
    normals = moves.normals[rows]
    axis = np.abs(normals).argmax(axis=1)
    direction = 2 * axis + (normals[np.arange(len(rows)), axis] > 0)
    one, other = (half // 3 for half in edges(moves.faces[rows]).pairs())
    same = direction[one] == direction[other]
    count, label = components(len(rows), one[same], other[same])
    order = np.argsort(label, kind="stable")
    return np.split(rows[order], np.cumsum(np.bincount(label, minlength=count))[:-1])


def _make_prism(moves: Moves, rows: IntIndex, is_inward: bool) -> Manifold:
    """Return the volume between faces and their moved copies."""
    used, corners = np.unique(moves.faces[rows], return_inverse=True)
    corners = corners.reshape(-1, 3)
    count = len(used)
    half = edges(corners).border()
    a, b = (ends[half] for ends in half_edges(corners))
    # both triangles of a wall meet at the diagonal from its lower vertex, as in the wall of the neighboring prism
    is_up = (a < b)[:, None]
    walls = [
        np.where(is_up, np.stack([a, b, b + count], axis=1), np.stack([a, b, a + count], axis=1)),
        np.where(is_up, np.stack([a, b + count, a + count], axis=1), np.stack([b, b + count, a + count], axis=1)),
    ]
    triangles = np.concatenate([corners + count, corners[:, ::-1], *walls])
    return to_solid(
        np.concatenate([moves.points[used], moves.targets[used]]), triangles[:, ::-1] if is_inward else triangles
    )


def _list_hulls(moves: Moves, chosen: Mask, distance: float) -> list[Float64]:
    """Return the points of the convex volumes that chosen faces, and edges at vertices without targets, sweep."""
    rows = np.flatnonzero(chosen)
    corners = moves.faces[rows]
    tips = moves.find_tips(corners.ravel(), np.repeat(moves.normals[rows], 3, axis=0), distance)
    groups = list(np.concatenate([moves.points[corners], tips.reshape(-1, 3, 3)], axis=1))
    return [*groups, *_list_edge_hulls(moves, distance)]


def _list_edge_hulls(moves: Moves, distance: float) -> Float64:
    """Return the points (k, 6, 3) that bent edges at vertices without targets sweep: ends, and tips of both faces."""
    half, other = edges(moves.faces).pairs()
    begin, end = (ends[half] for ends in half_edges(moves.faces))
    one, two = moves.normals[half // 3], moves.normals[other // 3]
    rise = np.einsum("ij,ij->i", one, moves.points[moves.faces.ravel()[preceding(other)]] - moves.points[begin])
    chosen = moves.is_wide[begin] | moves.is_wide[end]
    chosen &= (np.einsum("ij,ij->i", one, two) < FLAT_COSINE) & (rise * distance < 0)
    begin, end, one, two = begin[chosen], end[chosen], one[chosen], two[chosen]
    columns = [moves.points[begin], moves.points[end]]
    columns += [moves.find_tips(vertex, normals, distance) for vertex in (begin, end) for normals in (one, two)]
    return np.stack(columns, axis=1)
