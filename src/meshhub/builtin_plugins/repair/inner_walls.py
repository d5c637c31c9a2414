"""Removal of inner walls that pin-holes join to the surface: one shell, which nesting does not show.

AI generators write such double shells: a field that has the extracted value on both sides of a surface gives two walls.
"""

# why this way: docs/decisions/0035-inner-walls.md
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, generate_binary_structure, label
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra, maximum_flow

from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.model.scene import Float64
from meshhub.toolkit import topology
from meshhub.toolkit.containment import TURN, inside
from meshhub.toolkit.distances import sample_surface
from meshhub.toolkit.geometry import IntIndex, area, face_normals, unit_vectors

CELLS_PER_EXTENT = 128
"""Cells along the longest side of a part: 0.6 mm of 80 mm. Walls seal openings of up to three cells."""

MAX_SAMPLES_PER_PART = 5_000_000
"""Samples of a surface; a larger surface gets larger cells."""

MIN_CAVITY_CELLS = 8
"""Free cells of a cavity; fewer are gaps between walls that meet."""

PROBE_CELLS = 2.0
"""Cells from a face to the place in front of it that decides its side: just beyond the cells that the face blocks."""

WITNESS_COUNT = 5
"""Cells of a cavity whose majority decides whether it is a void; odd."""

MAX_CAVITY_COUNT = 200
"""Largest cavities that are examined; bounds the time."""

STEP_RATIO = 0.1
"""Weight of an edge per face between it and the known outer ones: the rim outside is cut, and no pit remains."""

MAX_STEPS = 20
"""Faces that count for `STEP_RATIO`."""

CAPACITY_STEPS = 100_000
"""Resolution of edge lengths in the minimum cut."""


class _Grid(NamedTuple):
    """Regions of free cells.

    region: number of each cell's region; 0 for a cell at the surface, 1 for the outside
    origin: (3,) lowest corner
    cell:   length of a cell
    """

    region: NDArray[np.int32]
    origin: Float64
    cell: float

    def find(self, points: Float64) -> NDArray[np.int32]:
        """Return the regions of points (q, 3) within the grid."""
        index = ((points - self.origin) / self.cell).astype(np.intp)
        x, y, z = np.clip(index, 0, np.array(self.region.shape) - 1).T
        found: NDArray[np.int32] = self.region[x, y, z]
        return found


def find_inner_walls(surface: WeldedMesh) -> NDArray[np.bool_]:
    """Find the faces of walls around voids that only pin-holes connect to the outside.

    The faces in front of which a void lies are inner, those in front of which the outside lies are outer. The shortest
    cut between them divides the rest, and so runs around the pin-holes.

    Args:
        surface: Closed mesh, oriented outward.
    Returns:
        (m,) mask of faces; never all of them.
    """
    nothing = np.zeros(len(surface.faces), np.bool_)
    grid = _mark_regions(surface)
    voids = _find_voids(surface, grid)
    if len(voids) == 0:
        return nothing
    normal = unit_vectors(face_normals(surface.points, surface.faces))
    in_front = grid.find(surface.points[surface.faces].mean(axis=1) + PROBE_CELLS * grid.cell * normal)
    is_inner, is_outer = np.isin(in_front, voids), in_front == 1
    if not is_inner.any() or not is_outer.any():
        return nothing
    return _cut(surface, is_inner, is_outer)


def _mark_regions(surface: WeldedMesh) -> _Grid:
    """Divide the space around and in a mesh into regions that the surface and cells beside it separate."""
    corners = surface.points[surface.faces]
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    cell = float((high - low).max()) / CELLS_PER_EXTENT
    cell = max(cell, 2 * float(np.sqrt(area(surface.points, surface.faces) / MAX_SAMPLES_PER_PART)))
    origin = low - 4.5 * cell
    shape = np.ceil((high - origin) / cell + 4.5).astype(np.intp)
    blocked = np.zeros(tuple(shape.tolist()), np.bool_)
    x, y, z = ((sample_surface(corners, cell / 2)[0] - origin) / cell).astype(np.intp).T
    blocked[x, y, z] = True
    blocked = binary_dilation(blocked, generate_binary_structure(3, 3))
    region, _ = label(~blocked)
    # the first cell is outside
    return _Grid(region.astype(np.int32), origin, cell)


def _find_voids(surface: WeldedMesh, grid: _Grid) -> IntIndex:
    """Return the enclosed regions that are not material."""
    size = np.bincount(grid.region.ravel())
    enclosed = np.flatnonzero(size >= MIN_CAVITY_CELLS)
    enclosed = enclosed[enclosed > 1]
    enclosed = enclosed[np.argsort(-size[enclosed], kind="stable")][:MAX_CAVITY_COUNT]
    if len(enclosed) == 0:
        return enclosed
    turned = surface.points[surface.faces] @ TURN
    order = np.argsort(grid.region.ravel(), kind="stable")
    begin = np.cumsum(size) - size
    shares = (np.arange(WITNESS_COUNT) + 0.5) / WITNESS_COUNT
    chosen = order[begin[enclosed][:, None] + (size[enclosed][:, None] * shares).astype(np.intp)]
    index = np.stack(np.unravel_index(chosen.ravel(), grid.region.shape), axis=1)
    witness = (grid.origin + (index + 0.5) * grid.cell) @ TURN
    is_material = inside(turned, turned.min(axis=1), turned.max(axis=1), witness).reshape(-1, WITNESS_COUNT)
    voids: IntIndex = enclosed[2 * is_material.sum(axis=1) < WITNESS_COUNT]
    return voids


def _cut(surface: WeldedMesh, is_inner: NDArray[np.bool_], is_outer: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the faces on the inner side of the shortest cut between the known inner and outer faces.

    Source:
        Boykov and Jolly, "Interactive graph cuts for optimal boundary and region segmentation", ICCV 2001.
    """
    if (is_inner | is_outer).all():
        return is_inner
    half_a, half_b = topology.edges(surface.faces).pairs()
    begin, end = (ends[half_a] for ends in topology.half_edges(surface.faces))
    length = np.linalg.norm(surface.points[begin] - surface.points[end], axis=1)
    # known faces are one node for each side
    node = np.cumsum(~(is_inner | is_outer)) + 1
    node[is_outer], node[is_inner] = 0, 1
    a, b = node[half_a // 3], node[half_b // 3]
    apart = a != b
    count = int(node.max()) + 1
    rows, columns = np.concatenate([a[apart], b[apart]]), np.concatenate([b[apart], a[apart]])
    links = csr_array((np.ones(len(rows)), (rows, columns)), (count, count))
    steps = np.minimum(dijkstra(links, indices=0, unweighted=True), MAX_STEPS)
    weighted = length[apart] * (1 + STEP_RATIO * np.minimum(steps[a[apart]], steps[b[apart]]))
    capacity = np.ceil(weighted / weighted.max() * CAPACITY_STEPS).astype(np.int64)
    total = csr_array((np.tile(capacity, 2), (rows, columns)), (count, count))
    total.sum_duplicates()
    graph = csr_array((np.minimum(total.data, np.iinfo(np.int32).max).astype(np.int32), total.indices, total.indptr))
    flow = maximum_flow(graph, 0, 1).flow
    rest = csr_array(graph - flow)
    rest.data = np.maximum(rest.data, 0)
    rest.eliminate_zeros()
    is_reached = np.zeros(count, np.bool_)
    is_reached[breadth_first_order(rest, 0, return_predecessors=False)] = True
    inner: NDArray[np.bool_] = ~is_reached[node]
    return inner
