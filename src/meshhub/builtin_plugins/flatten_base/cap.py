"""Closing a cut: the rim's loops, and the triangles between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import manifold3d
import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.flatten_base.cut import Opened, Plane
from meshhub.geometry import IntIndex, weld, welded
from meshhub.scene import Float64, Int32, Mesh
from meshhub.topology import components, cycles, shells


class Capped(NamedTuple):
    """A mesh whose cut is closed.

    loops:    how many rims were closed
    open:     how many edges of the cut belong to no closed rim
    area:     of the base
    """

    mesh: Mesh
    loops: int
    open: int
    area: float


def capped(cut: Opened, plane: Plane) -> Capped:
    """The mesh with its cut closed, seen from below counter-clockwise."""
    mesh = cut.mesh
    if len(cut.edges) == 0:
        return Capped(mesh, 0, 0, 0.0)
    # the cap runs along the rim the other way
    rows, ends = np.unique(cut.edges[:, ::-1].ravel(), return_inverse=True)
    first, index = weld(mesh.vertices[rows])
    edges = index[ends].reshape(-1, 2)
    row = rows[first]
    # seen from below x and y change places, and all areas are positive
    flat = mesh.vertices[row][:, [1, 0]]
    members, begin = _loops(edges, flat)
    closed = len(members)
    if closed == 0:
        return Capped(mesh, 0, len(edges), 0.0)
    corners = edges[members, 0]
    triangles = _triangles(flat[corners], begin, cut, members, plane)
    if len(triangles) == 0:
        return Capped(mesh, 0, len(edges), 0.0)
    material = None
    if mesh.face_material is not None:
        material = _material(triangles, mesh.face_material[cut.faces[members]], begin)
    faces = corners[triangles]
    area = float(_areas(flat, faces).sum())
    return Capped(_joined(mesh, row, faces, material), len(begin) - 1, len(edges) - closed, area)


def _loops(edges: Int32, flat: Float64) -> tuple[IntIndex, IntIndex]:
    """The closed loops of directed edges, which touch each other at most: members, and where each loop begins.

    Where several loops meet in a point, an edge that arrives goes on with the next one clockwise, which
    keeps what is to the left of both together.
    """
    count = len(edges)
    at = np.concatenate([edges[:, 1], edges[:, 0]])
    away = np.concatenate([edges[:, 0], edges[:, 1]])
    leaves = np.arange(2 * count) >= count
    step = flat[away] - flat[at]
    order = np.lexsort((leaves, np.arctan2(step[:, 1], step[:, 0]), at))
    point, out = at[order], leaves[order]
    start = np.flatnonzero(np.concatenate([[True], point[1:] != point[:-1]]))
    size = np.diff(start, append=len(point))
    last = np.repeat(start + size - 1, size)
    before = np.arange(2 * count) - 1
    before[start] = last[start]
    after = np.full(count, -1, np.intp)
    fits = np.flatnonzero(~out & out[before])
    after[order[fits]] = order[before[fits]] - count
    # what is left over, in rims that run wrongly, is paired as it comes
    taken = np.zeros(2 * count, np.bool_)
    taken[fits] = taken[before[fits]] = True
    arriving, leaving = np.flatnonzero(~taken & ~out), np.flatnonzero(~taken & out)
    one, other = _paired(point[arriving], point[leaving])
    after[order[arriving[one]]] = order[leaving[other]] - count

    linked = np.flatnonzero(after >= 0)
    number, label = components(count, linked, after[linked])
    ended = np.zeros(number, np.bool_)
    ended[label[after < 0]] = True
    closed = np.flatnonzero(~ended[label])
    renumbered = np.full(count, -1, np.intp)
    renumbered[closed] = np.arange(len(closed))
    members, begin = cycles(renumbered[after[closed]])
    members = closed[members]
    # two edges there and back enclose nothing
    length = np.diff(begin)
    kept = length > 2
    return members[np.repeat(kept, length)], np.concatenate([[0], np.cumsum(length[kept])])


def _paired(one: IntIndex, other: IntIndex) -> tuple[IntIndex, IntIndex]:
    """Places in two ascending lists that hold the same value, each used once."""

    def rank_of(values: IntIndex) -> IntIndex:
        start = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if len(values) else values
        rank: IntIndex = np.arange(len(values)) - np.repeat(start, np.diff(start, append=len(values)))
        return rank

    rank, other_rank = rank_of(one), rank_of(other)
    width = int(max(rank.max(initial=0), other_rank.max(initial=0))) + 1
    _, places, other_places = np.intersect1d(
        one * width + rank, other * width + other_rank, assume_unique=True, return_indices=True
    )
    return places, other_places


def _areas(flat: Float64, faces: Int32) -> Float64:
    a, b, c = (flat[faces[:, corner]] for corner in range(3))
    return ((b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])) / 2


def _triangles(corners: Float64, begin: IntIndex, cut: Opened, members: IntIndex, plane: Plane) -> Int32:
    """Triangles over the loops' corners: all loops together or, where bodies overlap, each body by itself."""
    together = _clipped(corners, begin, np.arange(len(begin) - 1))
    sides = np.ptp(corners[together], axis=1).sum(axis=1)
    if (_areas(corners, together) >= -plane.grid * sides).all():
        return together
    group = _bodies(corners, begin, cut, members)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(group[order]) != 0]))
    return np.concatenate([_clipped(corners, begin, loops) for loops in np.split(order, starts[1:])])


def _clipped(corners: Float64, begin: IntIndex, loops: IntIndex) -> Int32:
    """The triangles of some of the loops."""
    polygons = [corners[begin[loop] : begin[loop + 1]] for loop in loops]
    made = np.asarray(manifold3d.triangulate(polygons, 0.0), np.int32).reshape(-1, 3)
    own = np.concatenate([np.arange(begin[loop], begin[loop + 1], dtype=np.int32) for loop in loops])
    return own[made]


def _bodies(corners: Float64, begin: IntIndex, cut: Opened, members: IntIndex) -> IntIndex:
    """The body that each loop belongs to: its shell, or for a cavity the shell of the narrowest loop around it."""
    _, faces = welded(cut.mesh)
    _, shell = shells(faces)
    own = shell[cut.faces[members[begin[:-1]]]].astype(np.intp)
    following = np.arange(len(corners)) + 1
    following[begin[1:] - 1] = begin[:-1]
    crossed = corners[:, 0] * corners[following, 1] - corners[:, 1] * corners[following, 0]
    area = np.add.reduceat(crossed, begin[:-1]) / 2
    total = np.bincount(own, area)
    outer = np.flatnonzero(area > 0)
    outer = outer[np.argsort(area[outer], kind="stable")]
    body = own.copy()
    for loop in np.flatnonzero(total[own] < 0):
        point = corners[begin[loop]]
        for around in outer[own[outer] != own[loop]]:
            if _holds(corners[begin[around] : begin[around + 1]], point):
                body[loop] = own[around]
                break
    return body


def _holds(polygon: Float64, point: Float64) -> bool:
    """Whether a point is inside a polygon: an odd number of sides is crossed by a ray."""
    after = np.roll(polygon, -1, axis=0)
    spans = (polygon[:, 1] > point[1]) != (after[:, 1] > point[1])
    one, other = polygon[spans], after[spans]
    crossing = one[:, 0] + (point[1] - one[:, 1]) / (other[:, 1] - one[:, 1]) * (other[:, 0] - one[:, 0])
    return bool((crossing > point[0]).sum() % 2)


def _material(triangles: Int32, beside: Int32, begin: IntIndex) -> Int32:
    """The material of each triangle: what most of the rim of its piece of the base shows.

    beside: the material above each corner's edge.
    """
    length = np.diff(begin)
    loop = np.repeat(np.arange(len(length)), length)
    joined = loop[triangles]
    count, piece = components(
        len(length), np.concatenate([joined[:, 0], joined[:, 1]]), np.concatenate([joined[:, 1], joined[:, 2]])
    )
    kinds, kind = np.unique(beside, return_inverse=True)
    votes = np.bincount(piece[loop] * len(kinds) + kind, minlength=count * len(kinds)).reshape(count, len(kinds))
    chosen: Int32 = kinds[votes.argmax(axis=1)][piece[joined[:, 0]]]
    return chosen


def _joined(mesh: Mesh, row: NDArray[Any], faces: NDArray[Any], material: Int32 | None) -> Mesh:
    """The mesh with its cap: of the rim's own vertices, or of copies of them where they have normals."""
    if mesh.normals is None:
        base: NDArray[Any] = row[faces]
    else:
        base = faces + len(mesh.vertices)
        down = np.tile(np.array([0, 0, -1], np.float32), (len(row), 1))
        mesh = replace(
            mesh,
            vertices=np.concatenate([mesh.vertices, mesh.vertices[row]]),
            normals=np.concatenate([mesh.normals, down]),
            uv=None if mesh.uv is None else np.concatenate([mesh.uv, mesh.uv[row]]),
            colors=None if mesh.colors is None else np.concatenate([mesh.colors, mesh.colors[row]]),
        )
    return replace(
        mesh,
        faces=np.concatenate([mesh.faces, base]),
        face_material=None
        if mesh.face_material is None or material is None
        else np.concatenate([mesh.face_material, material]),
    )
