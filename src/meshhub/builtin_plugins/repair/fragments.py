"""Removal of stray fragments: tiny shells beside the body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.orient import measure_shell_volumes
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.toolkit import topology
from meshhub.toolkit.fragments import find_small_shells
from meshhub.toolkit.topology import Index


def find_fragments(surface: WeldedMesh, border: Index) -> NDArray[np.bool_]:
    """Find the stray fragments among the shells.

    Args:
        surface: Mesh with labeled shells.
        border: (b,) half-edges without a partner.
    Returns:
        (s,) mask of shells; never all of them.
    """
    is_open = np.zeros(surface.shell_count, np.bool_)
    is_open[surface.shell[border // 3]] = True
    return find_small_shells(
        surface.points, surface.faces, surface.shell, is_open, lambda: measure_shell_volumes(surface)
    )


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
