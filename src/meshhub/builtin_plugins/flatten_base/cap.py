"""Cap a cut: chain the section edges into loops, and triangulate between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import manifold3d
import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.flatten_base.cut import CutMesh, Plane
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.colors import has_color_seam
from meshhub.toolkit.geometry import IntIndex, weld, welded
from meshhub.toolkit.patches import divide_patches
from meshhub.toolkit.topology import components, cycles, shells

MIN_SEAM_WIDTH = 1e-4
"""Difference of texture coordinates at one point that counts as a seam; it is above the noise of interpolation."""


class CappedMesh(NamedTuple):
    """Mesh with a capped cut.

    loops:      number of section loops that were closed
    open_edges: number of section edges that belong to no closed loop
    area:       area of the base, in square millimeters
    """

    mesh: Mesh
    loops: int
    open_edges: int
    area: float


def cap_mesh(cut: CutMesh, plane: Plane) -> CappedMesh:
    """Cap the cut with faces that face down.

    Args:
        cut: Mesh and section edges, in millimeters, Z up.
    """
    mesh = cut.mesh
    if len(cut.edges) == 0:
        return CappedMesh(mesh, 0, 0, 0.0)
    # the cap traverses the section edges in the opposite direction
    rows, ends = np.unique(cut.edges[:, ::-1].ravel(), return_inverse=True)
    first, index = weld(mesh.vertices[rows])
    edges = index[ends].reshape(-1, 2)
    row = rows[first]
    # seen from below, x and y are swapped, and the areas of the cap are positive
    flat = mesh.vertices[row][:, [1, 0]]
    members, begin = _chain_loops(edges, flat)
    closed = len(members)
    if closed == 0:
        return CappedMesh(mesh, 0, len(edges), 0.0)
    corners = edges[members, 0]
    triangles = _triangulate_loops(flat[corners], begin, cut, members, plane)
    if len(triangles) == 0:
        return CappedMesh(mesh, 0, len(edges), 0.0)
    faces = corners[triangles]
    area = float(_signed_areas(flat, faces).sum())
    adjacent = None if mesh.face_material is None else mesh.face_material[cut.faces[members]]
    is_plain = mesh.uv is None and mesh.colors is None
    if _crosses_seam(mesh, rows, index) or (is_plain and adjacent is not None and (adjacent != adjacent[0]).any()):
        source = cut.edges[members, 1]
        divided = divide_patches(triangles, _label_attributes(mesh, source, adjacent))
        points = mesh.vertices[row[corners]]
        owner = divided.find_nearest(points)
        capped = _add_divided_cap(mesh, divided.place_corners(points)[divided.triangles], source[owner])
        material = None if adjacent is None else adjacent[owner]
    else:
        capped = _add_cap(mesh, row, faces)
        material = None if adjacent is None else _choose_material(triangles, adjacent, begin)
    if mesh.face_material is not None and material is not None:
        capped = replace(capped, face_material=np.concatenate([mesh.face_material, material]))
    return CappedMesh(capped, len(begin) - 1, len(edges) - closed, area)


def _chain_loops(edges: Int32, flat: Float64) -> tuple[IntIndex, IntIndex]:
    """Chain directed edges into closed loops that may touch but do not cross.

    Where loops meet in a point, an incoming edge continues with the next outgoing edge clockwise. This keeps the
    areas to the left of both in one loop.

    Args:
        edges: (k, 2) points of each edge.
        flat: (p, 2) positions.
    Returns:
        Edges loop by loop, and the position where each loop begins.
    """
    count = len(edges)
    after = _find_successors(edges, flat)
    linked = np.flatnonzero(after >= 0)
    number, label = components(count, linked, after[linked])
    is_open = np.zeros(number, np.bool_)
    is_open[label[after < 0]] = True
    closed = np.flatnonzero(~is_open[label])
    position = np.full(count, -1, np.intp)
    position[closed] = np.arange(len(closed))
    members, begin = cycles(position[after[closed]])
    members = closed[members]
    # two opposite edges enclose nothing
    length = np.diff(begin)
    kept = length > 2
    return members[np.repeat(kept, length)], np.concatenate([[0], np.cumsum(length[kept])])


def _find_successors(edges: Int32, flat: Float64) -> IntIndex:
    """Return the edge that follows each directed edge, -1 for none."""
    count = len(edges)
    at = np.concatenate([edges[:, 1], edges[:, 0]])
    away = np.concatenate([edges[:, 0], edges[:, 1]])
    is_outgoing = np.arange(2 * count) >= count
    direction = flat[away] - flat[at]
    order = np.lexsort((is_outgoing, np.arctan2(direction[:, 1], direction[:, 0]), at))
    point, out = at[order], is_outgoing[order]
    start = np.flatnonzero(np.concatenate([[True], point[1:] != point[:-1]]))
    size = np.diff(start, append=len(point))
    last = np.repeat(start + size - 1, size)
    before = np.arange(2 * count) - 1
    before[start] = last[start]
    after = np.full(count, -1, np.intp)
    fits = np.flatnonzero(~out & out[before])
    after[order[fits]] = order[before[fits]] - count
    # the remaining ends occur only in inconsistent sections; pair them in any order
    used = np.zeros(2 * count, np.bool_)
    used[fits] = used[before[fits]] = True
    incoming, outgoing = np.flatnonzero(~used & ~out), np.flatnonzero(~used & out)
    end_index, begin_index = _match_equal(point[incoming], point[outgoing])
    after[order[incoming[end_index]]] = order[outgoing[begin_index]] - count
    return after


def _match_equal(values_a: IntIndex, values_b: IntIndex) -> tuple[IntIndex, IntIndex]:
    """Return positions in two ascending lists that hold equal values; each position occurs once."""

    def rank_of(values: IntIndex) -> IntIndex:
        start = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if len(values) else values
        rank: IntIndex = np.arange(len(values)) - np.repeat(start, np.diff(start, append=len(values)))
        return rank

    rank_a, rank_b = rank_of(values_a), rank_of(values_b)
    width = int(max(rank_a.max(initial=0), rank_b.max(initial=0))) + 1
    _, places, other_places = np.intersect1d(
        values_a * width + rank_a, values_b * width + rank_b, assume_unique=True, return_indices=True
    )
    return places, other_places


def _signed_areas(flat: Float64, faces: Int32) -> Float64:
    a, b, c = (flat[faces[:, corner]] for corner in range(3))
    return ((b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])) / 2


def _triangulate_loops(corners: Float64, begin: IntIndex, cut: CutMesh, members: IntIndex, plane: Plane) -> Int32:
    """Triangulate all loops together or, where bodies overlap, the loops of each body separately."""
    together = _triangulate_some(corners, begin, np.arange(len(begin) - 1))
    sides = np.ptp(corners[together], axis=1).sum(axis=1)
    if (_signed_areas(corners, together) >= -plane.grid * sides).all():
        return together
    group = _find_bodies(corners, begin, cut, members)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(group[order]) != 0]))
    return np.concatenate([_triangulate_some(corners, begin, loops) for loops in np.split(order, starts[1:])])


def _triangulate_some(corners: Float64, begin: IntIndex, loops: IntIndex) -> Int32:
    """Triangulate some of the loops; return positions in `corners`."""
    polygons = [corners[begin[loop] : begin[loop + 1]] for loop in loops]
    triangles = np.asarray(manifold3d.triangulate(polygons, 0.0), np.int32).reshape(-1, 3)
    own = np.concatenate([np.arange(begin[loop], begin[loop + 1], dtype=np.int32) for loop in loops])
    return own[triangles]


def _find_bodies(corners: Float64, begin: IntIndex, cut: CutMesh, members: IntIndex) -> IntIndex:
    """Return the body of each loop: its shell or, for a cavity, the shell of the smallest loop around it."""
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
            if _is_inside(corners[begin[around] : begin[around + 1]], point):
                body[loop] = own[around]
                break
    return body


def _is_inside(polygon: Float64, point: Float64) -> bool:
    """Return whether a point is inside a polygon: a ray crosses an odd number of sides."""
    after = np.roll(polygon, -1, axis=0)
    spans = (polygon[:, 1] > point[1]) != (after[:, 1] > point[1])
    begin, end = polygon[spans], after[spans]
    crossing = begin[:, 0] + (point[1] - begin[:, 1]) / (end[:, 1] - begin[:, 1]) * (end[:, 0] - begin[:, 0])
    return bool((crossing > point[0]).sum() % 2)


def _choose_material(triangles: Int32, adjacent: Int32, begin: IntIndex) -> Int32:
    """Return the material of each triangle: the most frequent material along the loops of its connected area.

    Args:
        triangles: (t, 3) loop corners.
        adjacent: Material of the face above the edge at each loop corner.
        begin: Position where each loop begins.
    """
    length = np.diff(begin)
    loop = np.repeat(np.arange(len(length)), length)
    joined = loop[triangles]
    count, area = components(
        len(length), np.concatenate([joined[:, 0], joined[:, 1]]), np.concatenate([joined[:, 1], joined[:, 2]])
    )
    materials, index = np.unique(adjacent, return_inverse=True)
    size = len(materials)
    votes = np.bincount(area[loop] * size + index, minlength=count * size).reshape(count, size)
    chosen: Int32 = materials[votes.argmax(axis=1)][area[joined[:, 0]]]
    return chosen


def _label_attributes(mesh: Mesh, source: NDArray[Any], material: Int32 | None) -> Int32:
    """Number the vertices (k,) so that those with equal coordinates, colors and materials (k,) have the same number."""
    columns = [np.zeros((len(source), 1)) if material is None else material[:, None]]
    columns += [values[source] for values in (mesh.uv, mesh.colors) if values is not None]
    return weld(np.concatenate(columns, axis=1, dtype=np.float64))[1]


def _crosses_seam(mesh: Mesh, rows: NDArray[Any], index: Int32) -> bool:
    """Return whether a seam of colors or texture coordinates passes through a point of the vertices `rows`."""
    if mesh.colors is not None and has_color_seam(mesh.colors[rows], index):
        return True
    if mesh.uv is None:
        return False
    steps = np.rint(mesh.uv[rows].astype(np.float64) / MIN_SEAM_WIDTH)
    return len(weld(np.column_stack([index, steps]))[0]) > int(index.max()) + 1


def _add_cap(mesh: Mesh, row: NDArray[Any], faces: NDArray[Any]) -> Mesh:
    """Add the cap faces over the section's vertices, or over copies of them if the mesh has normals.

    The faces of the result have no materials.
    """
    if mesh.normals is None:
        return replace(mesh, faces=np.concatenate([mesh.faces, row[faces]]), face_material=None)
    return _add_vertices(mesh, mesh.vertices[row], faces, row)


def _add_divided_cap(mesh: Mesh, points: Float64, source: NDArray[Any]) -> Mesh:
    """Add cap faces with the corners `points` (t, 3, 3), each with the attributes of the vertex `source` (t,).

    Otherwise, a face between corners of different charts would show other parts of the image, and a face between
    corners of different colors would blend them and connect surfaces that the seam separates.
    """
    faces = np.arange(3 * len(points)).reshape(-1, 3)
    return _add_vertices(mesh, points.reshape(-1, 3), faces, np.repeat(source, 3))


def _add_vertices(mesh: Mesh, points: Float64, faces: NDArray[Any], source: NDArray[Any]) -> Mesh:
    """Add vertices (k, 3), which face down, with the attributes of `source` (k,); and faces."""
    down = np.tile(np.array([0, 0, -1], np.float32), (len(points), 1))
    return Mesh(
        np.concatenate([mesh.vertices, points]),
        np.concatenate([mesh.faces, faces + len(mesh.vertices)]),
        normals=None if mesh.normals is None else np.concatenate([mesh.normals, down]),
        uv=None if mesh.uv is None else np.concatenate([mesh.uv, mesh.uv[source]]),
        colors=None if mesh.colors is None else np.concatenate([mesh.colors, mesh.colors[source]]),
        name=mesh.name,
    )
