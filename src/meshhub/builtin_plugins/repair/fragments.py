"""Removal of stray fragments: tiny shells beside the body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.orient import measure_shell_volumes
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.toolkit import topology
from meshhub.toolkit.topology import Index

MAX_CLOSED_FRAGMENT_FACES = 4
"""Faces; a larger closed shell is a deliberate body, however small."""

MAX_FRAGMENT_DIAGONAL_RATIO = 0.01
"""Diagonal of a fragment per diagonal of its part; larger shells may be deliberate."""

MAX_FRAGMENT_VOLUME_RATIO = 0.0001
"""Volume of a fragment per volume of its part; larger shells may be deliberate."""


def find_fragments(surface: WeldedMesh, border: Index) -> NDArray[np.bool_]:
    """Find the stray fragments among the shells.

    A fragment is open or has at most four faces. Its diagonal is under 1 % and its volume at most 0.01 % of its part.

    Args:
        surface: Mesh with labeled shells.
        border: (b,) half-edges without a partner.
    Returns:
        (s,) mask of shells; never all of them.
    """
    count, label = surface.shell_count, surface.shell
    is_fragment = np.zeros(count, np.bool_)
    if count < 2:
        return is_fragment
    is_open = is_fragment.copy()
    is_open[label[border // 3]] = True
    candidate = is_open | (np.bincount(label, minlength=count) <= MAX_CLOSED_FRAGMENT_FACES)
    if not candidate.any():
        return is_fragment
    face = np.flatnonzero(candidate[label])
    order = face[np.argsort(label[face], kind="stable")]
    begin = np.concatenate([[0], np.cumsum(np.bincount(label[face], minlength=count)[candidate])[:-1]])
    corner = surface.points[surface.faces[order]]
    size = np.maximum.reduceat(corner.max(axis=1), begin) - np.minimum.reduceat(corner.min(axis=1), begin)
    diagonal = float(np.linalg.norm(np.ptp(surface.points[np.unique(surface.faces)], axis=0)))
    volume = np.abs(measure_shell_volumes(surface))
    is_fragment[candidate] = (np.linalg.norm(size, axis=1) < MAX_FRAGMENT_DIAGONAL_RATIO * diagonal) & (
        volume[candidate] <= MAX_FRAGMENT_VOLUME_RATIO * volume.sum()
    )
    return np.zeros(count, np.bool_) if is_fragment.all() else is_fragment


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
