"""Surfaces that enclose no volume: open ones, and closed ones whose sides coincide."""

# why this way: docs/decisions/0012-sheets-and-cavities.md
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.geometry import IntIndex, face_normals, unit_vectors, welded
from meshhub.toolkit.topology import Index, components, edges, half_edges, shells

MIN_OPENING_RATIO = 0.5
"""Area of the opening per area of a shell from which it is a sheet; half a ball has half."""

MIN_SHARE = 0.5
"""Share of the area that sheets have in a mesh that is meant as a sheet; in others, they are debris."""

MIN_VOLUME_RATIO = 1e-5
"""Volume per area and diagonal, and distance from a plane per size, up to which a closed shell is flat; 0.5 µm of
50 mm, more than repair moves points apart."""

MAX_ROLL_SPREAD = 0.02
"""Distance of the unit normals of a roll from a common plane: those of cylinders and cones are in one."""

MIN_ROLL_BEND = 0.1
"""Spread of these normals in the plane, from which a shell is bent and not flat."""

MIN_RIM_DEPTH_RATIO = 0.05
"""Spread of a rim across its plane per spread along it, from which no flat face closes its opening."""

MAX_SHARP_COSINE = 0.64
"""Cosine of the angle between the normals at an edge of a box, from 50° on; a coarse label bends by less."""

MAX_SHARP_RATIO = 0.02
"""Length of sharp edges per length of the rim of a roll: a channel of sheet metal without bends has two."""

MAX_SEAM_RATIO = 1e-4
"""Distance of two edges of a border per size, up to which they are a seam that repair welds."""

SEAM_DIRECTION = np.array([0.48, 0.6, 0.64])
"""Direction along which edges are sorted to find those at one place; edges are rarely perpendicular to it."""


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
    chosen, normals, label, is_open, is_flat, _ = find_shells(mesh)
    count = len(is_open)
    area = np.bincount(label, np.linalg.norm(normals, axis=1), count)
    opening = np.linalg.norm([np.bincount(label, normals[:, axis], count) for axis in range(3)], axis=0)
    is_sheet = is_flat | is_open & (opening > MIN_OPENING_RATIO * area)
    if is_open.any():
        points, faces = welded(mesh)
        is_sheet |= find_rolls(points, faces[chosen], label, count)
    return bool(area[is_sheet].sum() > MIN_SHARE * area.sum())


def find_rolls(points: Float64, faces: Int32, label: Index, count: int) -> NDArray[np.bool_]:
    """Return the shells (s,) that are bent around an axis without edges, with a single border that is not flat.

    Such a shell is a rolled strip, a spiral or a paper cone, however small its opening is. A tube has two borders.

    Args:
        points: (n, 3) positions, in any length unit.
        faces: (m, 3) welded points, without faces that collapse to an edge.
        label: (m,) shell of each face.
        count: Number of shells.
    """
    mesh_edges = edges(faces)
    begin, end = half_edges(faces)
    border = mesh_edges.border()
    shell = label[border // 3]
    _, loop = components(len(points), begin[border], end[border])
    loops = np.unique(np.stack([shell, loop[begin[border]]]), axis=1)[0]
    is_roll: NDArray[np.bool_] = np.bincount(loops, minlength=count) == 1
    if not is_roll.any():
        return is_roll
    normals = face_normals(points, faces)
    units = unit_vectors(normals)
    spread = _measure_spread(units, np.linalg.norm(normals, axis=1), label, count)
    is_roll &= (spread[:, 0] <= MAX_ROLL_SPREAD) & (spread[:, 2] >= MIN_ROLL_BEND)
    rims = _measure_spread(points[begin[border]], np.ones(len(border)), shell, count)
    is_roll &= rims[:, 0] > MIN_RIM_DEPTH_RATIO * rims[:, 2]
    half, other = mesh_edges.pairs()
    lengths = np.linalg.norm(points[end] - points[begin], axis=1)
    is_sharp = np.einsum("ij,ij->i", units[half // 3], units[other // 3]) < MAX_SHARP_COSINE
    sharp = np.bincount(label[half // 3], lengths[half] * is_sharp, count)
    is_roll &= sharp <= MAX_SHARP_RATIO * np.bincount(shell, lengths[border], count)
    # the seam of a tube whose points differ by rounding is not an opening
    middles = (points[begin[border]] + points[end[border]]) / 2
    order = np.argsort(middles @ SEAM_DIRECTION)
    near = np.linalg.norm(np.diff(middles[order], axis=0), axis=1) <= MAX_SEAM_RATIO * np.ptp(points, axis=0).max()
    is_roll[shell[order[1:][near]]] = False
    return is_roll


def _measure_spread(values: Float64, weights: Float64, label: Index, count: int) -> Float64:
    """Return the standard deviations (s, 3) of vectors (n, 3) along their main axes in each group, ascending."""
    total = np.maximum(np.bincount(label, weights, count), np.finfo(np.float64).tiny)
    mean = np.stack([np.bincount(label, weights * axis, count) for axis in values.T], axis=1) / total[:, None]
    moved = values - mean[label]
    products = np.einsum("ki,kj->kij", moved, moved).reshape(-1, 9)
    matrix = np.stack([np.bincount(label, weights * product, count) for product in products.T], axis=1)
    spread: Float64 = np.sqrt(np.maximum(np.linalg.eigvalsh((matrix / total[:, None]).reshape(-1, 3, 3)), 0))
    return spread
