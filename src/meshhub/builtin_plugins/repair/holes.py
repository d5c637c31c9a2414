"""Closing holes: loops found, planar ones triangulated together in their plane, the others by least area."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub import topology
from meshhub.builtin_plugins.repair.planar import planar_patches
from meshhub.builtin_plugins.repair.surface import Surface
from meshhub.builtin_plugins.repair.triangulate import least_area
from meshhub.geometry import face_normals
from meshhub.scene import Float64
from meshhub.topology import Index

LONG = (128, 64, 32)
"""Longer loops are first cut into pieces of this length; the work for one grows with its cube, so that where
there is much of it the pieces are shorter."""

MUCH_WORK = 50_000_000

SHEET_SHARE = 0.8
"""A shell whose holes' patches have this share of its own area encloses nothing: it is a sheet."""

SHEET_MAJORITY = 0.75
"""A part with this share of its area in sheets is meant to be open; else its few sheets are closed too."""


class Loops(NamedTuple):
    """Holes, as the patch over each runs around it.

    point: points, loop by loop; source, beside: the vertex each shows, and the face on the other side
    begin: (l + 1,) where each loop begins
    """

    point: Index
    source: Index
    beside: Index
    begin: Index


class Patches(NamedTuple):
    """Triangles over loops: (t, 3) places in `Loops.point`, and the loop of each."""

    triangle: Index
    loop: Index


class Filled(NamedTuple):
    """A surface with its holes closed, and how many were; how many shells stay open on purpose."""

    surface: Surface
    holes: int
    sheets: int


def find_loops(surface: Surface, found: topology.Edges) -> Loops:
    """The holes of a surface whose points have one fan each."""
    half, begin = topology.boundary_loops(found.border(), surface.faces.ravel())
    # the patch runs against the faces: turn each loop around
    length = np.diff(begin)
    loop = np.repeat(np.arange(len(length)), length)
    half = half[begin[loop] + begin[loop + 1] - 1 - np.arange(len(half))]
    return Loops(surface.faces.ravel()[half], surface.source.ravel()[half], half // 3, begin)


def filled(surface: Surface) -> Filled:
    """The surface with its holes closed, sheets left open."""
    found = topology.edges(surface.faces)
    if not (found.size == 1).any():
        return Filled(surface, 0, 0)
    loops = find_loops(surface, found)
    patches = _patched(surface, found, loops)
    chosen, sheets = _worth_closing(surface, loops, patches)
    if not chosen.any():
        return Filled(surface, 0, sheets)
    patches = Patches(*(each[chosen[patches.loop]] for each in patches))
    surface = _joined(surface, loops, patches)
    closed = _with(surface, loops, patches)
    beside = loops.beside[patches.triangle]
    lone = (beside[:, 0] == beside[:, 1]) & (beside[:, 1] == beside[:, 2])  # the back of a single face
    doubled = lone | _doubled_edges(closed, len(surface.faces), patches)
    if doubled.any():
        awry = np.zeros(len(loops.begin) - 1, np.bool_)
        awry[patches.loop[doubled]] = True
        patches = Patches(*(each[~awry[patches.loop]] for each in patches))
        closed = _fanned(_with(surface, loops, patches), loops, np.flatnonzero(awry))
    return Filled(closed, int(chosen.sum()), sheets)


def _with(surface: Surface, loops: Loops, patches: Patches) -> Surface:
    corner = patches.triangle
    return surface.add(loops.point[corner], loops.source[corner], loops.beside[corner[:, 0]])


def _joined(surface: Surface, loops: Loops, patches: Patches) -> Surface:
    """The surface with one label for shells that a patch with several loops joins."""
    shell = surface.shell[loops.beside[patches.triangle]]
    if (shell == shell[:, :1]).all():
        return surface
    one, other = np.concatenate([shell[:, 0], shell[:, 0]]), np.concatenate([shell[:, 1], shell[:, 2]])
    label = topology.components(surface.shells, one, other)[1]
    return replace(surface, shell=label[surface.shell])


def _fanned(surface: Surface, loops: Loops, which: Index) -> Surface:
    """Loops closed around a new point in their middle: always possible, seldom fair."""
    begin, length = loops.begin[which], np.diff(loops.begin)[which]
    owner = np.repeat(np.arange(len(which)), length)
    offset = np.arange(len(owner)) - np.repeat(np.concatenate([[0], np.cumsum(length)[:-1]]), length)
    here = begin[owner] + offset
    after = begin[owner] + (offset + 1) % length[owner]
    middle = np.stack(
        [np.bincount(owner, surface.points[loops.point[here], axis]) / length for axis in range(3)], axis=1
    )
    tip = len(surface.points) + owner
    return replace(surface, points=np.concatenate([surface.points, middle])).add(
        np.stack([loops.point[here], loops.point[after], tip], axis=1),
        np.stack([loops.source[here], loops.source[after], loops.source[begin][owner]], axis=1),
        loops.beside[here],
    )


def _doubled_edges(closed: Surface, before: int, patches: Patches) -> NDArray[np.bool_]:
    """Which new triangles lie at an edge of more than two faces."""
    found = topology.edges(closed.faces)
    crowded = np.repeat(found.size > 2, found.size)
    face = found.order[crowded] // 3
    doubled = np.zeros(len(patches.loop), np.bool_)
    doubled[face[face >= before] - before] = True
    return doubled


def _patched(surface: Surface, found: topology.Edges, loops: Loops) -> Patches:
    length = np.diff(loops.begin)
    points = surface.points[loops.point]
    limit = next((size for size in LONG if float((np.minimum(length, size) ** 2.0 * length).sum()) < MUCH_WORK), 16)
    chords = _chords(surface, found, loops)
    free = np.ones(len(length), np.bool_)
    free[np.searchsorted(loops.begin, chords[:, 0], side="right") - 1] = False
    triangle, owner, done = planar_patches(points, loops.begin, free)
    made, owners = [triangle], [owner]
    pieces = [np.arange(loops.begin[at], loops.begin[at + 1]) for at in np.flatnonzero(~done & (length > limit))]
    lots = _in_pieces(pieces, limit)
    by_length: dict[int, list[Index]] = {}
    short = np.flatnonzero(~done & (length <= limit) & (length >= 3))
    for size in np.unique(length[short]):
        of_size = short[length[short] == size]
        by_length[int(size)] = [loops.begin[of_size][:, None] + np.arange(size)]
    for piece in lots:
        by_length.setdefault(len(piece), []).append(piece[None])
    loop_of = np.repeat(np.arange(len(length)), length)
    for size in sorted(by_length):
        places = np.concatenate(by_length[size])
        local, _ = least_area(points[places], _forbidden(places, chords))
        triangles = np.take_along_axis(places, local.reshape(len(places), -1), axis=1).reshape(-1, 3)
        made.append(triangles)
        owners.append(loop_of[triangles[:, 0]])
    return Patches(np.concatenate(made), np.concatenate(owners))


def _in_pieces(loops: list[Index], limit: int) -> list[Index]:
    """Long loops as a coarse loop of some of their points, and a loop for each stretch between two of those."""
    short: list[Index] = []
    while loops:
        pieces: list[Index] = []
        for loop in loops:
            stops = np.linspace(0, len(loop), limit + 1).astype(np.intp)
            pieces.append(loop[stops[:-1]])
            around = np.concatenate([loop, loop[:1]])
            pieces += [around[first : last + 1] for first, last in pairwise(stops) if last - first > 1]
        short += [piece for piece in pieces if len(piece) <= limit]
        loops = [piece for piece in pieces if len(piece) > limit]
    return short


def _chords(surface: Surface, found: topology.Edges, loops: Loops) -> Index:
    """(k, 2) places of loops that an edge of the mesh joins already, across its hole: no patch may use it again."""
    begin, end = topology.half_edges(surface.faces)
    half = found.order[found.start[found.size == 2]]
    place = np.full(len(surface.points), -1, np.intp)
    place[loops.point] = np.arange(len(loops.point))
    one, other = place[begin[half]], place[end[half]]
    both = (one >= 0) & (other >= 0)
    one, other = one[both], other[both]
    loop = np.searchsorted(loops.begin, np.arange(len(loops.point)), side="right")
    same = loop[one] == loop[other]
    return np.stack([one[same], other[same]], axis=1)


def _forbidden(places: Index, chords: Index) -> NDArray[np.bool_]:
    """The chords as a (b, n, n) mask over loops given by their places (b, n)."""
    lots, size = places.shape
    forbidden = np.zeros((lots, size, size), np.bool_)
    if len(chords) == 0 or size < 4:
        return forbidden
    flat = places.ravel()
    order = np.argsort(flat, kind="stable")
    for one, other in (chords.T, chords.T[::-1]):
        # a place is in several pieces of a long loop at most where two of them meet
        at, near = np.searchsorted(flat[order], one), np.searchsorted(flat[order], other)
        at, near = order[np.minimum(at, len(flat) - 1)], order[np.minimum(near, len(flat) - 1)]
        hit = (flat[at] == one) & (flat[near] == other) & (at // size == near // size)
        forbidden[at[hit] // size, at[hit] % size, near[hit] % size] = True
    return forbidden


def _worth_closing(surface: Surface, loops: Loops, patches: Patches) -> tuple[NDArray[np.bool_], int]:
    """Which loops to close, and how many shells stay open because they are sheets.

    Decided by area: where the patches over a shell's holes are as large as the shell, nothing is enclosed.
    """
    count, label = surface.shells, surface.shell
    areas = np.linalg.norm(face_normals(surface.points, surface.faces), axis=1)
    own = np.bincount(label, areas, minlength=count)
    shell = label[loops.beside[loops.begin[:-1]]]
    corners: Float64 = surface.points[loops.point[patches.triangle]]
    lids = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    lid = np.bincount(label[loops.beside[patches.triangle[:, 0]]], lids, minlength=count)
    sheet = lid > SHEET_SHARE * own
    sheet[own == 0] = False
    if own[sheet].sum() <= SHEET_MAJORITY * own.sum():
        sheet[:] = False
    return ~sheet[shell], int(sheet.sum())
