"""Closing of holes: planar holes are triangulated in their plane, others with the least area."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.planar import triangulate_planar
from meshhub.builtin_plugins.repair.triangulate import triangulate_least_area
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.model.scene import Float64
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import face_normals, unit_vectors
from meshhub.toolkit.topology import Index

MAX_LOOP_LENGTHS = (128, 64, 32, 16)
"""Edges; longer loops are split first. The first length whose work is below MAX_WORK applies, otherwise the last."""

MAX_WORK = 50_000_000
"""Sum of length squared, as limited, times length over all loops; the triangulation takes cubic time per loop."""

MIN_SHEET_RATIO = 0.8
"""Area of the patches per area of the shell; a shell with larger patches encloses nothing: it is a sheet."""

MIN_HEIGHT_FIELD_RATIO = 0.5
"""As `MIN_SHEET_RATIO`, for a height field: slopes of 60° on average."""

MIN_RELIEF_FACES = 32
"""Faces of a height field; with fewer, ridges and valleys are those of a box with a notch."""

MIN_PROJECTION_RATIO = 0.98
"""Area of a shell's projection per area of its projected faces; a lower one means that faces overlap in the plane."""

MAX_HOLE_EXTENT_RATIO = 0.25
"""Size of a hole in a height field per size of its rim; with a larger one, it is a band around something."""

MIN_BEND_RATIO = 0.25
"""Share of ridges, and of valleys, in the bends of a relief; a dome has only ridges."""

MIN_SHEET_MAJORITY_RATIO = 0.75
"""Area of sheets per area of the part; a part with more is open on purpose, otherwise its sheets are closed too."""


class Loops(NamedTuple):
    """Boundary loops of holes, in the direction of the patches that close them.

    point:    (n,) points, loop by loop
    source:   (n,) vertex of the original mesh at each point
    neighbor: (n,) face on the other side of the edge that starts at each point
    begin:    (l + 1,) position where each loop begins
    """

    point: Index
    source: Index
    neighbor: Index
    begin: Index


class Patches(NamedTuple):
    """Triangles that close loops: (t, 3) positions in `Loops.point`, and the (t,) loop of each triangle."""

    triangle: Index
    loop: Index


class FilledMesh(NamedTuple):
    """Mesh with closed holes, the number of holes closed, and the number of sheets that stay open on purpose."""

    surface: WeldedMesh
    holes: int
    sheets: int


def find_loops(surface: WeldedMesh, mesh_edges: topology.Edges) -> Loops:
    """Find the boundary loops of a mesh whose points have one fan each."""
    half, begin = topology.boundary_loops(mesh_edges.border(), surface.faces.ravel())
    # patches have the opposite direction: reverse each loop
    length = np.diff(begin)
    loop = np.repeat(np.arange(len(length)), length)
    half = half[begin[loop] + begin[loop + 1] - 1 - np.arange(len(half))]
    return Loops(surface.faces.ravel()[half], surface.source.ravel()[half], half // 3, begin)


def fill_holes(surface: WeldedMesh) -> FilledMesh:
    """Close the holes of a mesh whose points have one fan each; leave sheets open."""
    mesh_edges = topology.edges(surface.faces)
    if not (mesh_edges.size == 1).any():
        return FilledMesh(surface, 0, 0)
    loops = find_loops(surface, mesh_edges)
    patches = _triangulate_loops(surface, mesh_edges, loops)
    chosen, sheets = _choose_loops(surface, loops, patches)
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
    short = np.flatnonzero(~done & (length <= limit) & (length >= 3))
    for size in np.unique(length[short]):
        of_size = short[length[short] == size]
        by_length[int(size)] = [loops.begin[of_size][:, None] + np.arange(size)]
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


def _choose_loops(surface: WeldedMesh, loops: Loops, patches: Patches) -> tuple[NDArray[np.bool_], int]:
    """Return which loops to close, and the number of shells that stay open because they are sheets.

    A shell encloses nothing if its patches are as large as the shell itself. A height field over a free rim encloses
    nothing either; its patches are smaller than the shell, because its slopes are steep.
    """
    count, label = surface.shell_count, surface.shell
    normal = face_normals(surface.points, surface.faces)
    own_area = np.bincount(label, np.linalg.norm(normal, axis=1), minlength=count)
    shell = label[loops.neighbor[loops.begin[:-1]]]
    corners: Float64 = surface.points[loops.point[patches.triangle]]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    patch_area = np.bincount(label[loops.neighbor[patches.triangle[:, 0]]], areas, minlength=count)
    is_sheet = patch_area > MIN_SHEET_RATIO * own_area
    for candidate in np.flatnonzero(~is_sheet & (patch_area > MIN_HEIGHT_FIELD_RATIO * own_area)).tolist():
        is_sheet[candidate] = _is_height_field(surface, loops, np.flatnonzero(shell == candidate), normal)
    is_sheet[own_area == 0] = False
    if own_area[is_sheet].sum() <= MIN_SHEET_MAJORITY_RATIO * own_area.sum():
        is_sheet[:] = False
    return ~is_sheet[shell], int(is_sheet.sum())


def _is_height_field(surface: WeldedMesh, loops: Loops, which: Index, normal: Float64) -> bool:
    """Return whether a shell is a relief over a plane: seen from one side without overlap, with one large border.

    A dome, a bowl and half a box also look like this, but they curve one way only.

    Args:
        which: Loops of the shell.
        normal: (m, 3) normals of all faces, as long as their areas.
    """
    chosen = surface.shell == surface.shell[loops.neighbor[loops.begin[which[0]]]]
    if chosen.sum() < MIN_RELIEF_FACES:
        return False
    total = normal[chosen].sum(axis=0)
    length = float(np.linalg.norm(total))
    if length < MIN_PROJECTION_RATIO * np.abs(normal[chosen] @ total / max(length, 1e-300)).sum():
        return False
    extents = np.array(
        [
            np.linalg.norm(np.ptp(surface.points[loops.point[loops.begin[loop] : loops.begin[loop + 1]]], axis=0))
            for loop in which
        ]
    )
    rim = int(extents.argmax())
    if (np.delete(extents, rim) > MAX_HOLE_EXTENT_RATIO * extents[rim]).any():
        return False
    return _curves_both_ways(surface, chosen, normal)


def _curves_both_ways(surface: WeldedMesh, chosen: NDArray[np.bool_], normal: Float64) -> bool:
    """Return whether both ridges and valleys are a large share of a shell's bends."""
    half_a, half_b = topology.edges(surface.faces).pairs()
    kept = chosen[half_a // 3]
    half_a, half_b = half_a[kept], half_b[kept]
    begin, end = (points[half_a] for points in topology.half_edges(surface.faces))
    unit = unit_vectors(normal)
    across = surface.points[surface.faces.ravel()[topology.preceding(half_b)]] - surface.points[begin]
    sine = np.linalg.norm(np.cross(unit[half_a // 3], unit[half_b // 3]), axis=1)
    bend = sine * np.linalg.norm(surface.points[end] - surface.points[begin], axis=1)
    is_valley = np.einsum("ij,ij->i", across, unit[half_a // 3]) > 0
    share = float(bend[is_valley].sum()) / max(float(bend.sum()), 1e-300)
    return MIN_BEND_RATIO < share < 1 - MIN_BEND_RATIO
