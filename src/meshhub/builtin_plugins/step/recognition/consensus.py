"""Facets of a piece that most agree on one surface, where the piece runs smoothly into other surfaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.claims import explains
from meshhub.builtin_plugins.step.recognition.facet_graph import FacetGraph
from meshhub.builtin_plugins.step.recognition.fitting import FitLimits, fit_surfaces
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceKind, gradients
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_KEPT_RATIOS = (0.8, 0.65, 0.5, 0.4, 0.3, 0.3, 0.3)
"""Parts of the facets of a piece, the nearest ones, that are kept after each fit."""

_ANY_DISTANCE = 1e3
"""Limit of fits that only need to come nearer to most facets, in millimeters and in depths of facets."""

Mask = NDArray[np.bool_]


def find_agreeing(
    graph: FacetGraph, kind: SurfaceKind, group: IntIndex, facet: IntIndex, limit: Float64
) -> tuple[Mask, Mask]:
    """Find the facets of pieces that lie on one surface, if they are most of their piece.

    Args:
        graph: Facets of the mesh.
        kind: Kind of the surfaces.
        group: (n,) piece of each facet, 0…g-1, ascending.
        facet: (n,) facets.
        limit: (g,) millimeters that points may lie off.
    Returns:
        (n,) whether a facet lies on the surface of its piece, and (g,) whether most facets of a piece do.
    Source:
        Rousseeuw, "Least median of squares regression", Journal of the American Statistical Association 79, 1984
        (least trimmed squares).
    """
    count = len(limit)
    begin = np.searchsorted(group, np.arange(count))
    size = np.bincount(group, minlength=count)
    owner, point = graph.expand(facet)
    corner_begin = np.searchsorted(owner, np.arange(len(facet)))
    any_distance = np.full(count, _ANY_DISTANCE)
    loose = FitLimits(any_distance, any_distance, np.zeros(count))
    kept = np.ones(len(facet), np.bool_)
    for number, ratio in enumerate(_KEPT_RATIOS, start=1):
        samples = graph.collect_samples(group[kept], facet[kept], count)
        surfaces, _ = fit_surfaces(samples, kind, loose, is_draft=number < len(_KEPT_RATIOS))
        gap, _ = gradients(surfaces.take(group[owner]), graph.points[point])
        off = np.maximum.reduceat(np.nan_to_num(np.abs(gap), nan=np.inf), corner_begin)
        nearest = off[np.lexsort((off, group))]
        kept = off <= nearest[begin + (ratio * (size - 1)).astype(np.intp)][group]
    agrees = explains(graph, surfaces, limit, group, facet)
    are_most = 2 * np.bincount(group, agrees, count) >= size
    return agrees, are_most
