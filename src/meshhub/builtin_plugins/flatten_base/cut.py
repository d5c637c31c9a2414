"""Cutting one mesh at a height: what is above stays, attributes interpolated along the cut."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.geometry import IntIndex, weld
from meshhub.scene import Float64, Int32, Mesh


class Plane(NamedTuple):
    """Where to cut, and how fine.

    at:    the height of the cut
    base:  the height that the base gets; a little less than `at` where the cut had to evade something
    near:  vertices nearer than this to the cut are taken to lie in it
    grid:  points of the base are put on a grid this fine, so that no two fall together in 32-bit files
    """

    at: float
    base: float
    near: float
    grid: float


class Opened(NamedTuple):
    """A mesh that was cut and not yet capped.

    edges: (k, 2) vertices of the cut's rim, in the direction of the faces above
    faces: (k,) the face that each of these edges belongs to
    """

    mesh: Mesh
    edges: Int32
    faces: IntIndex


def opened(mesh: Mesh, plane: Plane) -> Opened:
    """What of the mesh lies above the plane, and the rim of the cut."""
    vertices = mesh.vertices.copy()
    distance = vertices[:, 2] - plane.at
    side = np.where(distance > plane.near, 1, np.where(distance < -plane.near, -1, 0)).astype(np.int8)
    inside = side == 0
    vertices[inside] = _on_grid(vertices[inside], plane)
    corner_side = side[mesh.faces]
    highest, lowest = corner_side.max(axis=1), corner_side.min(axis=1)
    whole = np.flatnonzero((lowest >= 0) & (highest > 0))
    crossing = np.flatnonzero((lowest < 0) & (highest > 0))

    pieces, source, begin, end = _split(mesh.faces[crossing], corner_side[crossing], len(vertices))
    between = _crossings(replace(mesh, vertices=vertices), distance, begin, end, plane)
    faces = np.concatenate([mesh.faces[whole], pieces])
    origin = np.concatenate([whole, crossing[source]])
    flat = np.concatenate([inside, np.ones(len(begin), np.bool_)])
    cut = replace(
        between,
        faces=faces,
        face_material=None if mesh.face_material is None else mesh.face_material[origin],
    )
    return _rim(cut, flat)


def _on_grid(points: Float64, plane: Plane) -> Float64:
    """Points brought into the base."""
    made = np.rint(points / plane.grid) * plane.grid
    made[:, 2] = plane.base
    return made


def _split(faces: Int32, side: np.ndarray, count: int) -> tuple[Int32, IntIndex, IntIndex, IntIndex]:
    """The upper pieces of faces that cross the plane.

    Returns the pieces (p, 3), the row of the face each came from, and where the new vertices lie: the
    k-th, which pieces call `count + k`, is on the edge from `begin[k]` to `end[k]`.
    """
    above, below = (side > 0).sum(axis=1), (side < 0).sum(axis=1)
    lone = np.flatnonzero((above == 1) & (below == 2))
    pair = np.flatnonzero((above == 2) & (below == 1))
    mixed = np.flatnonzero((above == 1) & (below == 1))

    def turned(rows: IntIndex, first: np.ndarray) -> list[Int32]:
        """The corners of faces, the one where `first` is true leading."""
        start = np.argmax(first[rows], axis=1)
        return [faces[rows, (start + step) % 3] for step in range(3)]

    a1, b1, c1 = turned(lone, side > 0)
    a2, b2, c2 = turned(pair, side < 0)
    a3, b3, c3 = turned(mixed, side > 0)
    b3_flat = side[mixed][np.arange(len(mixed)), (np.argmax(side[mixed] > 0, axis=1) + 1) % 3] == 0
    ends = np.stack(
        [
            np.concatenate([a1, a1, a2, a2, a3]),
            np.concatenate([b1, c1, b2, c2, np.where(b3_flat, c3, b3)]),
        ],
        axis=1,
    ).astype(np.int64)
    low, high = ends.min(axis=1), ends.max(axis=1)
    edges, number = np.unique(low * count + high, return_inverse=True)
    new = (count + number).astype(np.int32)
    ab1, ac1, ab2, ac2, across = np.split(new, np.cumsum([len(a1), len(a1), len(a2), len(a2)]))
    pieces = np.concatenate(
        [
            np.stack([a1, ab1, ac1], axis=1),
            np.stack([ab2, b2, c2], axis=1),
            np.stack([ab2, c2, ac2], axis=1),
            np.stack([a3, np.where(b3_flat, b3, across), np.where(b3_flat, across, c3)], axis=1),
        ]
    ).astype(np.int32)
    return pieces, np.concatenate([lone, pair, pair, mixed]), edges // count, edges % count


def _crossings(mesh: Mesh, distance: Float64, begin: IntIndex, end: IntIndex, plane: Plane) -> Mesh:
    """The mesh with a new vertex on each of the edges, its values in proportion.

    Both sides of a seam must give the very same point, so the edge's ends are taken in the order of
    their coordinates, not of their numbers.
    """
    if len(begin) == 0:
        return mesh
    # one end is above and the other below, so their heights alone order them
    swapped = distance[begin] > distance[end]
    low, high = np.where(swapped, end, begin), np.where(swapped, begin, end)
    share = (distance[low] / (distance[low] - distance[high]))[:, None]

    def along(values: np.ndarray) -> Float64:
        lower = values[low].astype(np.float64)
        return lower + (values[high].astype(np.float64) - lower) * share

    normals = mesh.normals
    if normals is not None:
        mixed = along(normals)
        length = np.linalg.norm(mixed, axis=1, keepdims=True)
        # opposite normals have no mean: the lower one then
        mixed = np.where(length > 1e-6, mixed / np.where(length > 0, length, 1), normals[low])
        normals = np.concatenate([normals, mixed.astype(np.float32)])
    return replace(
        mesh,
        vertices=np.concatenate([mesh.vertices, _on_grid(along(mesh.vertices), plane)]),
        normals=normals,
        uv=None if mesh.uv is None else np.concatenate([mesh.uv, along(mesh.uv).astype(np.float32)]),
        colors=None
        if mesh.colors is None
        else np.concatenate([mesh.colors, np.rint(along(mesh.colors)).astype(np.uint8)]),
    )


def _rim(mesh: Mesh, flat: np.ndarray) -> Opened:
    """The mesh without faces that fell together, and the edges in the plane that no other face answers."""
    corner_flat = flat[mesh.faces]
    touching = np.flatnonzero(corner_flat.sum(axis=1) >= 2)
    corners = mesh.faces[touching]
    rows = np.unique(corners[corner_flat[touching]])
    _, index = weld(mesh.vertices[rows])
    # -1 - row for what is not in the plane: unlike any point of it
    point = -1 - np.arange(len(mesh.vertices))
    point[rows] = index
    a, b, c = (point[corners[:, corner]] for corner in range(3))
    fallen = (a == b) | (b == c) | (c == a)
    if fallen.any():
        kept = np.ones(len(mesh.faces), np.bool_)
        kept[touching[fallen]] = False
        number = np.cumsum(kept) - 1
        touching, corners = number[touching[~fallen]], corners[~fallen]
        mesh = replace(
            mesh,
            faces=mesh.faces[kept],
            face_material=None if mesh.face_material is None else mesh.face_material[kept],
        )
    begin, end = corners.ravel(), corners[:, [1, 2, 0]].ravel()
    face = np.repeat(touching, 3)
    level = flat[begin] & flat[end]
    begin, end, face = begin[level], end[level], face[level]
    # an edge that runs there and back is none of the rim
    count = len(rows) + 1
    low, high = np.minimum(point[begin], point[end]), np.maximum(point[begin], point[end])
    forward = point[begin] < point[end]
    order = np.lexsort((forward, low * count + high))
    key = (low * count + high)[order]
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.intp)
    size = np.diff(start, append=len(key))
    ahead = np.add.reduceat(forward[order].astype(np.intp), start) if len(key) else size
    behind = size - ahead
    # those that run backward come first in each group: the surplus of either kind stays
    place = np.arange(len(key)) - np.repeat(start, size)
    answered = np.repeat(np.minimum(ahead, behind), size)
    backward = np.repeat(behind, size)
    rank = np.where(place < backward, place, place - backward)
    chosen = order[rank >= answered]
    return Opened(mesh, np.stack([begin[chosen], end[chosen]], axis=1).astype(np.int32), face[chosen])
