"""Checks of a model that need no kernel: short edges, crossing outlines, closed and oriented shells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.recognition.arrays import distinct_pairs, lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceKind, perpendicular
from meshhub.builtin_plugins.step.writing.brep import Model
from meshhub.builtin_plugins.step.writing.curves import Curve, edge_regions
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

MIN_EDGE_MM = 1e-5
"""Millimeters; CAD programs take shorter edges for a corner, and their faces for torn."""

_STEP_RAD = np.pi / 32
"""Radians of an arc from one sample to the next."""
_MAX_PAIRS_COUNT = 5_000_000
"""Pairs of pieces that are compared; bounds time and memory, beyond it no crossing is looked for."""


class _Pieces(NamedTuple):
    """Straight pieces of edges.

    edge:         (n,)
    begin, end:   (n, 3)
    first, last:  (n,) numbers of these points
    sagitta:      (n,) mm between a piece and its arc
    """

    edge: IntIndex
    begin: Float64
    end: Float64
    first: IntIndex
    last: IntIndex
    sagitta: Float64


def unsound_regions(model: Model, size: Float64) -> IntIndex:
    """Return curved regions beside edges that are too short, or that cross another edge of a flat face.

    Args:
        model: A skin with its surfaces and curves.
        size: (r,) area of each region; of several curved neighbors of a bad edge the smallest is returned.
    """
    pieces = _pieces(model)
    outline, curves = model.outline, model.curves
    left, right = edge_regions(outline)
    bent = curves.kind != Curve.LINE
    length = np.bincount(pieces.edge, lengths(pieces.end - pieces.begin), len(bent))
    moved = np.isin(outline.start[outline.edge_chain], model.seams.corner)
    moved |= np.isin(outline.stop[outline.edge_chain], model.seams.corner)
    bad = (length < MIN_EDGE_MM) & (bent | moved)
    one, other = _crossings(model, pieces, left, right)
    bad[one[bent[one]]] = True
    bad[other[bent[other]]] = True
    left, right = left[bad], right[bad]
    smallest = np.where(size[left] <= size[right], left, right)
    made: IntIndex = smallest[model.regions.curved[smallest]]
    return made


def unsound_shells(model: Model) -> IntIndex:
    """Return closed shells that are torn: an edge not used once each way, another genus, a flat face turned over.

    Source:
        Mäntylä, An Introduction to Solid Modeling, 1988, §9 (Euler–Poincaré formula).
    """
    skin, outline, regions = model.skin, model.outline, model.regions
    count, chain = len(skin.closed), outline.edge_chain
    shell = np.empty(len(regions.surfaces), np.intp)
    shell[regions.region] = skin.shell
    twice = np.bincount(outline.edge, minlength=len(chain)) == 2
    first = outline.start[np.flatnonzero(outline.forward)]
    back = np.flatnonzero(~outline.forward)
    opposed = np.ones(len(chain), np.bool_)
    opposed[outline.edge[back]] = outline.stop[back] == first[outline.edge[back]]
    bad = np.zeros(count, np.bool_)
    bad[shell[outline.region[chain[~(twice & opposed)]]]] = True

    # a face with l loops is a ball's surface with l holes; where two of its loops touch, the holes are one
    visits, _ = distinct_pairs(outline.region, outline.start, len(skin.points))
    touching = np.bincount(outline.region, minlength=len(shell)) - np.bincount(visits, minlength=len(shell))
    loops = np.bincount(outline.loop_region, minlength=len(shell))
    used = np.unique(outline.start)
    point_shell = np.empty(len(skin.points), np.intp)
    point_shell[skin.faces.ravel()] = np.repeat(skin.shell, 3)
    faces = sum_by_label(shell, 2 - loops + touching, count)
    written = faces + np.bincount(point_shell[used], minlength=count)
    written -= np.bincount(shell[outline.region[chain]], minlength=count)
    triangles = np.bincount(skin.shell, minlength=count)
    points = np.bincount(point_shell[np.unique(skin.faces)], minlength=count)
    # a face of a torus can go round its tube and its ring, with any number of loops
    tori = np.bincount(shell, regions.surfaces.kind == SurfaceKind.TORUS, count) > 0
    bad |= (written != points - triangles / 2) & ~tori

    area = _flat_areas(model)
    bad[shell[(area <= 0) & ~regions.curved & (loops > 0)]] = True
    return np.flatnonzero(bad & skin.closed)


def _flat_areas(model: Model) -> Float64:
    """(r,) twice the area within the loops of each region, arcs sampled; meaningful for planes."""
    pieces = _pieces(model)
    left, right = edge_regions(model.outline)
    normal = model.regions.surfaces.axis
    first = np.empty(len(normal), np.intp)
    first[model.regions.region[::-1]] = model.skin.faces[::-1, 0]
    area = np.zeros(len(normal))
    for owner, sign in ((left[pieces.edge], 1.0), (right[pieces.edge], -1.0)):
        origin = model.skin.points[first[owner]]
        cross = np.cross(pieces.begin - origin, pieces.end - origin)
        area += sign * sum_by_label(owner, np.einsum("ij,ij->i", cross, normal[owner]), len(normal))
    return area


def _pieces(model: Model) -> _Pieces:
    """All edges in straight pieces, in the direction of their forward chains."""
    outline, curves = model.outline, model.curves
    chain = outline.edge_chain
    points = model.skin.points.copy()
    points[model.seams.corner] = model.seams.position
    start, stop = outline.start[chain], outline.stop[chain]
    begin, end = points[start], points[stop]
    size = np.ones(len(chain), np.intp)
    circle = curves.kind == Curve.CIRCLE
    out = normalize(begin - curves.centre)
    aside = np.cross(curves.axis, out)
    turn = np.arctan2(
        np.einsum("ij,ij->i", end - curves.centre, aside), np.einsum("ij,ij->i", end - curves.centre, out)
    )
    turn = np.where(start == stop, 2 * np.pi, np.mod(turn, 2 * np.pi))
    size[circle] = np.maximum(np.ceil(turn[circle] / _STEP_RAD), 1).astype(np.intp)
    spline = curves.kind == Curve.SPLINE
    size[spline] = np.diff(curves.spline_begin)[spline] - 1
    edge = np.repeat(np.arange(len(chain)), size)
    place = np.arange(len(edge)) - np.repeat(np.cumsum(size) - size, size)

    def at(step: IntIndex) -> Float64:
        angle = (turn / size)[edge] * step
        radius = curves.radius[edge]
        arc = curves.centre[edge] + (radius * np.cos(angle))[:, None] * out[edge]
        arc += (radius * np.sin(angle))[:, None] * aside[edge]
        where = np.where(circle[edge][:, None], arc, begin[edge])
        on_spline = spline[edge]
        where[on_spline] = curves.spline[curves.spline_begin[edge[on_spline]] + step[on_spline]]
        where = np.where((step == 0)[:, None], begin[edge], where)
        made: Float64 = np.where((step == size[edge])[:, None], end[edge], where)
        return made

    inner = len(points) + np.arange(len(edge))
    first = np.where(place == 0, start[edge], inner - 1)
    last = np.where(place == size[edge] - 1, stop[edge], inner)
    sagitta = np.where(circle[edge], curves.radius[edge] * (1 - np.cos((turn / size)[edge] / 2)), 0.0)
    return _Pieces(edge, at(place), at(place + 1), first, last, sagitta)


def _crossings(model: Model, pieces: _Pieces, left: IntIndex, right: IntIndex) -> tuple[IntIndex, IntIndex]:
    """Pairs of edges of flat faces with arcs that cross, by more than their samples are off."""
    surfaces = model.regions.surfaces
    bent = model.curves.kind != Curve.LINE
    arched = np.zeros(len(surfaces), np.bool_)
    arched[left[bent]] = arched[right[bent]] = True
    arched &= ~model.regions.curved
    face = np.concatenate([left[pieces.edge], right[pieces.edge]])
    row = np.tile(np.arange(len(pieces.edge)), 2)
    row, face = row[arched[face]], face[arched[face]]
    nothing = np.empty(0, np.intp)
    if len(row) == 0:
        return nothing, nothing
    u = perpendicular(surfaces.axis[face])
    v = np.cross(surfaces.axis[face], u)
    origin = surfaces.origin[face]
    a, b = (
        np.stack([np.einsum("ij,ij->i", at[row] - origin, axis) for axis in (u, v)], axis=1)
        for at in (pieces.begin, pieces.end)
    )
    low, high = np.minimum(a, b), np.maximum(a, b)
    # faces lie side by side along one axis, so that one sorted sweep does for all
    reach = 3 * float(np.abs(np.concatenate([a, b])).max())
    order = np.argsort(low[:, 0] + face * reach, kind="stable")
    a, b, low, high, row, face = a[order], b[order], low[order], high[order], row[order], face[order]
    shift = face * reach
    stop = np.searchsorted(low[:, 0] + shift, high[:, 0] + shift, side="right")
    size = stop - np.arange(len(row)) - 1
    if size.sum() > _MAX_PAIRS_COUNT:
        return nothing, nothing
    one = np.repeat(np.arange(len(row)), size)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(size) - size, size)
    near = (face[one] == face[other]) & (low[one, 1] <= high[other, 1]) & (low[other, 1] <= high[one, 1])
    for mine in (pieces.first, pieces.last):
        for its in (pieces.first, pieces.last):
            near &= mine[row[one]] != its[row[other]]
    one, other = one[near], other[near]
    limit = MIN_EDGE_MM + 2 * np.maximum(pieces.sagitta[row[one]], pieces.sagitta[row[other]])
    apart = _sides(a[one], b[one], a[other], b[other], limit) & _sides(a[other], b[other], a[one], b[one], limit)
    return pieces.edge[row[one[apart]]], pieces.edge[row[other[apart]]]


def _sides(a: Float64, b: Float64, c: Float64, d: Float64, limit: Float64) -> np.ndarray:
    """Whether c and d lie on different sides of the line through a and b, each by more than a limit."""
    along = b - a
    size = np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-300)
    of_c, of_d = ((along[:, 0] * (at[:, 1] - a[:, 1]) - along[:, 1] * (at[:, 0] - a[:, 0])) / size for at in (c, d))
    made: np.ndarray = (of_c * of_d < 0) & (np.minimum(np.abs(of_c), np.abs(of_d)) > limit)
    return made
