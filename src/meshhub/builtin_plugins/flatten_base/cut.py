"""Cut one mesh at a height: keep the part above, and interpolate attributes along the cut."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import IntIndex, compacted, weld, welded
from meshhub.toolkit.topology import shells

MIN_NORMAL_LENGTH = 1e-6
"""Minimum length of an interpolated unit normal; below it, the two normals are opposite and have no mean."""


class Plane(NamedTuple):
    """Horizontal cutting plane, and the resolution of the cut; all in millimeters.

    cut_z:     height of the cut
    base_z:    height of the resulting base; lower than `cut_z` if the cut was shifted to avoid a degenerate section
    tolerance: vertices closer than this to the plane count as in the plane
    grid:      base points are rounded to multiples of this, so that none coincide in float32 files
    """

    cut_z: float
    base_z: float
    tolerance: float
    grid: float


class CutMesh(NamedTuple):
    """Mesh that was cut but not capped.

    edges: (k, 2) vertices of the section edges, in the direction of the faces above
    faces: (k,) face that each section edge belongs to
    """

    mesh: Mesh
    edges: Int32
    faces: IntIndex


def cut_mesh(mesh: Mesh, plane: Plane) -> CutMesh:
    """Cut off the part of the mesh below the plane.

    Args:
        mesh: Millimeters, Z up.
        plane: Where to cut.
    Returns:
        The part above the plane, and the section edges, where a cap is missing.
    """
    vertices = mesh.vertices.copy()
    distance = vertices[:, 2] - plane.cut_z
    side = np.where(distance > plane.tolerance, 1, np.where(distance < -plane.tolerance, -1, 0)).astype(np.int8)
    in_plane = side == 0
    vertices[in_plane] = _snap_to_base(vertices[in_plane], plane)
    corner_side = side[mesh.faces]
    highest, lowest = corner_side.max(axis=1), corner_side.min(axis=1)
    above = np.flatnonzero((lowest >= 0) & (highest > 0))
    crossing = np.flatnonzero((lowest < 0) & (highest > 0))

    pieces, source, begin, end = _split_faces(mesh.faces[crossing], corner_side[crossing], len(vertices))
    extended = _add_crossing_vertices(replace(mesh, vertices=vertices), distance, begin, end, plane)
    origin = np.concatenate([above, crossing[source]])
    cut = replace(
        extended,
        faces=np.concatenate([mesh.faces[above], pieces]),
        face_material=None if mesh.face_material is None else mesh.face_material[origin],
    )
    return _find_section(cut, np.concatenate([in_plane, np.ones(len(begin), np.bool_)]))


def _snap_to_base(points: Float64, plane: Plane) -> Float64:
    """Move points to the base, and round them to its grid."""
    snapped = np.rint(points / plane.grid) * plane.grid
    snapped[:, 2] = plane.base_z
    return snapped


def _split_faces(faces: Int32, side: np.ndarray, count: int) -> tuple[Int32, IntIndex, IntIndex, IntIndex]:
    """Split the faces that cross the plane, and keep the upper pieces.

    Args:
        faces: (f, 3) vertex indices.
        side: (f, 3) 1 above the plane, 0 in it, -1 below.
        count: Number of vertices; the new vertices are numbered from here.
    Returns:
        (p, 3) corners of the pieces; (p,) row of the face of each piece; `begin` and `end`, the edge on which each new
        vertex lies.
    """
    above, below = (side > 0).sum(axis=1), (side < 0).sum(axis=1)
    one_above = np.flatnonzero((above == 1) & (below == 2))
    two_above = np.flatnonzero((above == 2) & (below == 1))
    one_in_plane = np.flatnonzero((above == 1) & (below == 1))

    def rotate(rows: IntIndex, leads: np.ndarray) -> list[Int32]:
        """Return the corners of faces, starting with the corner where `leads` is true."""
        start = np.argmax(leads[rows], axis=1)
        return [faces[rows, (start + step) % 3] for step in range(3)]

    a1, b1, c1 = rotate(one_above, side > 0)
    a2, b2, c2 = rotate(two_above, side < 0)
    a3, b3, c3 = rotate(one_in_plane, side > 0)
    second = (np.argmax(side[one_in_plane] > 0, axis=1) + 1) % 3
    b3_in_plane = side[one_in_plane][np.arange(len(one_in_plane)), second] == 0
    ends = np.stack(
        [
            np.concatenate([a1, a1, a2, a2, a3]),
            np.concatenate([b1, c1, b2, c2, np.where(b3_in_plane, c3, b3)]),
        ],
        axis=1,
    ).astype(np.int64)
    low, high = ends.min(axis=1), ends.max(axis=1)
    edges, number = np.unique(low * count + high, return_inverse=True)
    new = (count + number).astype(np.int32)
    ab1, ac1, ab2, ac2, x3 = np.split(new, np.cumsum([len(a1), len(a1), len(a2), len(a2)]))
    pieces = np.concatenate(
        [
            np.stack([a1, ab1, ac1], axis=1),
            np.stack([ab2, b2, c2], axis=1),
            np.stack([ab2, c2, ac2], axis=1),
            np.stack([a3, np.where(b3_in_plane, b3, x3), np.where(b3_in_plane, x3, c3)], axis=1),
        ]
    ).astype(np.int32)
    source = np.concatenate([one_above, two_above, two_above, one_in_plane])
    return pieces, source, edges // count, edges % count


def _add_crossing_vertices(mesh: Mesh, distance: Float64, begin: IntIndex, end: IntIndex, plane: Plane) -> Mesh:
    """Add a vertex where each edge crosses the plane, with interpolated attributes.

    Both sides of a seam must get exactly the same point. Therefore, the ends of an edge are ordered by height, not by
    index.
    """
    if len(begin) == 0:
        return mesh
    # one end is above the plane and the other below, so the heights differ
    is_swapped = distance[begin] > distance[end]
    low, high = np.where(is_swapped, end, begin), np.where(is_swapped, begin, end)
    fraction = (distance[low] / (distance[low] - distance[high]))[:, None]

    def interpolate(values: np.ndarray) -> Float64:
        lower = values[low].astype(np.float64)
        return lower + (values[high].astype(np.float64) - lower) * fraction

    normals = mesh.normals
    if normals is not None:
        mean = interpolate(normals)
        length = np.linalg.norm(mean, axis=1, keepdims=True)
        mean = np.where(length > MIN_NORMAL_LENGTH, mean / np.where(length > 0, length, 1), normals[low])
        normals = np.concatenate([normals, mean.astype(np.float32)])
    return replace(
        mesh,
        vertices=np.concatenate([mesh.vertices, _snap_to_base(interpolate(mesh.vertices), plane)]),
        normals=normals,
        uv=None if mesh.uv is None else np.concatenate([mesh.uv, interpolate(mesh.uv).astype(np.float32)]),
        colors=None
        if mesh.colors is None
        else np.concatenate([mesh.colors, np.rint(interpolate(mesh.colors)).astype(np.uint8)]),
    )


def _find_section(mesh: Mesh, in_plane: np.ndarray) -> CutMesh:
    """Remove the faces that collapsed on the grid, and find the edges in the plane that lack an opposite edge.

    Args:
        mesh: Faces above the plane.
        in_plane: (n,) whether each vertex is in the plane.
    """
    corner_in_plane = in_plane[mesh.faces]
    touching = np.flatnonzero(corner_in_plane.sum(axis=1) >= 2)
    corners = mesh.faces[touching]
    rows = np.unique(corners[corner_in_plane[touching]])
    _, index = weld(mesh.vertices[rows])
    # vertices outside the plane get -1 - row, which differs from every point in the plane
    point = -1 - np.arange(len(mesh.vertices))
    point[rows] = index
    a, b, c = (point[corners[:, corner]] for corner in range(3))
    collapsed = (a == b) | (b == c) | (c == a)
    if collapsed.any():
        kept = np.ones(len(mesh.faces), np.bool_)
        kept[touching[collapsed]] = False
        number = np.cumsum(kept) - 1
        touching, corners = number[touching[~collapsed]], corners[~collapsed]
        mesh = replace(
            mesh,
            faces=mesh.faces[kept],
            face_material=None if mesh.face_material is None else mesh.face_material[kept],
        )
    begin, end = corners.ravel(), corners[:, [1, 2, 0]].ravel()
    face = np.repeat(touching, 3)
    is_level = in_plane[begin] & in_plane[end]
    begin, end, face = begin[is_level], end[is_level], face[is_level]
    unmatched = _find_unmatched(point[begin], point[end], len(rows) + 1)
    edges = np.stack([begin[unmatched], end[unmatched]], axis=1).astype(np.int32)
    return CutMesh(mesh, edges, face[unmatched])


def _find_unmatched(begin: IntIndex, end: IntIndex, limit: int) -> IntIndex:
    """Return the directed edges without an opposite edge, grouped by their two points; points are below `limit`."""
    low, high = np.minimum(begin, end), np.maximum(begin, end)
    is_forward = begin < end
    order = np.lexsort((is_forward, low * limit + high))
    key = (low * limit + high)[order]
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.intp)
    size = np.diff(start, append=len(key))
    forward = np.add.reduceat(is_forward[order].astype(np.intp), start) if len(key) else size
    backward = size - forward
    # backward edges come first in each group; the surplus of either direction is unmatched
    place = np.arange(len(key)) - np.repeat(start, size)
    matched = np.repeat(np.minimum(forward, backward), size)
    first_forward = np.repeat(backward, size)
    rank = np.where(place < first_forward, place, place - first_forward)
    return order[rank >= matched]


def count_shells_below(mesh: Mesh, plane: Plane) -> int:
    """Count the shells of a mesh that have no vertex above the plane, which a cut removes completely."""
    is_above = (mesh.vertices[:, 2] - plane.cut_z > plane.tolerance)[mesh.faces]
    # faces completely above are irrelevant, because they connect to lower faces only through crossing faces
    lower = np.flatnonzero(~is_above.all(axis=1))
    crossing = is_above[lower].any(axis=1)
    if crossing.all():
        return 0
    count, label = shells(welded(compacted(Mesh(mesh.vertices, mesh.faces[lower])))[1])
    stays = np.zeros(count, np.bool_)
    stays[label[crossing]] = True
    return int(count - stays.sum())
