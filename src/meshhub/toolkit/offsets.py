"""Surfaces at a distance from closed surfaces, on a grid.

Minkowski sums with a ball, which manifold3d computes exactly, are too slow: 7 ms for each face, 30 s for a torus of
4096 faces.
"""

from __future__ import annotations

from typing import NamedTuple

import manifold3d
import numpy as np
from numpy.typing import NDArray

from meshhub.errors import ConversionFailed, ModelTooComplex, format_number
from meshhub.model.progress import advance
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.containment import TURN
from meshhub.toolkit.distances import SurfaceDistance, closest_points
from meshhub.toolkit.geometry import IntIndex, area
from meshhub.toolkit.rays import RayTree
from meshhub.toolkit.topology import components, first_members

CELLS_PER_DISTANCE = 4
"""Cells across the distance, where the surface is small enough for the grid."""

MIN_CELLS_PER_DISTANCE = 2
"""Minimum number of cells across the distance; with fewer, the result may touch the original surface."""

TARGET_CELLS = 40_000
"""Cells along a surface that take a few seconds to compute; a larger surface gets larger cells."""

MAX_CELLS = 400_000
"""Maximum number of cells along a surface; they take 40 s and 1 GB of memory."""

SIMPLIFY_RATIO = 0.005
"""Distance by which the result may be simplified, as a share of the offset: a sixth of the accuracy of 3 %."""

MIN_DISTANCE_RATIO = 0.98
"""Distance from the original surface, as a share of the offset, below which a vertex moves away from it."""

MAX_MOVES = 30
"""Moves of a vertex away from the surface; between two faces that form a wedge, it needs a dozen."""

_SLACKS = (0.1, 0.5, 1.0)
"""Cells by which the search for cells at the distance goes beyond it; the distances to open surfaces, and to some
others, are less exact, and a cell that is left out is a hole in the result."""

_CORNERS = np.array([[corner >> axis & 1 for axis in range(3)] for corner in range(8)])
"""(8, 3) corners of a cell; the bits of their numbers are their coordinates."""

_TETRAHEDRA = np.array([[0, 1, 3, 7], [0, 3, 2, 7], [0, 2, 6, 7], [0, 6, 4, 7], [0, 4, 5, 7], [0, 5, 1, 7]])
"""(6, 4) corners of the tetrahedra that fill a cell, positively oriented; those of neighboring cells match. """

_EVEN = ((0, 1, 2, 3), (1, 0, 3, 2), (2, 0, 1, 3), (3, 0, 2, 1), (0, 2, 3, 1), (0, 3, 1, 2))
"""Even permutations of the corners of a tetrahedron that start with each corner, or with each pair of corner 0."""


def offset_surface(vertices: Float64, faces: Int32, distance: float, option: str) -> tuple[Float64, Int32]:
    """Return the surface at a distance from a closed surface, rounded where the nearest point is not unique.

    Args:
        vertices: (n, 3) positions, in millimeters.
        faces: (m, 3) indices into `vertices`, closed and outward.
        distance: Millimeters, not 0; positive outside of the surface, negative inside.
        option: Option that sets the distance, for messages.
    Returns:
        Vertices and faces of the offset solid, outward; empty if it has no volume. Within 2 % of the distance where the
        surface is smooth; creases are chamfered by up to a cell of the grid.
    Raises:
        ModelTooComplex: The surface is too large for the distance.
        ConversionFailed: No closed surface was found.
    """
    return _find_offset(vertices, faces, distance, option, is_closed=True)


def surround_surface(vertices: Float64, faces: Int32, distance: float, option: str) -> tuple[Float64, Int32]:
    """Return the surface of all points up to a distance from any triangles, open or closed.

    Args:
        vertices: (n, 3) positions, in millimeters.
        faces: (m, 3) indices into `vertices`.
        distance: Millimeters, positive.
        option: Option that the distance is from, for messages.
    Returns:
        Vertices and faces of the solid, outward; the space that it encloses has an inward shell.
    Raises:
        ModelTooComplex: The surface is too large for the distance.
        ConversionFailed: No closed surface was found.
    """
    return _find_offset(vertices, faces, distance, option, is_closed=False)


def _find_offset(
    vertices: Float64, faces: Int32, distance: float, option: str, is_closed: bool
) -> tuple[Float64, Int32]:
    radius = abs(distance)
    sides = 1 if is_closed else 2
    cell = max(radius / CELLS_PER_DISTANCE, float(np.sqrt(sides * area(vertices, faces) / TARGET_CELLS)))
    cell = min(cell, radius / MIN_CELLS_PER_DISTANCE)
    if sides * area(vertices, faces) / cell**2 > MAX_CELLS:
        raise too_fine_error(vertices, faces, radius, option)
    # the distance is at least two cells, and beyond two spacings, distances are exact
    field = SurfaceDistance(vertices, faces, cell)
    for slack in _SLACKS[not is_closed :]:
        cells = _find_cells(vertices, faces, field, distance, cell, is_closed, slack)
        advance(0.5)
        if len(cells.places) == 0:
            return np.empty((0, 3)), np.empty((0, 3), np.int32)
        points, triangles = _triangulate(cells, field, distance)
        advance(0.9)
        solid = manifold3d.Manifold(manifold3d.Mesh64(points, triangles.astype(np.uint64)))
        if solid.status() == manifold3d.Error.NoError:
            points, triangles = _arrays(solid.simplify(SIMPLIFY_RATIO * radius))
            _move_away(points, field, radius, cell)
            return points, triangles
    raise ConversionFailed(
        f"no closed surface was found at the distance of '{{{option}}}'; change it slightly", options=(option,)
    )


def _move_away(points: Float64, field: SurfaceDistance, radius: float, max_move: float) -> None:
    """Move points (n, 3) that are too near to the original surface away from it, in place.

    Samples miss some faces beside long, narrow ones, so that a vertex in 2,000 is nearer than it seems.
    """
    rows = np.arange(len(points))
    for _ in range(MAX_MOVES):
        length, face = field.find_nearer(points[rows], np.full(len(rows), MIN_DISTANCE_RATIO * radius))
        rows, length, face = rows[face >= 0], length[face >= 0], face[face >= 0]
        if len(rows) == 0:
            return
        gap = points[rows] - closest_points(points[rows], field.corners[face])
        points[rows] += gap * (np.minimum(radius - length, max_move) / np.maximum(length, 1e-12))[:, None]


def too_fine_error(vertices: Float64, faces: Int32, length: float, option: str) -> ModelTooComplex:
    """Return the error of a surface that is too large for the length, in mm, that an option sets."""
    return ModelTooComplex(
        f"option '{{{option}}}' {format_number(length, 3)} mm is too fine for a surface of "
        f"{format_number(area(vertices, faces), 3)} mm²; use a larger one, or a smaller model",
        options=(option,),
    )


def _arrays(solid: manifold3d.Manifold) -> tuple[Float64, Int32]:
    mesh = solid.to_mesh64()
    return np.array(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int32)


class _Cells(NamedTuple):
    """Cells of a grid near the offset surface.

    places: (k, 3) position in the grid
    origin: (3,) lowest corner of the grid
    size:   length of a cell
    """

    places: IntIndex
    origin: Float64
    size: float


def _find_cells(
    vertices: Float64, faces: Int32, field: SurfaceDistance, distance: float, size: float, is_closed: bool, slack: float
) -> _Cells:
    """Find the cells that the offset surface crosses, from large cells to small ones; both sides of an open surface."""
    radius = abs(distance)
    low, high = (
        vertices[faces].min(axis=(0, 1)) - radius - 3 * size,
        vertices[faces].max(axis=(0, 1)) + radius + 3 * size,
    )
    levels = max(0, int(np.ceil(np.log2((high - low).max() / size / 8))))
    counts = np.ceil((high - low) / (size * 2**levels)).astype(np.intp)
    index = np.stack(np.unravel_index(np.arange(counts.prod()), counts), axis=1)
    is_one_side = not is_closed
    for level in range(levels, -1, -1):
        length = size * 2**level
        reach = np.sqrt(3) / 2 * length
        center = low + (index + 0.5) * length
        # the slack covers the error of the distances
        index = index[np.abs(field.measure(center) - radius) <= reach + slack * size]
        if not is_one_side and (level == 0 or reach < radius / 2):
            is_far = reach + slack * size < radius - length / 2
            index = _keep_side(_Cells(index, low, length), vertices[faces], distance > 0, by_region=is_far)
            is_one_side = True
        if level:
            index = (index[:, None] * 2 + _CORNERS).reshape(-1, 3)
    return _Cells(index, low, size)


def _keep_side(cells: _Cells, corners: Float64, is_outside: bool, by_region: bool) -> IntIndex:
    """Return which cells have their middle on one side of a closed surface.

    Args:
        cells: Cells near the offset surface, on both sides.
        corners: (m, 3, 3) faces of the closed surface.
        is_outside: Whether to keep the cells outside of it.
        by_region: Whether no cell meets a cell of the other side in a face, so that one cell of each region of
            neighbors is tested; a test of each cell takes two thirds of the time of an offset.
    """
    region = _label_regions(cells.places) if by_region else np.arange(len(cells.places))
    tested = first_members(region, int(region.max(initial=-1)) + 1)
    centers = cells.origin + (cells.places[tested] + 0.5) * cells.size
    is_inside = RayTree(corners @ TURN).count_windings(centers @ TURN) > 0
    kept: IntIndex = cells.places[(is_inside != is_outside)[region]]
    return kept


def _label_regions(places: IntIndex) -> IntIndex:
    """Return the number (k,) of the region of each cell (k, 3); cells of one region are connected by their faces."""
    keys = _keys(places)
    order = np.argsort(keys)
    starts, ends = [], []
    for step in _keys(np.eye(3, dtype=np.intp)):
        at = np.minimum(np.searchsorted(keys[order], keys + step), len(keys) - 1)
        is_neighbor = keys[order[at]] == keys + step
        starts.append(np.flatnonzero(is_neighbor))
        ends.append(order[at[is_neighbor]])
    return components(len(keys), np.concatenate(starts), np.concatenate(ends))[1].astype(np.intp)


def _keys(index: IntIndex) -> IntIndex:
    """Return a number for each grid position (k, 3) from 0 to 2^20."""
    x, y, z = index.T
    keys: IntIndex = x << 40 | y << 20 | z
    return keys


def _triangulate(cells: _Cells, field: SurfaceDistance, distance: float) -> tuple[Float64, Int32]:
    """Return the offset surface as triangles through the edges of tetrahedra, moved to the exact distance.

    Source:
        Doi and Koide, "An efficient method of triangulating equi-valued surfaces by using tetrahedral cells", IEICE
        Transactions E74, 1991.
    """
    corner = _keys(cells.places)[:, None] + _keys(_CORNERS)
    keys, node = np.unique(corner, return_inverse=True)
    index = np.stack([keys >> 40, keys >> 20 & 0xFFFFF, keys & 0xFFFFF], axis=1)
    lattice = cells.origin + index * cells.size
    radius = abs(distance)
    value = field.measure(lattice) - radius
    if distance < 0:
        value = -value
    value[value == 0] = 1e-9 * radius
    edges = _cross_tetrahedra(node.reshape(-1, 8)[:, _TETRAHEDRA].reshape(-1, 4), value < 0)
    pairs, corner_of = np.unique(edges.min(axis=-1).ravel() << 32 | edges.max(axis=-1).ravel(), return_inverse=True)
    a, b = pairs >> 32, pairs & 0xFFFFFFFF
    share = value[a] / (value[a] - value[b])
    points = lattice[a] + share[:, None] * (lattice[b] - lattice[a])
    for _ in range(2):
        points = field.project(points, radius, max_move=cells.size)
    return points, corner_of.reshape(-1, 3).astype(np.int32)


def _cross_tetrahedra(corners: IntIndex, is_inside: NDArray[np.bool_]) -> IntIndex:
    """Return the edge from inside to outside on which each corner of the triangles lies, as (t, 3, 2) nodes."""
    mask = is_inside[corners] @ np.array([1, 2, 4, 8])
    triangles = []
    for i, j, k, m in _EVEN[:4]:
        for rows, order in ((mask == 1 << i, (j, k, m)), (mask == 15 - (1 << i), (j, m, k))):
            chosen = corners[rows]
            triangles.append(np.stack([chosen[:, [i, end]] for end in order], axis=1))
    for even in (_EVEN[0], *_EVEN[4:]):
        for i, j, k, m in (even, (even[2], even[3], even[0], even[1])):
            chosen = corners[mask == (1 << i | 1 << j)]
            quad = [chosen[:, ends] for ends in ([i, k], [i, m], [j, m], [j, k])]
            triangles += [np.stack([quad[0], quad[1], quad[2]], axis=1), np.stack([quad[0], quad[2], quad[3]], axis=1)]
    return np.concatenate(triangles)
