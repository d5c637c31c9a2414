"""Taking apart what touches itself: points of several fans, edges of several pairs, copies at one position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub import topology
from meshhub.builtin_plugins.repair.pairing import paired
from meshhub.builtin_plugins.repair.surface import Surface, point_normals, rounded
from meshhub.geometry import weld
from meshhub.scene import Float64
from meshhub.topology import Index

HAIR = 2e-6
"""How far copies of a point are moved apart, as a share of the part's diagonal."""

FLOAT_STEPS = 8
"""And at least so many steps of float32 at the part's furthest placed coordinate."""

_ROUNDS = 8


def split_points(surface: Surface, one: Index, other: Index) -> tuple[Surface, int]:
    """The surface with a point for each fan, given the partners, and how many points are new."""
    torn = np.zeros(len(surface.points), np.bool_)
    torn[topology.torn_points(surface.faces, one, other)] = True
    a, b, c = surface.faces.T
    face = np.flatnonzero(torn[a] | torn[b] | torn[c])
    if len(face) == 0:
        return surface, 0
    name = np.full(len(surface.faces), -1, np.intp)
    name[face] = np.arange(len(face))
    near = (name[one // 3] >= 0) & (name[other // 3] >= 0)
    one, other = (name[half // 3] * 3 + half % 3 for half in (one[near], other[near]))
    local = surface.faces[face]
    count, label = topology.fans(local, one, other)
    point = local.ravel()[topology.first_members(label, count)]
    # at the rim of these faces fans are cut short, but not those of the points in question
    seen = np.full(len(surface.points), -1, np.intp)
    seen[point[::-1]] = np.arange(count - 1, -1, -1)
    copies = np.flatnonzero((seen[point] != np.arange(count)) & torn[point])
    if len(copies) == 0:
        return surface, 0
    named = point.astype(np.int32)
    named[copies] = len(surface.points) + np.arange(len(copies), dtype=np.int32)
    faces = surface.faces.copy()
    faces[face] = named[label].reshape(-1, 3)
    return (
        replace(surface, points=np.concatenate([surface.points, surface.points[point[copies]]]), faces=faces),
        len(copies),
    )


def split_edges(surface: Surface) -> tuple[Surface, int]:
    """The surface with every edge on two faces at most, where its points are split already; how many edges were cut.

    Two pairs of faces between the same two points cannot be told apart by points; one pair gets a point
    in the middle. A face takes part once a round.
    """
    cut = 0
    for _ in range(_ROUNDS):
        found = topology.edges(surface.faces)
        if (found.size <= 2).all():
            break
        one, other = paired(surface.points, surface.faces, found)
        partner = np.full(3 * len(surface.faces), -1, np.intp)
        partner[one], partner[other] = other, one
        crowded = found.start[found.size > 2]
        first = found.order[crowded]
        half, mate = _free(first, partner[first], len(surface.faces))
        surface = _halved(surface, half, mate)
        cut += len(half)
        one, other = paired(surface.points, surface.faces, topology.edges(surface.faces))
        surface, _ = split_points(surface, one, other)
    return surface, cut


def _free(half: Index, mate: Index, faces: int) -> tuple[Index, Index]:
    """Those of the pairs whose faces no earlier pair has, each against its first rival only."""
    users = np.concatenate([half // 3, np.where(mate >= 0, mate // 3, half // 3)])
    owner = np.tile(np.arange(len(half)), 2)
    first = np.full(faces, len(half), np.intp)
    np.minimum.at(first, users, owner)
    mine = (first[users] == owner).reshape(2, -1).all(axis=0)
    return half[mine], mate[mine]


def _halved(surface: Surface, half: Index, mate: Index) -> Surface:
    """The surface with a new point in the middle of each edge, for one pair of its faces."""
    begin, end = (each[half] for each in topology.half_edges(surface.faces))
    middle = len(surface.points) + np.arange(len(half), dtype=np.int32)
    surface = replace(
        surface, points=np.concatenate([surface.points, (surface.points[begin] + surface.points[end]) / 2])
    )
    has = mate >= 0
    at, middle = np.concatenate([half, mate[has]]), np.concatenate([middle, middle[has]])
    faces, source = surface.faces.copy(), surface.source.copy()
    face, ahead = at // 3, topology.following(at)
    back = topology.preceding(at)
    new = np.stack([middle, faces.ravel()[ahead], faces.ravel()[back]], axis=1)
    shown = np.stack([source.ravel()[at], source.ravel()[ahead], source.ravel()[back]], axis=1)
    faces.ravel()[ahead] = middle
    source.ravel()[ahead] = source.ravel()[at]
    grown = replace(surface, faces=faces, source=source).add(new, shown, face)
    grown.own[-len(new) :] = surface.own[face]
    return grown


def apart(surface: Surface, reach: float) -> tuple[Surface, int]:
    """The surface with points that share a position moved apart by a hair, each into its own fan; how many moved.

    Else a file that stores positions alone would join them again when it is read. reach: the furthest coordinate
    of any placed instance, in the mesh's own units.
    """
    moved = 0
    diagonal = float(np.linalg.norm(np.ptp(surface.points, axis=0)))
    hair = max(HAIR * diagonal, FLOAT_STEPS * float(np.spacing(np.float32(reach))))
    points = surface.points
    for attempt in range(_ROUNDS):
        first, index = weld(rounded(points))
        if len(first) == len(points):
            break
        shared = np.flatnonzero(np.bincount(index, minlength=len(first))[index] > 1)
        normal = _directions(surface, shared)
        if moved == 0:
            moved = len(shared)
        points = points.copy()
        points[shared] -= normal * (hair * (1 + _ranks(index[shared]) + 0.7 * attempt))[:, None]
    return (replace(surface, points=points), moved) if moved else (surface, 0)


def _directions(surface: Surface, shared: Index) -> Float64:
    """Outward at the shared points; where the faces cancel out, any direction will do."""
    wanted = np.zeros(len(surface.points), np.bool_)
    wanted[shared] = True
    near = wanted[surface.faces].any(axis=1)
    normal = point_normals(surface.points, surface.faces[near])[shared]
    normal[~normal.any(axis=1)] = (0, 0, 1)
    return normal


def _ranks(index: NDArray[np.int32]) -> NDArray[np.intp]:
    """The how-manieth of its group each member is."""
    order = np.argsort(index, kind="stable")
    begins = np.concatenate([[True], index[order][1:] != index[order][:-1]])
    place = np.arange(len(index))
    ranks = np.empty(len(index), np.intp)
    ranks[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    return ranks
