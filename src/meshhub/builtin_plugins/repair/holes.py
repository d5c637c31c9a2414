"""Closing of holes: planar holes are triangulated in their plane, others with the least area."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.loops import Loops, Patches, find_loops
from meshhub.builtin_plugins.repair.planar import split_at_folds, triangulate_planar
from meshhub.builtin_plugins.repair.sheet_shells import find_sheets
from meshhub.builtin_plugins.repair.triangulate import triangulate_least_area
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.model.scene import Float64
from meshhub.toolkit import topology
from meshhub.toolkit.topology import Index

MAX_LOOP_LENGTHS = (128, 64, 32, 16)
"""Edges; longer loops are split first. The first length whose work is below MAX_WORK applies, otherwise the last."""

MIN_FOLDED_LENGTH, MAX_FOLDED_COUNT = 5, 16
"""Edges up to which a loop has no two flat parts, and longest loops that are searched for these; bounds the time."""

MAX_WORK = 50_000_000
"""Sum of length squared, as limited, times length over all loops; the triangulation takes cubic time per loop."""


class FilledMesh(NamedTuple):
    """Mesh with closed holes, the number of holes closed, and the number of sheets that stay open on purpose."""

    surface: WeldedMesh
    holes: int
    sheets: int


def fill_holes(surface: WeldedMesh) -> FilledMesh:
    """Close the holes of a mesh whose points have one fan each; leave sheets open."""
    mesh_edges = topology.edges(surface.faces)
    if not (mesh_edges.size == 1).any():
        return FilledMesh(surface, 0, 0)
    loops = find_loops(surface, mesh_edges)
    patches = _triangulate_loops(surface, mesh_edges, loops)
    is_sheet = find_sheets(surface, loops, patches)
    chosen, sheets = ~is_sheet[surface.shell[loops.neighbor[loops.begin[:-1]]]], int(is_sheet.sum())
    if not chosen.any():
        return FilledMesh(surface, 0, sheets)
    patches = Patches(*(values[chosen[patches.loop]] for values in patches))
    surface = _join_shells(surface, loops, patches)
    closed = _add_patches(surface, loops, patches)
    neighbor = loops.neighbor[patches.triangle]
    is_back = (neighbor[:, 0] == neighbor[:, 1]) & (neighbor[:, 1] == neighbor[:, 2])  # the back of a single face
    is_bad = is_back | _is_at_crowded_edge(closed, len(surface.faces), patches)
    if is_bad.any():
        needs_fan = np.zeros(len(loops.begin) - 1, np.bool_)
        needs_fan[patches.loop[is_bad]] = True
        patches = Patches(*(values[~needs_fan[patches.loop]] for values in patches))
        closed = _close_with_fans(_add_patches(surface, loops, patches), loops, np.flatnonzero(needs_fan))
    return FilledMesh(closed, int(chosen.sum()), sheets)


def _add_patches(surface: WeldedMesh, loops: Loops, patches: Patches) -> WeldedMesh:
    corner = patches.triangle
    corner = _begin_near_center(corner, surface.points[loops.point[corner]])
    return surface.add_faces(loops.point[corner], loops.source[corner], loops.neighbor[corner[:, 0]])


def _begin_near_center(corner: Index, points: Float64) -> Index:
    """Rotate the corners (m, 3) of faces so that the one nearest to the center is first; its color suits the face."""
    start = np.square(points - points.mean(axis=1, keepdims=True)).sum(axis=2).argmin(axis=1)
    rotated: Index = np.take_along_axis(corner, (start[:, None] + np.arange(3)) % 3, axis=1)
    return rotated


def _join_shells(surface: WeldedMesh, loops: Loops, patches: Patches) -> WeldedMesh:
    """Give shells the same label that a patch over several loops connects."""
    shell = surface.shell[loops.neighbor[patches.triangle]]
    if (shell == shell[:, :1]).all():
        return surface
    shell_a, shell_b = np.concatenate([shell[:, 0], shell[:, 0]]), np.concatenate([shell[:, 1], shell[:, 2]])
    label = topology.components(surface.shell_count, shell_a, shell_b)[1]
    return replace(surface, shell=label[surface.shell])


def _close_with_fans(surface: WeldedMesh, loops: Loops, which: Index) -> WeldedMesh:
    """Close loops with fans around a new point in their center: always manifold, but poorly shaped."""
    begin, length = loops.begin[which], np.diff(loops.begin)[which]
    owner = np.repeat(np.arange(len(which)), length)
    offset = np.arange(len(owner)) - np.repeat(np.concatenate([[0], np.cumsum(length)[:-1]]), length)
    here = begin[owner] + offset
    after = begin[owner] + (offset + 1) % length[owner]
    center = np.stack(
        [np.bincount(owner, surface.points[loops.point[here], axis]) / length for axis in range(3)], axis=1
    )
    center_point = len(surface.points) + owner
    return replace(surface, points=np.concatenate([surface.points, center])).add_faces(
        np.stack([loops.point[here], loops.point[after], center_point], axis=1),
        np.stack([loops.source[here], loops.source[after], loops.source[begin][owner]], axis=1),
        loops.neighbor[here],
    )


def _is_at_crowded_edge(closed: WeldedMesh, before: int, patches: Patches) -> NDArray[np.bool_]:
    """Return which new triangles, from face `before` on, are at an edge on more than two faces."""
    mesh_edges = topology.edges(closed.faces)
    is_crowded = np.repeat(mesh_edges.size > 2, mesh_edges.size)
    face = mesh_edges.order[is_crowded] // 3
    result = np.zeros(len(patches.loop), np.bool_)
    result[face[face >= before] - before] = True
    return result


def _triangulate_loops(surface: WeldedMesh, mesh_edges: topology.Edges, loops: Loops) -> Patches:
    length = np.diff(loops.begin)
    points = surface.points[loops.point]
    limit = _choose_length_limit(length)
    chords = _find_chords(surface, mesh_edges, loops)
    is_free = np.ones(len(length), np.bool_)
    is_free[np.searchsorted(loops.begin, chords[:, 0], side="right") - 1] = False
    triangle, owner, done = triangulate_planar(points, loops.begin, is_free)
    all_triangles, owners = [triangle], [owner]
    by_length: dict[int, list[Index]] = {}
    for part in _split_at_folds(points, loops, chords, done, limit):
        by_length.setdefault(len(part), []).append(part[None])
    short = np.flatnonzero(~done & (length <= limit) & (length >= 3))
    for size in np.unique(length[short]):
        of_size = short[length[short] == size]
        by_length.setdefault(int(size), []).append(loops.begin[of_size][:, None] + np.arange(size))
    long_loops = np.flatnonzero(~done & (length > limit))
    for part in _split_loops([np.arange(loops.begin[loop], loops.begin[loop + 1]) for loop in long_loops], limit):
        by_length.setdefault(len(part), []).append(part[None])
    loop_of = np.repeat(np.arange(len(length)), length)
    for size in sorted(by_length):
        places = np.concatenate(by_length[size])
        local, _ = triangulate_least_area(points[places], _mask_chords(places, chords))
        triangles = np.take_along_axis(places, local.reshape(len(places), -1), axis=1).reshape(-1, 3)
        all_triangles.append(triangles)
        owners.append(loop_of[triangles[:, 0]])
    return Patches(np.concatenate(all_triangles), np.concatenate(owners))


def _split_at_folds(points: Float64, loops: Loops, chords: Index, done: NDArray[np.bool_], limit: int) -> list[Index]:
    """Divide the longest loops in several planes into flat ones, and mark them as done."""
    length = np.diff(loops.begin)
    parts: list[Index] = []
    open_loops = np.flatnonzero(~done & (length > MIN_FOLDED_LENGTH))
    for loop in open_loops[np.argsort(-length[open_loops], kind="stable")][:MAX_FOLDED_COUNT].tolist():
        begin, end = loops.begin[loop], loops.begin[loop + 1]
        own = np.sort(chords[(chords[:, 0] >= begin) & (chords[:, 0] < end)] - begin, axis=1)
        split = split_at_folds(points[begin:end], set(map(tuple, own.tolist())))
        if split and max(map(len, split)) <= limit:
            parts += [begin + part for part in split]
            done[loop] = True
    return parts


def _choose_length_limit(length: Index) -> int:
    """Return the length above which loops are split, so that the work stays bounded."""
    for limit in MAX_LOOP_LENGTHS[:-1]:
        if float((np.minimum(length, limit) ** 2.0 * length).sum()) < MAX_WORK:
            return limit
    return MAX_LOOP_LENGTHS[-1]


def _split_loops(loops: list[Index], limit: int) -> list[Index]:
    """Split long loops: a coarse loop through some of the points, and a loop for each stretch between two of them."""
    short: list[Index] = []
    while loops:
        parts: list[Index] = []
        for loop in loops:
            stops = np.linspace(0, len(loop), limit + 1).astype(np.intp)
            parts.append(loop[stops[:-1]])
            around = np.concatenate([loop, loop[:1]])
            parts += [around[first : last + 1] for first, last in pairwise(stops) if last - first > 1]
        short += [part for part in parts if len(part) <= limit]
        loops = [part for part in parts if len(part) > limit]
    return short


def _find_chords(surface: WeldedMesh, mesh_edges: topology.Edges, loops: Loops) -> Index:
    """Return pairs of positions in `Loops.point` (k, 2) that a mesh edge already connects; patches must not add it."""
    begin, end = topology.half_edges(surface.faces)
    half = mesh_edges.order[mesh_edges.start[mesh_edges.size == 2]]
    place = np.full(len(surface.points), -1, np.intp)
    place[loops.point] = np.arange(len(loops.point))
    place_a, place_b = place[begin[half]], place[end[half]]
    on_loops = (place_a >= 0) & (place_b >= 0)
    place_a, place_b = place_a[on_loops], place_b[on_loops]
    loop = np.searchsorted(loops.begin, np.arange(len(loops.point)), side="right")
    same = loop[place_a] == loop[place_b]
    return np.stack([place_a[same], place_b[same]], axis=1)


def _mask_chords(places: Index, chords: Index) -> NDArray[np.bool_]:
    """Return the chords as a (b, n, n) mask over loops with positions (b, n)."""
    count, size = places.shape
    forbidden = np.zeros((count, size, size), np.bool_)
    if len(chords) == 0 or size < 4:
        return forbidden
    flat = places.ravel()
    order = np.argsort(flat, kind="stable")
    for place_a, place_b in (chords.T, chords.T[::-1]):
        # a position is in several parts of a long loop only where two of them meet
        at, near = np.searchsorted(flat[order], place_a), np.searchsorted(flat[order], place_b)
        at, near = order[np.minimum(at, len(flat) - 1)], order[np.minimum(near, len(flat) - 1)]
        hit = (flat[at] == place_a) & (flat[near] == place_b) & (at // size == near // size)
        forbidden[at[hit] // size, at[hit] % size, near[hit] % size] = True
    return forbidden
