"""Surfaces that enclose no volume: open ones, and closed ones whose sides coincide."""

# why this way: docs/decisions/0012-sheets-and-cavities.md
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import IntIndex, face_normals, welded
from meshhub.toolkit.topology import edges, shells

MIN_OPENING_RATIO = 0.5
"""Area of the opening per area of a shell from which it is a sheet; half a ball has half."""

MIN_SHARE = 0.5
"""Share of the area that sheets have in a mesh that is meant as a sheet; in others, they are debris."""

MIN_VOLUME_RATIO = 1e-5
"""Volume per area and diagonal, and distance from a plane per size, up to which a closed shell is flat; 0.5 µm of
50 mm, more than repair moves points apart."""


class Shells(NamedTuple):
    """Shells of a mesh.

    chosen:  (k,) faces that do not collapse to an edge
    normals: (k, 3) their normals, twice their area long
    label:   (k,) their shells
    is_open: (s,) mask of shells with a border
    is_flat: (s,) mask of closed shells whose sides coincide
    is_back: (k,) mask of the faces of one of these sides
    """

    chosen: IntIndex
    normals: Float64
    label: Int32
    is_open: NDArray[np.bool_]
    is_flat: NDArray[np.bool_]
    is_back: NDArray[np.bool_]


def find_shells(mesh: Mesh) -> Shells:
    """Return the shells of a mesh, and which of them are open or flat."""
    points, faces = welded(mesh)
    a, b, c = faces.T
    chosen = np.flatnonzero((a != b) & (b != c) & (c != a))
    faces = faces[chosen]
    mesh_edges = edges(faces)
    count, label = shells(faces, mesh_edges)
    is_open = np.zeros(count, np.bool_)
    is_open[label[mesh_edges.border() // 3]] = True
    normals = face_normals(points, faces)
    is_flat, is_back = _find_flat_shells(points[faces], faces, normals, label, ~is_open)
    return Shells(chosen, normals, label, is_open, is_flat, is_back)


def _find_flat_shells(
    corners: Float64, faces: Int32, normals: Float64, label: Int32, is_closed: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the closed shells (s,) in a plane, or of pairs of opposite faces, and the faces (k,) of one side.

    Args:
        corners: (k, 3, 3)
        faces: (k, 3) welded points.
        normals: (k, 3) twice the area long.
        label: (k,) shell of each face.
        is_closed: (s,) mask of shells without a border.
    """
    count = len(is_closed)
    is_flat, is_back = np.zeros(count, np.bool_), np.zeros(len(faces), np.bool_)
    if not is_closed.any():
        return is_flat, is_back
    moved = corners - corners[0, 0]
    size = max(float(np.linalg.norm(np.ptp(moved, axis=(0, 1)))), float(np.abs(corners).max()))
    volume = np.bincount(label, np.einsum("ij,ij->i", moved[:, 0], normals) / 6, count)
    area = np.bincount(label, np.linalg.norm(normals, axis=1) / 2, count)
    for shell in np.flatnonzero(is_closed & (np.abs(volume) <= MIN_VOLUME_RATIO * area * size)).tolist():
        own = np.flatnonzero(label == shell)
        points = moved[own].reshape(-1, 3)
        points = points - points.mean(axis=0)
        plane = np.linalg.eigh(points.T @ points)[1][:, 0]
        if np.abs(points @ plane).max() <= MIN_VOLUME_RATIO * size:
            is_flat[shell] = True
            is_back[own] = normals[own] @ plane <= 0
        elif (backs := _pair_faces(faces[own])) is not None:
            is_flat[shell] = True
            is_back[own[backs]] = True
    return is_flat, is_back


def _pair_faces(faces: Int32) -> IntIndex | None:
    """Return one of each pair of opposite faces (k, 3) with the same points; None if a face is single."""
    ordered = np.sort(faces, axis=1)
    order = np.lexsort(ordered.T)
    pairs = order[: len(order) // 2 * 2].reshape(-1, 2)
    if len(order) % 2 or (ordered[pairs[:, 0]] != ordered[pairs[:, 1]]).any():
        return None
    # an even permutation of the sorted points keeps their order around the face
    is_even = ((faces[:, 0] < faces[:, 1]) == (faces[:, 1] < faces[:, 2])) == (faces[:, 2] > faces[:, 0])
    return pairs[:, 1] if (is_even[pairs[:, 0]] != is_even[pairs[:, 1]]).all() else None


def is_sheet(mesh: Mesh) -> bool:
    """Return whether a mesh is a sheet, such as a terrain or a piece of cloth, and not a solid with holes.

    A closed shell is a sheet if its sides coincide. The faces of a closed shell add up to a vector area of zero, so
    that of an open shell is the one of its opening.
    """
    _, normals, label, is_open, is_flat, _ = find_shells(mesh)
    count = len(is_open)
    area = np.bincount(label, np.linalg.norm(normals, axis=1), count)
    opening = np.linalg.norm([np.bincount(label, normals[:, axis], count) for axis in range(3)], axis=0)
    is_sheet = is_flat | is_open & (opening > MIN_OPENING_RATIO * area)
    return bool(area[is_sheet].sum() > MIN_SHARE * area.sum())
