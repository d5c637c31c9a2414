"""Groups of facets that are tried as one surface: smooth pieces between sharp edges, and surroundings of facets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs, expand_ranges
from meshhub.builtin_plugins.step.surfaces.kinds import STRIP
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

_STRIP_STEPS = 2
"""Facets in each direction along a strip."""

_MAX_AREA_RATIO = 3.0
"""Areas of two neighboring facets of one tessellated surface; beside a flat face or a finer fillet the area jumps."""

_MIN_EVEN_COSINE = float(np.cos(np.radians(15.0)))
"""Cosine of 15°: turn between facets of one surface that is triangulated finely."""

Mask = NDArray[np.bool_]


def find_pieces(
    graph: FacetGraph, is_usable: Mask, min_count: int, is_joined: Mask | None = None
) -> tuple[IntIndex, IntIndex]:
    """Find the smooth pieces of usable facets.

    Args:
        graph: Facets of the mesh.
        is_usable: (f,) facets.
        min_count: Smallest number of facets of a piece.
        is_joined: (e,) pairs of neighbors that may be in one piece (default: all).
    Returns:
        Piece of each facet, ascending, and the facets.
    """
    left, right = graph.left, graph.right
    is_inner = is_usable[left] & is_usable[right] & (left < right)
    if is_joined is not None:
        is_inner &= is_joined
    count, label = components(graph.count, left[is_inner], right[is_inner])
    label = np.where(is_usable, label, -1)
    size = np.bincount(label[is_usable], minlength=count)
    facet = np.flatnonzero(is_usable & (size[label] >= min_count))
    facet = facet[np.argsort(label[facet], kind="stable")]
    return label[facet].astype(np.intp), facet


def have_even_areas(graph: FacetGraph) -> Mask:
    """Return the mask (e,) of neighbors that differ little in area; a cylinder and a fillet at its rim differ much."""
    one, other = graph.area[graph.left], graph.area[graph.right]
    result: Mask = np.maximum(one, other) <= _MAX_AREA_RATIO * np.minimum(one, other)
    return result


def turn_little(graph: FacetGraph) -> Mask:
    """Return the mask (e,) of neighbors with a small turn; cones of a turned part may meet smoothly at a larger angle.

    The normals of slivers are noise.
    """
    cosine = np.einsum("ij,ij->i", graph.normal[graph.left], graph.normal[graph.right])
    is_sliver = graph.is_sliver[graph.left] | graph.is_sliver[graph.right]
    result: Mask = is_sliver | (cosine >= _MIN_EVEN_COSINE)
    return result


def collect_surroundings(graph: FacetGraph, seeds: IntIndex, is_free: Mask, rings: int) -> tuple[IntIndex, IntIndex]:
    """Return pairs of a position in `seeds` and a free facet around it: in its rings, or along its strip."""
    left, right = graph.left, graph.right
    if rings == STRIP:
        left, right = left[graph.strong], right[graph.strong]
    begin = np.searchsorted(left, np.arange(graph.count + 1))
    group, facet = np.arange(len(seeds)), seeds
    for _ in range(rings if rings != STRIP else _STRIP_STEPS):
        owner, place = expand_ranges(begin[facet], begin[facet + 1] - begin[facet])
        beyond = right[place]
        is_usable = is_free[beyond] & ~graph.is_broad[beyond]
        group = np.concatenate([group, group[owner][is_usable]])
        group, facet = distinct_pairs(group, np.concatenate([facet, beyond[is_usable]]), graph.count)
    return group, facet


def reach_surroundings(graph: FacetGraph, facets: Mask, rings: int) -> Mask:
    """Return the mask (f,) of facets whose surroundings, of some rings, can include any of some facets."""
    for _ in range(rings):
        reached = facets.copy()
        reached[graph.right[facets[graph.left]]] = True
        facets = reached
    return facets
