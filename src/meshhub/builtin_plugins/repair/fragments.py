"""Removal of stray fragments: tiny shells beside the body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.orient import measure_shell_volumes
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.toolkit import topology
from meshhub.toolkit.fragments import find_small_shells
from meshhub.toolkit.geometry import face_normals
from meshhub.toolkit.topology import Index

MAX_SCRAP_RATIO = 0.05
"""Area of scraps per area of their part; more are what the part is made of."""

MAX_FLAT_THICKNESS_RATIO = 1e-6
"""Thickness of a shell per diagonal of its part; a thinner one is the two sides of one surface."""


def find_fragments(surface: WeldedMesh, border: Index) -> NDArray[np.bool_]:
    """Find the stray fragments among the shells.

    Args:
        surface: Mesh with labeled shells.
        border: (b,) half-edges without a partner.
    Returns:
        (s,) mask of shells; never all of them.
    """
    return find_small_shells(
        surface.points, surface.faces, surface.shell, border, lambda: measure_shell_volumes(surface)
    )


def remove_flat_shells(surface: WeldedMesh, max_original: int | None = None) -> tuple[WeldedMesh, int]:
    """Label the shells, and remove the closed ones without volume, which splitting edges and closing holes leave.

    Args:
        max_original: Original faces of a shell to remove; default: any number.
    Returns:
        The mesh, and the number of shells removed; never all of them.
    """
    mesh_edges = topology.edges(surface.faces)
    count, label = topology.shells(surface.faces, mesh_edges)
    surface = replace(surface, shell=label)
    if count < 2:
        return surface, 0
    area = np.bincount(label, np.linalg.norm(face_normals(surface.points, surface.faces), axis=1) / 2, minlength=count)
    diagonal = float(np.linalg.norm(np.ptp(surface.points[surface.faces.ravel()], axis=0)))
    is_flat = 2 * np.abs(measure_shell_volumes(surface)) <= MAX_FLAT_THICKNESS_RATIO * diagonal * area
    is_flat[label[mesh_edges.border() // 3]] = False
    if max_original is not None:
        is_flat &= np.bincount(label, surface.is_original, minlength=count) <= max_original
        if area[is_flat].sum() > MAX_SCRAP_RATIO * area.sum():
            return surface, 0
    if is_flat.all() or not is_flat.any():
        return surface, 0
    kept = surface.keep_faces(~is_flat[label])
    return replace(kept, shell=(np.cumsum(~is_flat, dtype=np.int32) - np.int32(1))[kept.shell]), int(is_flat.sum())


def remove_fragments(surface: WeldedMesh, half_a: Index, half_b: Index) -> tuple[WeldedMesh, int, tuple[Index, Index]]:
    """Label the shells and remove the stray fragments.

    Args:
        surface: Mesh whose shells need not be labeled.
        half_a: (p,) first half-edge of each pair.
        half_b: (p,) second half-edge of each pair.
    Returns:
        The mesh, the number of fragments removed, and the remaining pairs with new half-edge ids.
    """
    label = topology.components(len(surface.faces), half_a // 3, half_b // 3)[1]
    surface = replace(surface, shell=label)
    is_border = np.ones(3 * len(surface.faces), np.bool_)
    is_border[half_a] = is_border[half_b] = False
    is_fragment = find_fragments(surface, np.flatnonzero(is_border))
    if not is_fragment.any():
        return surface, 0, (half_a, half_b)
    kept = ~is_fragment[label]
    number = np.cumsum(kept) - 1
    stays = kept[half_a // 3]
    half_a, half_b = (number[half // 3] * 3 + half % 3 for half in (half_a[stays], half_b[stays]))
    surface = surface.keep_faces(kept)
    shell = (np.cumsum(~is_fragment, dtype=np.int32) - np.int32(1))[surface.shell]
    return replace(surface, shell=shell), int(is_fragment.sum()), (half_a, half_b)
