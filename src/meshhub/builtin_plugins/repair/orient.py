"""Orientation of faces: consistent across edges, then outward for bodies and inward for their cavities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit import topology
from meshhub.toolkit.nesting import find_cavities
from meshhub.toolkit.topology import Index

MIN_BODY_FACES = 10
"""Faces of a patch that may be a body of its own: a box without two."""

MAX_WEAK_LINKS = 2
"""Edges between two patches; a flipped region of one body has at least three edges in common with the rest."""

MAX_WEAK_LINK_RATIO = 0.1
"""Edges between two patches per border edge of either; a flipped region of one body has all its border in common."""


def find_flips(faces: Int32, half_a: Index, half_b: Index) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find the faces to flip so that paired half-edges have opposite directions.

    Faces that agree already form patches. Only the few patches that disagree are traversed, breadth first. In each
    connected set of patches the winding of most faces stays.

    Args:
        faces: (m, 3) indices of welded points.
        half_a: (p,) first half-edge of each pair.
        half_b: (p,) second half-edge of each pair.
    Returns:
        (m,) faces to flip, and (p,) pairs that conflict anyway, as on a Möbius strip, and must be cut.
    """
    corner = faces.ravel()
    agree = corner[half_a] != corner[half_b]
    flip, conflict = np.zeros(len(faces), np.bool_), np.zeros(len(half_a), np.bool_)
    if agree.all():
        return flip, conflict
    count, patch = topology.components(len(faces), half_a[agree] // 3, half_b[agree] // 3)
    disagreeing = np.flatnonzero(~agree)
    a, b = patch[half_a[disagreeing] // 3], patch[half_b[disagreeing] // 3]
    is_weak = _find_weak_links(patch, count, a, b, patch[np.concatenate([half_a[agree], half_b[agree]]) // 3])
    if is_weak.any():
        conflict[disagreeing[is_weak]] = True
        disagreeing, a, b = disagreeing[~is_weak], a[~is_weak], b[~is_weak]
    set_count, patch_set = topology.components(count, a, b)
    root = topology.first_members(patch_set, set_count)
    # a virtual node linked to all roots, so that one search traverses every set
    rows, columns = np.concatenate([a, np.full(set_count, count)]), np.concatenate([b, root])
    differ = rows != columns
    graph = coo_array((np.ones(int(differ.sum())), (rows[differ], columns[differ])), (count + 1, count + 1)).tocsr()
    depth = dijkstra(graph, directed=False, indices=count, unweighted=True)[:count].astype(np.int64)
    flip_patch = depth % 2 == 0
    size = np.bincount(patch, minlength=count)
    balance = np.bincount(patch_set, np.where(flip_patch, size, -size), minlength=set_count)
    flip_patch ^= (balance > 0)[patch_set]
    conflict[disagreeing] = flip_patch[a] == flip_patch[b]
    return flip_patch[patch], conflict


def _find_weak_links(patch: Index, count: int, a: Index, b: Index, inner: Index) -> NDArray[np.bool_]:
    """Return which links (k,) join two large patches along a small share of their borders: they are two bodies.

    Where two bodies with holes share a wall, a face of each may meet at an edge. One must not flip the other.

    Args:
        patch: (m,) patch of each face.
        count: Number of patches.
        a: (k,) patch on one side of each link.
        b: (k,) patch on the other side.
        inner: Patch of each half-edge within a patch.
    """
    face_count = np.bincount(patch, minlength=count)
    border = 3 * face_count - np.bincount(inner, minlength=count)
    low, high = np.minimum(a, b).astype(np.int64), np.maximum(a, b)
    _, pair, links = np.unique(low * count + high, return_inverse=True, return_counts=True)
    is_large = (face_count[a] >= MIN_BODY_FACES) & (face_count[b] >= MIN_BODY_FACES) & (a != b)
    most = np.maximum(MAX_WEAK_LINK_RATIO * np.minimum(border[a], border[b]), MAX_WEAK_LINKS)
    weak: NDArray[np.bool_] = is_large & (links[pair] <= most)
    return weak


def measure_shell_volumes(surface: WeldedMesh) -> Float64:
    """Compute the signed volume of each shell, relative to its first point to keep the precision of distant shells.

    Args:
        surface: Mesh with labeled shells.
    Returns:
        (s,) volumes in cubed units of the points; meaningless for open shells.
    """
    points, faces, label = surface.points, surface.faces, surface.shell
    origin = points[faces[topology.first_members(label, surface.shell_count), 0]]
    if surface.shell_count == 1:
        shifted = (points - origin[0]).T
        a, b, c = ([axis[faces[:, corner]] for axis in shifted] for corner in range(3))
    else:
        a, b, c = (list((points[faces[:, corner]] - origin[label]).T) for corner in range(3))
    sixth = a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])
    return np.bincount(label, sixth, minlength=surface.shell_count) / 6.0


def find_inverted_shells(surface: WeldedMesh, border: Index, volume: Float64) -> NDArray[np.bool_]:
    """Find the closed shells with the wrong orientation.

    Bodies must be outward, cavities in bodies inward, bodies in cavities outward. Open shells are not changed.

    Args:
        surface: Mesh with labeled shells.
        border: (b,) half-edges without a partner.
        volume: (s,) signed volume of each shell.
    Returns:
        (s,) mask of shells.
    """
    is_closed = np.ones(surface.shell_count, np.bool_)
    is_closed[surface.shell[border // 3]] = False
    is_cavity = find_cavities(surface.points, surface.faces, surface.shell, is_closed, np.abs(volume))
    return is_closed & np.where(is_cavity, volume > 0, volume < 0)


def measure_closed_volume(surface: WeldedMesh) -> float:
    """Return the total signed volume of the closed shells."""
    volume = measure_shell_volumes(surface)
    volume[surface.shell[topology.edges(surface.faces).border() // 3]] = 0
    return float(volume.sum())


def orient_shells(surface: WeldedMesh) -> WeldedMesh:
    """Flip every closed shell whose orientation does not match its nesting."""
    border = topology.edges(surface.faces).border()
    is_inverted = find_inverted_shells(surface, border, measure_shell_volumes(surface))
    return surface.flip_faces(is_inverted[surface.shell]) if is_inverted.any() else surface
