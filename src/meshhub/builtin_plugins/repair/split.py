"""Separation of non-manifold elements: points with several fans, edges on several pairs of faces, coincident copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh, point_normals, round_points
from meshhub.model.scene import Float64
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.pairing import choose_independent_pairs, pair_half_edges
from meshhub.toolkit.topology import Index

SEPARATION_RATIO = 2e-6
"""Distance between separated copies per diagonal of the part; far below the resolution of printers."""

MIN_SEPARATION_STEPS = 8
"""float32 steps at the part's farthest placed coordinate; a shorter distance would vanish in a float32 file."""

MAX_ROUNDS = 8
"""Rounds of splitting or moving; bounds the time on meshes where a round causes new conflicts."""


def split_points(surface: WeldedMesh, half_a: Index, half_b: Index) -> tuple[WeldedMesh, int]:
    """Give each fan a point of its own.

    Args:
        half_a: (p,) first half-edge of each pair.
        half_b: (p,) second half-edge, in the opposite direction.
    Returns:
        The mesh, and the number of new points.
    """
    is_nonmanifold = np.zeros(len(surface.points), np.bool_)
    is_nonmanifold[topology.nonmanifold_points(surface.faces, half_a, half_b)] = True
    a, b, c = surface.faces.T
    face = np.flatnonzero(is_nonmanifold[a] | is_nonmanifold[b] | is_nonmanifold[c])
    if len(face) == 0:
        return surface, 0
    local_face = np.full(len(surface.faces), -1, np.intp)
    local_face[face] = np.arange(len(face))
    is_local = (local_face[half_a // 3] >= 0) & (local_face[half_b // 3] >= 0)
    half_a, half_b = (local_face[half // 3] * 3 + half % 3 for half in (half_a[is_local], half_b[is_local]))
    local_faces = surface.faces[face]
    count, label = topology.fans(local_faces, half_a, half_b)
    point = local_faces.ravel()[topology.first_members(label, count)]
    # the fans of other points are incomplete here, and must not be split
    first_fan = np.full(len(surface.points), -1, np.intp)
    first_fan[point[::-1]] = np.arange(count - 1, -1, -1)
    copies = np.flatnonzero((first_fan[point] != np.arange(count)) & is_nonmanifold[point])
    if len(copies) == 0:
        return surface, 0
    fan_point = point.astype(np.int32)
    fan_point[copies] = len(surface.points) + np.arange(len(copies), dtype=np.int32)
    faces = surface.faces.copy()
    faces[face] = fan_point[label].reshape(-1, 3)
    points = np.concatenate([surface.points, surface.points[point[copies]]])
    return replace(surface, points=points, faces=faces), len(copies)


def split_edges(surface: WeldedMesh) -> tuple[WeldedMesh, int]:
    """Split the edges that are on more than two faces, after `split_points`.

    Two pairs of faces between the same two points cannot be separated by copies of points. So one pair gets a point
    in the middle of the edge. Each face is changed at most once per round.

    Returns:
        The mesh, and the number of edges split.
    """
    count = 0
    for _ in range(MAX_ROUNDS):
        mesh_edges = topology.edges(surface.faces)
        if (mesh_edges.size <= 2).all():
            break
        half_a, half_b = pair_half_edges(surface.points, surface.faces, mesh_edges)
        partner = np.full(3 * len(surface.faces), -1, np.intp)
        partner[half_a], partner[half_b] = half_b, half_a
        crowded = mesh_edges.start[mesh_edges.size > 2]
        first = mesh_edges.order[crowded]
        half, mate = choose_independent_pairs(first, partner[first], len(surface.faces))
        surface = _insert_midpoints(surface, half, mate)
        count += len(half)
        half_a, half_b = pair_half_edges(surface.points, surface.faces, topology.edges(surface.faces))
        surface, _ = split_points(surface, half_a, half_b)
    return surface, count


def _insert_midpoints(surface: WeldedMesh, half: Index, mate: Index) -> WeldedMesh:
    """Insert a new point in the middle of each half-edge and its mate, and split their faces there."""
    begin, end = (ends[half] for ends in topology.half_edges(surface.faces))
    middle = len(surface.points) + np.arange(len(half), dtype=np.int32)
    surface = replace(
        surface, points=np.concatenate([surface.points, (surface.points[begin] + surface.points[end]) / 2])
    )
    has_mate = mate >= 0
    at, middle = np.concatenate([half, mate[has_mate]]), np.concatenate([middle, middle[has_mate]])
    faces, source = surface.faces.copy(), surface.source.copy()
    face, after, before = at // 3, topology.following(at), topology.preceding(at)
    new_faces = np.stack([middle, faces.ravel()[after], faces.ravel()[before]], axis=1)
    new_source = np.stack([source.ravel()[at], source.ravel()[after], source.ravel()[before]], axis=1)
    faces.ravel()[after] = middle
    source.ravel()[after] = source.ravel()[at]
    result = replace(surface, faces=faces, source=source).add_faces(new_faces, new_source, face)
    result.is_original[-len(new_faces) :] = surface.is_original[face]
    return result


def separate_copies(surface: WeldedMesh, farthest: float) -> tuple[WeldedMesh, int]:
    """Move points that share a position slightly apart, each into its own fan.

    Otherwise a program that reads a file without indices would weld them again.

    Args:
        farthest: Largest absolute coordinate of any placed instance, in the unit of the mesh.
    Returns:
        The mesh, and the number of points moved.
    """
    moved = 0
    diagonal = float(np.linalg.norm(np.ptp(surface.points, axis=0)))
    distance = max(SEPARATION_RATIO * diagonal, MIN_SEPARATION_STEPS * float(np.spacing(np.float32(farthest))))
    points = surface.points
    for attempt in range(MAX_ROUNDS):
        first, index = weld(round_points(points))
        if len(first) == len(points):
            break
        shared = np.flatnonzero(np.bincount(index, minlength=len(first))[index] > 1)
        normal = _outward_directions(surface, shared)
        if moved == 0:
            moved = len(shared)
        points = points.copy()
        points[shared] -= normal * (distance * (1 + _rank_in_group(index[shared]) + 0.7 * attempt))[:, None]
    return (replace(surface, points=points), moved) if moved else (surface, 0)


def _outward_directions(surface: WeldedMesh, points: Index) -> Float64:
    """Return unit normals at some points; +Z where the faces cancel out, because any direction will do."""
    is_requested = np.zeros(len(surface.points), np.bool_)
    is_requested[points] = True
    near = is_requested[surface.faces].any(axis=1)
    normal = point_normals(surface.points, surface.faces[near])[points]
    normal[~normal.any(axis=1)] = (0, 0, 1)
    return normal


def _rank_in_group(index: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return the position of each member within the group of equal values: 0, 1, …"""
    order = np.argsort(index, kind="stable")
    is_start = np.concatenate([[True], index[order][1:] != index[order][:-1]])
    place = np.arange(len(index))
    ranks = np.empty(len(index), np.intp)
    ranks[order] = place - np.maximum.accumulate(np.where(is_start, place, 0))
    return ranks
