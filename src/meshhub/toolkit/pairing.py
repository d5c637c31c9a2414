"""Pairing of half-edges, including edges on more than two faces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.topology import Edges, Index, angles_around_edges, components

ANGLE_RESOLUTION_RAD = 2.0**-20
"""Radians; faces closer than this around an edge count as coincident, because only rounding separates them."""

MAX_ROUNDS = 64
"""Rounds of pairing, from the innermost wedges outward; bounds the time. The rest is paired in order."""


def pair_half_edges(points: Float64, faces: Int32, mesh_edges: Edges) -> tuple[Index, Index]:
    """Pair the half-edges; those without a partner are the border.

    Where more than two faces meet, partners are the two that bound one wedge of material: neighbors by angle, in
    opposite directions. Half-edges that remain all have the same direction, and are paired in the order of the angle.
    Coincident faces nest by the order of their patches, so that the sides of a wall between an outward and an inward
    body stay apart.

    Args:
        points: (n, 3) positions, any length unit.
        faces: (m, 3) indices into `points`, mostly outward.
        mesh_edges: Result of `topology.edges(faces)`.
    Returns:
        (p,) and (p,) half-edges.
    """
    half_a, half_b = mesh_edges.pairs()
    crowded = np.flatnonzero(mesh_edges.size > 2)
    if len(crowded) == 0:
        return half_a, half_b
    half, group, forward, ticks = angles_around_edges(points, faces, mesh_edges, crowded, ANGLE_RESOLUTION_RAD)
    _, patch = components(len(faces), half_a // 3, half_b // 3)
    nesting = np.where(forward, patch[half // 3], -patch[half // 3])
    order = np.lexsort((half, nesting, ~forward, ticks, group))
    half, group, forward = half[order], group[order], forward[order]
    halves_a, halves_b = [half_a], [half_b]
    for _ in range(MAX_ROUNDS):
        backs, fronts = _find_wedges(group, forward)
        if len(backs) == 0:
            break
        halves_a.append(half[backs])
        halves_b.append(half[fronts])
        remaining = np.ones(len(half), np.bool_)
        remaining[backs] = remaining[fronts] = False
        half, group, forward = half[remaining], group[remaining], forward[remaining]
    place = np.arange(len(group)) - np.searchsorted(group, group)
    end = np.searchsorted(group, group, side="right")
    even = np.flatnonzero((place % 2 == 0) & (np.arange(len(group)) + 1 < end))
    halves_a.append(half[even])
    halves_b.append(half[even + 1])
    return np.concatenate(halves_a), np.concatenate(halves_b)


def _find_wedges(group: Index, forward: NDArray[np.bool_]) -> tuple[Index, Index]:
    """Find the neighbors by angle, cyclic in each group, of which the first is backward and the second forward.

    Material is behind a face: at smaller angles for a forward half-edge, at larger angles for a backward one.
    """
    if len(group) == 0:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    places = np.arange(len(group))
    is_last = np.concatenate([group[1:] != group[:-1], [True]])
    after = np.where(is_last, np.searchsorted(group, group), places + 1)
    backward = np.flatnonzero(~forward & forward[after])
    return backward, after[backward]


def choose_independent_pairs(half: Index, mate: Index, face_count: int) -> tuple[Index, Index]:
    """Return the pairs of half-edges whose faces are not used by an earlier pair; `mate` is -1 for none."""
    users = np.concatenate([half // 3, np.where(mate >= 0, mate // 3, half // 3)])
    owner = np.tile(np.arange(len(half)), 2)
    first = np.full(face_count, len(half), np.intp)
    np.minimum.at(first, users, owner)
    chosen = (first[users] == owner).reshape(2, -1).all(axis=0)
    return half[chosen], mate[chosen]
