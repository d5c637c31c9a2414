"""Cells of VTK files as blocks of one type, and the surface of structured grids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub import UnreadableFile
from meshhub.model.scene import Float64
from meshhub_meshio.surface import Index


class CellBlock(NamedTuple):
    """Cells of one type, as meshio names it, and their indices of points."""

    type: str
    data: Any


class CellMesh(NamedTuple):
    """What `meshio.Mesh` has: points, blocks of cells, and data at points and of the cells of each block."""

    points: Float64
    cells: list[CellBlock]
    point_data: dict[str, NDArray[Any]]
    cell_data: dict[str, list[NDArray[Any]]]


class Cells(NamedTuple):
    """Cells of a file, in order.

    kinds:        (n,) numbers of the types of VTK
    offsets:      (n + 1,) start of each cell in `connectivity`, and the end of the last one
    connectivity: (k,) indices of points
    """

    kinds: Index
    offsets: Index
    connectivity: Index


STRIP, POLYGON, QUADRATIC_POLYGON = 6, 7, 36
"""Types with any number of points."""

_TYPES = {
    5: ("triangle", 3), 9: ("quad", 4), 10: ("tetra", 4), 12: ("hexahedron", 8), 13: ("wedge", 6), 14: ("pyramid", 5),
    22: ("triangle6", 6), 23: ("quad8", 8), 24: ("tetra10", 10), 25: ("hexahedron20", 20), 26: ("wedge15", 15),
    27: ("pyramid13", 13), 28: ("quad9", 9), 29: ("hexahedron27", 27), 30: ("quad", 4), 31: ("wedge", 6),
    32: ("wedge18", 18), 33: ("hexahedron24", 24), 34: ("triangle6", 6), 37: ("pyramid13", 13),
    69: ("triangle", 3), 70: ("quad", 4), 71: ("tetra", 4), 72: ("hexahedron", 8), 73: ("wedge", 6), 74: ("pyramid", 5),
    76: ("triangle", 3), 77: ("quad", 4), 78: ("tetra", 4), 79: ("hexahedron", 8), 80: ("wedge", 6), 81: ("pyramid", 5),
}  # fmt: skip
"""Name and nodes of each type that is read; of cells of a higher degree, the corners, which come first."""

_REORDERED = {
    # pixel and voxel count along the axes
    8: [("quad", (0, 1, 3, 2))],
    11: [("hexahedron", (0, 1, 3, 2, 4, 5, 7, 6))],
    # prisms with five and six sides, as cells whose common sides cancel
    15: [("hexahedron", (0, 1, 2, 3, 5, 6, 7, 8)), ("wedge", (0, 3, 4, 5, 8, 9))],
    16: [("hexahedron", (0, 1, 2, 3, 6, 7, 8, 9)), ("hexahedron", (0, 3, 4, 5, 6, 9, 10, 11))],
}
"""Cells that each cell of a type becomes."""

_LINES = {0, 1, 2, 3, 4, 21, 35, 68, 75}
"""Types of points and lines."""

_NAMES = {41: "convex point set", 42: "polyhedron"}


def build_mesh(
    points: Float64, cells: Cells, point_data: Mapping[str, NDArray[Any]], cell_data: Mapping[str, NDArray[Any]]
) -> CellMesh:
    """Return the mesh of cells of any type. Raises UnreadableFile."""
    connectivity, offsets = cells.connectivity, cells.offsets
    if len(offsets) != len(cells.kinds) + 1 or (np.diff(offsets) < 0).any():
        raise UnreadableFile("the cells of the file and their types or offsets do not match; export it again")
    if len(cells.kinds) and not 0 <= offsets[0] <= offsets[-1] <= len(connectivity):
        raise UnreadableFile("the file ends before the points of its last cell; export it again")
    blocks: list[CellBlock] = []
    numbers: list[Index] = []
    sizes = np.diff(offsets)
    for kind, size in np.unique(np.stack([cells.kinds, sizes], axis=1), axis=0).tolist():
        chosen = np.flatnonzero((cells.kinds == kind) & (sizes == size))
        rows = connectivity[offsets[chosen][:, None] + np.arange(size)]
        for name, data, owner in _convert(kind, rows):
            blocks.append(CellBlock(name, data))
            numbers.append(chosen[owner])
    count = len(cells.kinds)
    usable = {name: values for name, values in cell_data.items() if len(values) == count}
    return CellMesh(
        points,
        blocks,
        {name: values for name, values in point_data.items() if len(values) == len(points)},
        {name: [values[chosen] for chosen in numbers] for name, values in usable.items()},
    )


def _convert(kind: int, rows: Index) -> Iterator[tuple[str, Index, Index]]:
    """Yield name and rows of the blocks that cells of a type and a size become, and the cell of each row."""
    count, size = rows.shape
    all_cells = np.arange(count)
    if kind in _LINES or (kind == STRIP and size < 3) or (kind == POLYGON and size < 3):
        return
    if kind == STRIP:
        step = np.arange(size - 2)
        odd = step % 2
        corners = np.stack([step + odd, step + 1 - odd, step + 2], axis=1)
        yield "triangle", rows[:, corners].reshape(-1, 3), np.repeat(all_cells, size - 2)
    elif kind == POLYGON:
        yield "triangle" if size == 3 else "polygon", rows, all_cells
    elif kind == QUADRATIC_POLYGON and size >= 6:
        # the middles of the sides follow the corners
        yield "polygon", rows[:, np.arange(size).reshape(2, -1).T.ravel()], all_cells
    elif kind in _REORDERED and size == 1 + max(max(order) for _, order in _REORDERED[kind]):
        for name, order in _REORDERED[kind]:
            yield name, rows[:, order], all_cells
    elif kind in _TYPES and size >= _TYPES[kind][1]:
        name, width = _TYPES[kind]
        yield name, rows[:, :width], all_cells
    elif kind in _TYPES or kind in _REORDERED:
        raise UnreadableFile(f"a cell of type {kind} has {size} points, which are too few; export the file again")
    else:
        # the surface leaves it out, with a note
        yield _NAMES.get(kind, f"VTK type {kind}"), rows, all_cells


class Grid(NamedTuple):
    """Surface of a structured grid.

    points: (k,) numbers of the points that the surface has
    quads:  (n, 4) rows of `points`
    cells:  (n,) numbers of the cells
    """

    points: Index
    quads: Index
    cells: Index


def find_grid_surface(size: tuple[int, int, int]) -> Grid:
    """Return the surface of a grid of points, of which the first axis runs fastest; a flat grid is its own surface."""
    steps = np.array([1, size[0], size[0] * size[1]])
    counts = np.maximum(np.array(size) - 1, 1)
    cell_steps = np.array([1, counts[0], counts[0] * counts[1]])
    flat_axes = [axis for axis in range(3) if size[axis] == 1]
    empty = np.empty(0, np.int64)
    if len(flat_axes) > 1:
        return Grid(empty, empty.reshape(0, 4), empty)
    quads, cells = [], []
    for axis in flat_axes or range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        across, along = (each.ravel() for each in np.meshgrid(np.arange(size[u] - 1), np.arange(size[v] - 1)))
        first = across * steps[u] + along * steps[v]
        cell = across * cell_steps[u] + along * cell_steps[v]
        side = np.stack([first, first + steps[u], first + steps[u] + steps[v], first + steps[v]], axis=1)
        if axis in flat_axes:
            quads.append(side)
            cells.append(cell)
            continue
        quads += [side[:, ::-1], side + (size[axis] - 1) * steps[axis]]
        cells += [cell, cell + (counts[axis] - 1) * cell_steps[axis]]
    points, index = np.unique(np.concatenate(quads), return_inverse=True)
    return Grid(points, index.reshape(-1, 4), np.concatenate(cells))


def build_grid(
    points: Float64,
    grid: Grid,
    point_data: Mapping[str, NDArray[Any]],
    cell_data: Mapping[str, NDArray[Any]],
    size: tuple[int, int, int],
) -> CellMesh:
    """Return the mesh of a structured grid; `points` are those of its surface."""
    quads = grid.quads
    if min(size) > 1:
        a, b, c, d = (points[quads[:, corner]] for corner in range(4))
        if np.einsum("ij,ij->i", a - points.mean(axis=0), np.cross(c - a, d - b)).sum() < 0:
            # the axes are left-handed
            quads = quads[:, ::-1]
    point_count = int(np.prod(size))
    cell_count = int(np.prod(np.maximum(np.array(size) - 1, 1)))
    return CellMesh(
        points,
        [CellBlock("quad", quads)],
        {name: values[grid.points] for name, values in point_data.items() if len(values) == point_count},
        {name: [values[grid.cells]] for name, values in cell_data.items() if len(values) == cell_count},
    )
