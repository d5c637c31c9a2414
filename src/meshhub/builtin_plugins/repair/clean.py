"""Removal of degenerate and duplicate faces, and of cracks between border points that are nearly equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit import topology
from meshhub.toolkit.topology import Edges, Index

CRACK_WIDTH_RATIOS = (2e-6, 2e-5, 2e-4)
"""Distances of border points per diagonal of the part, tried in this order: the narrowest that helps is the safest."""

MAX_CRACK_EDGE_RATIO = 0.25
"""Distance per length of the shortest border edge at either point; welding never collapses an edge."""

MIN_SHARED_BORDER_RATIO = 0.5
"""Border points near another shell per border point; with fewer, the shells are two bodies that touch."""

NEIGHBOR_COUNT = 8
"""Nearest border points examined; all pairs would take quadratic time where many points are close."""


def remove_degenerate_faces(surface: WeldedMesh) -> tuple[WeldedMesh, int]:
    """Remove the faces that use a point twice; return the mesh and their number."""
    a, b, c = surface.faces.T
    is_degenerate = (a == b) | (b == c) | (c == a)
    count = int(is_degenerate.sum())
    return (surface.keep_faces(~is_degenerate), count) if count else (surface, 0)


def remove_duplicate_faces(surface: WeldedMesh, mesh_edges: Edges) -> tuple[WeldedMesh, int]:
    """Remove the faces over the same three points as another one.

    Of faces with the same orientation one stays. Two faces with opposite orientations both stay if they are the wall
    between two bodies: each edge around the patch of such pairs is on two more faces. Otherwise (a surface that is
    modeled with its back) only the first one stays.

    Returns:
        The mesh, and the number of faces removed.
    """
    may_repeat = _may_be_duplicate(len(surface.faces), mesh_edges)
    if not may_repeat.any():
        return surface, 0
    at = np.flatnonzero(may_repeat)
    corners = np.sort(surface.faces[at], axis=1)
    winding = _winding(surface.faces[at])
    order = np.lexsort((at, winding, *corners.T[::-1]))
    same = (corners[order[1:]] == corners[order[:-1]]).all(axis=1)
    same_winding = same & (winding[order[1:]] == winding[order[:-1]])
    drop = np.zeros(len(surface.faces), np.bool_)
    drop[at[order[1:][same_winding]]] = True
    opposite = np.flatnonzero(same & ~same_winding)
    if len(opposite):
        # `order` is sorted by winding; of an opposite pair the face that comes later in the file is the back
        face_a, face_b = at[order[_find_run_starts(same_winding, opposite)]], at[order[opposite + 1]]
        is_wall = _find_walls(surface.faces, drop, face_a, face_b)
        drop[np.maximum(face_a, face_b)[~is_wall]] = True
    return surface.keep_faces(~drop), int(drop.sum())


def _may_be_duplicate(count: int, mesh_edges: Edges) -> NDArray[np.bool_]:
    """Return the faces that may have a duplicate: at a crowded edge, or with one neighbor on all three sides."""
    at_crowded = np.zeros(count, np.bool_)
    at_crowded[mesh_edges.order[np.repeat(mesh_edges.size > 2, mesh_edges.size)] // 3] = True
    half_a, half_b = mesh_edges.pairs()
    neighbor = np.full((count, 3), -1, np.int32)
    neighbor.ravel()[half_a], neighbor.ravel()[half_b] = half_b // 3, half_a // 3
    first, second, third = neighbor.T
    single: NDArray[np.bool_] = (first >= 0) & (first == second) & (second == third)
    return at_crowded | single


def _winding(faces: Int32) -> NDArray[np.bool_]:
    """Return a value that differs between the two orientations of the same three points."""
    a, b, c = faces.T
    is_odd: NDArray[np.bool_] = (a < b) ^ (b < c) ^ (a < c)
    return is_odd


def _find_run_starts(joined: NDArray[np.bool_], at: Index) -> Index:
    """Return the start of the run of `joined` positions that ends at each position in `at`."""
    places = np.arange(len(joined) + 1)
    is_start = np.concatenate([[True], ~joined])
    start = np.maximum.accumulate(np.where(is_start, places, 0))
    return start[at]


def _find_walls(faces: Int32, dropped: NDArray[np.bool_], face_a: Index, face_b: Index) -> NDArray[np.bool_]:
    """Return which opposite pairs of faces belong to a patch that separates two bodies."""
    kept = np.flatnonzero(~dropped)
    place = np.full(len(faces), -1, np.intp)
    place[kept] = np.arange(len(kept))
    pair_of_face = np.full(len(kept), -1, np.intp)
    pair_of_face[place[face_a]] = pair_of_face[place[face_b]] = np.arange(len(face_a))
    mesh_edges = topology.edges(faces[kept])
    edge = np.repeat(np.arange(len(mesh_edges.size)), mesh_edges.size)
    pair = pair_of_face[mesh_edges.order // 3]
    others = np.bincount(edge[pair < 0], minlength=len(mesh_edges.size))
    edge, pair = np.unique(np.stack([edge, pair])[:, pair >= 0], axis=1)
    first = topology.first_members(np.unique(edge, return_inverse=True)[1], len(np.unique(edge)))
    leader = pair[first][np.unique(edge, return_inverse=True)[1]]
    count, patch = topology.components(len(face_a), pair, leader)
    on_rim = others[edge] > 0
    even = np.bincount(patch[pair[on_rim & (others[edge] % 2 == 0)]], minlength=count)
    odd = np.bincount(patch[pair[on_rim & (others[edge] % 2 == 1)]], minlength=count)
    return (even > odd)[patch]


def weld_cracks(surface: WeldedMesh, mesh_edges: Edges) -> tuple[WeldedMesh, int]:
    """Weld border points that are nearly equal, if that reduces the border; return the mesh and their number."""
    count = 0
    diagonal = float(np.linalg.norm(np.ptp(surface.points, axis=0)))
    neighbors: _Neighbors | None = None
    for ratio in CRACK_WIDTH_RATIOS:
        border = mesh_edges.border()
        if len(border) == 0:
            break
        if neighbors is None:
            neighbors = _find_neighbors(surface, border, CRACK_WIDTH_RATIOS[-1] * diagonal)
        point_a, point_b, distance = neighbors
        is_near = distance <= ratio * diagonal
        if not is_near.any():
            continue
        candidate, welded = _weld_pairs(surface, point_a[is_near], point_b[is_near], 2 * ratio * diagonal)
        candidate_edges = topology.edges(candidate.faces)
        if (candidate_edges.size == 1).sum() < len(border):
            surface, mesh_edges, count, neighbors = candidate, candidate_edges, count + welded, None
    return surface, count


_Neighbors = tuple[Index, Index, Float64]


def _find_neighbors(surface: WeldedMesh, border: Index, tolerance: float) -> _Neighbors:
    """Return pairs of border points that may be welded, and their distances."""
    begin, end = (ends[border] for ends in topology.half_edges(surface.faces))
    length = np.linalg.norm(surface.points[begin] - surface.points[end], axis=1)
    shortest = np.full(len(surface.points), np.inf)
    np.minimum.at(shortest, begin, length)
    np.minimum.at(shortest, end, length)
    point = np.flatnonzero(np.isfinite(shortest))
    max_distance = shortest[point] * MAX_CRACK_EDGE_RATIO
    distance, near = cKDTree(surface.points[point]).query(
        surface.points[point], k=min(NEIGHBOR_COUNT, len(point)), distance_upper_bound=tolerance
    )
    distance, near = distance.reshape(len(point), -1), near.reshape(len(point), -1)
    index_a, column = np.nonzero(np.isfinite(distance))
    index_b, distance = near[index_a, column], distance[index_a, column]
    chosen = (index_a < index_b) & (distance <= np.minimum(max_distance[index_a], max_distance[index_b]))
    chosen[chosen] = _belong_together(surface, point, index_a[chosen], index_b[chosen])
    return point[index_a[chosen]], point[index_b[chosen]], distance[chosen]


def _belong_together(surface: WeldedMesh, point: Index, index_a: Index, index_b: Index) -> NDArray[np.bool_]:
    """Return which pairs of border points are in one shell, or in two of which one has most of its border nearby.

    Bodies with holes that touch each other have only a few border points in common.

    Args:
        point: (b,) border points.
        index_a: (k,) first border point of each pair.
        index_b: (k,) second border point of each pair.
    """
    count, label = topology.shells(surface.faces)
    of_point = np.empty(len(surface.points), np.int32)
    of_point[surface.faces.ravel()] = np.repeat(label, 3)
    shell = of_point[point]
    shell_a, shell_b = shell[index_a], shell[index_b]
    across = shell_a != shell_b
    near = np.unique(np.concatenate([index_a[across], index_b[across]]))
    share = np.bincount(shell[near], minlength=count) / np.maximum(np.bincount(shell, minlength=count), 1)
    together: NDArray[np.bool_] = ~across | (np.maximum(share[shell_a], share[shell_b]) >= MIN_SHARED_BORDER_RATIO)
    return together


def _weld_pairs(surface: WeldedMesh, point_a: Index, point_b: Index, max_size: float) -> tuple[WeldedMesh, int]:
    """Weld pairs of points; a chain of pairs that is longer than `max_size` is not a crack, and stays.

    Returns:
        The mesh, and the number of points removed.
    """
    point, places = np.unique(np.concatenate([point_a, point_b]), return_inverse=True)
    count, label = topology.components(len(point), places[: len(point_a)], places[len(point_a) :])
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    np.minimum.at(low, label, surface.points[point])
    np.maximum.at(high, label, surface.points[point])
    is_short = np.linalg.norm(high - low, axis=1) <= max_size
    point, label = point[is_short[label]], label[is_short[label]]
    target = np.arange(len(surface.points), dtype=np.int32)
    leader = np.zeros(count, np.int32)
    leader[label[::-1]] = point[::-1]
    target[point] = leader[label]
    welded, _ = remove_degenerate_faces(replace(surface, faces=target[surface.faces]))
    return welded, len(point) - int(is_short.sum())
