"""Smooth curves through corners on the borders of patches: the patches follow them, and they become edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import depth_first_order

from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.recognize import Segments
from meshhub.builtin_plugins.step.surfaces.arrays import lengths
from meshhub.builtin_plugins.step.surfaces.patches import DEGREE
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray
from meshhub.builtin_plugins.step.surfaces.surfaces import project_onto_both
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import components

FRACTIONS = np.array([0.25, 0.5, 0.75])
"""Positions between two corners at which a curve is probed."""


class RimPoints(NamedTuple):
    """Points between the corners of a border.

    begin, end: (n,) the mesh points at the corners before and after
    share:      (n,) part of the way between them
    position:   (n, 3) millimeters
    """

    begin: IntIndex
    end: IntIndex
    share: Float64
    position: Float64


def interpolate_corners(corners: Float64) -> Float64:
    """Draw a smooth curve through corners (k, 3), and return its points (3 × (k - 1), 3) at `FRACTIONS` between them.

    The curve is closed if the first and the last corner are equal, and not smooth if other adjacent corners are equal.
    """
    chord = np.concatenate([[0.0], np.cumsum(lengths(np.diff(corners, axis=0)))])
    if (np.diff(chord) <= 0).any():
        step = np.diff(corners, axis=0)
        return (corners[:-1, None] + FRACTIONS[:, None] * step[:, None]).reshape(-1, 3)
    is_closed = len(corners) > DEGREE and (corners[0] == corners[-1]).all()
    degree = min(DEGREE, len(corners) - 1)
    curve = make_interp_spline(chord, corners, k=degree, bc_type="periodic" if is_closed else None)
    return np.asarray(curve((chord[:-1, None] + np.diff(chord)[:, None] * FRACTIONS).ravel()), np.float64)


def project(surface: SurfaceArray, points: Float64) -> Float64:
    """Return the points (n, 3) of one surface that are nearest to points (n, 3)."""
    rows = surface.take(np.zeros(len(points), np.intp))
    return project_onto_both(rows, rows, points)


def probe_border(skin: Skin, faceted: FacetedSkin, segments: Segments, facets: IntIndex, piece: IntIndex) -> RimPoints:
    """Return points on the border of some facets: on the surfaces beside them, where these are curved.

    Args:
        skin: Mesh, millimeters.
        faceted: Its planar facets.
        segments: Surfaces recognized before.
        facets: Facets of a piece whose border does not touch itself.
        piece: (f,) smooth piece of each facet, -1 for flat faces. The border between two pieces is a smooth curve.
    """
    inside = np.zeros(faceted.faces, np.bool_)
    inside[facets] = True
    half = np.flatnonzero(np.repeat(inside[faceted.region], 3))
    twin = skin.twin[half]
    beside = np.where(twin >= 0, faceted.region[np.maximum(twin, 0) // 3], -1)
    is_border = (twin < 0) | ~inside[beside]
    half, beside = half[is_border], beside[is_border]
    owner = np.where(beside >= 0, segments.segment[beside], -1)
    # a surface, a piece, a facet, or the open border; each side of it becomes one edge
    side = np.where(owner >= 0, owner, -2 - beside)
    # recognized surfaces in a piece fit parts of it by chance
    is_smooth = (beside >= 0) & (piece[beside] >= 0)
    side[is_smooth] = -2 - faceted.faces - piece[beside[is_smooth]]
    begin, end = skin.begin[half].astype(np.intp), skin.end[half].astype(np.intp)
    points = [RimPoints(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0), np.empty((0, 3)))]
    for loop in order_loops(begin, end):
        for chain in _split_loop(loop, side):
            corner = np.append(begin[chain], end[chain[-1]])
            position = interpolate_corners(skin.points[corner])
            if side[chain[0]] >= 0:
                position = project(segments.surfaces.take(side[chain[:1]]), position)
            steps = np.repeat(np.arange(len(chain)), len(FRACTIONS))
            points.append(RimPoints(corner[steps], corner[steps + 1], np.tile(FRACTIONS, len(chain)), position))
    return RimPoints(*(np.concatenate(column) for column in zip(*points, strict=True)))


def order_loops(begin: IntIndex, end: IntIndex) -> list[IntIndex]:
    """Return the half-edges of each loop in order.

    Args:
        begin, end: (n,) points of half-edges on borders; each point begins one of them.
    """
    count, order = len(begin), np.argsort(begin)
    following = order[np.searchsorted(begin[order], end)]
    graph = csr_matrix((np.ones(count), (np.arange(count), following)), (count, count))
    _, first = np.unique(components(count, np.arange(count), following)[1], return_index=True)
    return [depth_first_order(graph, start, return_predecessors=False).astype(np.intp) for start in first.tolist()]


def _split_loop(loop: IntIndex, side: IntIndex) -> list[IntIndex]:
    """Return the parts of a loop of half-edges with one side each, in order; a loop with one side is one part."""
    changes = np.flatnonzero(side[loop] != np.roll(side[loop], 1))
    if len(changes) == 0:
        return [loop]
    return np.split(np.roll(loop, -changes[0]), changes[1:] - changes[0])
