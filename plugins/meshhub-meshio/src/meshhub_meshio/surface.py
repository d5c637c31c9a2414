"""Surface of cells: the sides of volume cells that no other cell shares, and surface cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.polygons import triangulate

Index = NDArray[np.int64]

_VOLUMES: dict[str, tuple[tuple[int, ...], ...]] = {
    "tetra": ((0, 1, 2), (0, 1, 3), (1, 2, 3), (2, 0, 3)),
    "pyramid": ((0, 1, 2, 3), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
    "wedge": ((0, 1, 2), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    "hexahedron": ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
}
"""Corners of the sides of volume cells, in the order of VTK; their orientation is computed."""

_SURFACES = {"triangle": 3, "quad": 4}
"""Corners of surface cells."""

_EDGES = {
    "triangle": ((0, 1), (1, 2), (2, 0)),
    "quad": ((0, 1), (1, 2), (2, 3), (3, 0)),
    "tetra": ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)),
    "pyramid": ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)),
    "wedge": ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)),
    "hexahedron": (
        *((0, 1), (1, 2), (2, 3), (3, 0)),
        *((4, 5), (5, 6), (6, 7), (7, 4)),
        *((0, 4), (1, 5), (2, 6), (3, 7)),
    ),
}
"""Edges with a point in the middle, in the order of these points after the corners."""

_QUADRATIC = {
    *("triangle6", "quad8", "quad9", "tetra10", "pyramid13", "pyramid14"),
    *("wedge15", "wedge18", "hexahedron20", "hexahedron24", "hexahedron27"),
}
"""Cells with points in the middle of edges; of cells of a higher degree, only corners count."""

_TRIANGLES = {
    (3, False): ((0, 1, 2),),
    (4, False): ((0, 1, 2), (0, 2, 3)),
    # middle points follow the corners of a side
    (3, True): ((0, 3, 5), (3, 1, 4), (5, 4, 2), (3, 4, 5)),
    (4, True): ((0, 4, 7), (4, 1, 5), (5, 2, 6), (6, 3, 7), (4, 5, 7), (5, 6, 7)),
}
"""Triangles of a side by its corners, and whether its edges have middle points."""


@dataclass(frozen=True)
class Surface:
    """Triangles with the cells from which they come.

    faces: (m, 3) indices of points
    block: (m,) index of the block of cells
    cell:  (m,) index of the cell in its block
    """

    faces: Int32
    block: Index
    cell: Index


@dataclass(frozen=True)
class _Sides:
    """Sides of one shape of the cells of a block.

    corners:   (n, 3 or 4) indices of points
    triangles: (n, t, 3) indices of points
    centers:   (n, 3) middle of the cell; None for surface cells, which keep their orientation
    """

    block: int
    corners: Index
    triangles: Index
    centers: Float64 | None


def find_surface(points: Float64, blocks: Sequence[tuple[str, object]]) -> tuple[Surface, set[str]]:
    """Return the triangles of the outer surface, and the types of cells that were left out.

    Args:
        points: (n, 3).
        blocks: Type of the cells as meshio names it, such as "tetra10", and (m, k) indices of points; rows of polygons
            have different lengths.
    Returns:
        Volume cells contribute sides that belong to one cell, facing outward; surface cells are left out where a
        volume has the same side.
    """
    sides: list[_Sides] = []
    polygons: list[Surface] = []
    ignored: set[str] = set()
    for number, (kind, rows) in enumerate(blocks):
        base = re.match(r"[a-z]*", kind)[0]  # type: ignore[index]
        if base == "polygon":
            polygons.append(_divide_polygons(points, number, rows))
        elif base in _VOLUMES or base in _SURFACES:
            cells = np.asarray(rows, np.int64)
            if len(cells):
                sides += _list_sides(points, number, kind, base, cells)
        elif base not in ("line", "vertex"):
            ignored.add(kind)
    parts = [*_choose_outer(points, sides), *polygons]
    empty = Surface(np.empty((0, 3), np.int32), np.empty(0, np.int64), np.empty(0, np.int64))
    return (
        Surface(
            np.concatenate([part.faces for part in (empty, *parts)]),
            np.concatenate([part.block for part in (empty, *parts)]),
            np.concatenate([part.cell for part in (empty, *parts)]),
        ),
        ignored,
    )


def _list_sides(points: Float64, number: int, kind: str, base: str, cells: Index) -> list[_Sides]:
    """Return the sides of the cells of a block, those of each corner in the cell together."""
    is_volume = base in _VOLUMES
    shapes = _VOLUMES[base] if is_volume else (tuple(range(_SURFACES[base])),)
    middles = {frozenset(edge): index for index, edge in enumerate(_EDGES[base], _count_corners(base))}
    is_quadratic = kind in _QUADRATIC
    centers = points[cells[:, : _count_corners(base)]].mean(axis=1) if is_volume else None
    result = []
    for shape in shapes:
        ring = list(shape)
        if is_quadratic:
            ring += [middles[frozenset((a, b))] for a, b in zip(shape, (*shape[1:], shape[0]), strict=True)]
        pattern = np.array(_TRIANGLES[len(shape), is_quadratic])
        result.append(_Sides(number, cells[:, shape], cells[:, np.array(ring)[pattern]], centers))
    return result


def _count_corners(base: str) -> int:
    return 1 + max(max(edge) for edge in _EDGES[base])


def _choose_outer(points: Float64, sides: Sequence[_Sides]) -> list[Surface]:
    """Return the triangles of the sides that no other volume cell shares."""
    if not sides:
        return []
    counts = [len(side.corners) for side in sides]
    keys = np.full((sum(counts), 4), -1, np.int64)
    begins = np.cumsum([0, *counts])
    for side, begin, count in zip(sides, begins, counts, strict=False):
        keys[begin : begin + count, : side.corners.shape[1]] = np.sort(side.corners, axis=1)
    is_volume = np.repeat([side.centers is not None for side in sides], counts)
    order = np.lexsort(keys.T)
    is_new = np.any(np.diff(keys[order], axis=0, prepend=-2), axis=1)
    group = np.empty(len(keys), np.int64)
    group[order] = np.cumsum(is_new) - 1
    volumes = np.bincount(group, weights=is_volume)[group]
    is_kept = np.where(is_volume, volumes == 1, volumes == 0)
    parts = []
    for side, begin, count in zip(sides, begins, counts, strict=False):
        cell = np.flatnonzero(is_kept[begin : begin + count])
        triangles = side.triangles[cell]
        if side.centers is not None:
            triangles = _turn_outward(points, triangles, side.centers[cell])
        repeats = triangles.shape[1]
        faces = triangles.reshape(-1, 3).astype(np.int32)
        parts.append(Surface(faces, np.full(len(faces), side.block), np.repeat(cell, repeats)))
    return parts


def _turn_outward(points: Float64, triangles: Index, centers: Float64) -> Index:
    """Reverse the sides that face the middle of their cell; programs order the points of cells differently."""
    corners = points[triangles]
    normals = np.cross(corners[:, :, 1] - corners[:, :, 0], corners[:, :, 2] - corners[:, :, 0]).sum(axis=1)
    outward = corners.mean(axis=(1, 2)) - centers
    is_inward = np.einsum("ij,ij->i", normals, outward) < 0
    return np.where(is_inward[:, None, None], triangles[:, :, ::-1], triangles)


def _divide_polygons(points: Float64, number: int, rows: object) -> Surface:
    """Return the triangles of a block of polygons."""
    polygons = [np.asarray(row, np.int64) for row in rows]  # type: ignore[attr-defined]
    counts = np.array([len(polygon) for polygon in polygons], np.int64)
    faces, cell = triangulate(points, counts, np.concatenate([np.empty(0, np.int64), *polygons]))
    return Surface(faces, np.full(len(faces), number), cell.astype(np.int64))
