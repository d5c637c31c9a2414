"""Face sets: polygons, triangles, quads, strips and fans (ISO/IEC 19775-1, 11 and 13.3.6)."""

from __future__ import annotations

import numpy as np

from meshhub import UnreadableFile, note
from meshhub.errors import quote
from meshhub.model.scene import Float64
from meshhub_x3d.attributes import Corners, add_attributes
from meshhub_x3d.fields import Index, read_floats, read_integers
from meshhub_x3d.nodes import Node
from meshhub_x3d.surfaces import Surface


def _read_points(node: Node) -> Float64:
    """Return the coordinates of a face set. Raises UnreadableFile."""
    coordinates = node.find("coord", "Coordinate", "CoordinateDouble")
    if coordinates is None:
        if node.find("coord", "GeoCoordinate") is not None:
            note("geometry_skipped", "skipped a geometry in coordinates of the Earth; export it in meters")
        return np.empty((0, 3))
    return read_floats(coordinates, "point", 3)


def read_faces(node: Node) -> Surface:
    """Return the polygons of an IndexedFaceSet; each ends with a negative index."""
    index = read_integers(node, "coordIndex")
    is_end = index < 0
    places = np.flatnonzero(~is_end)
    run = np.cumsum(is_end)[places]
    # polygons without corners do not count
    polygons: Index = np.cumsum(np.diff(run, prepend=run[:1]) > 0, dtype=np.int64)
    surface = Surface(_read_points(node), np.bincount(polygons), index[places])
    return add_attributes(surface, node, Corners(index[places], polygons, places))


def read_triangles(node: Node) -> Surface:
    """Return the triangles of a TriangleSet or an IndexedTriangleSet."""
    return _read_polygons(node, 3)


def read_quads(node: Node) -> Surface:
    """Return the quads of a QuadSet or an IndexedQuadSet."""
    return _read_polygons(node, 4)


def _read_polygons(node: Node, size: int) -> Surface:
    points = _read_points(node)
    index = read_integers(node, "index") if node.kind.startswith("Indexed") else np.arange(len(points))
    index = index[index >= 0]
    index = index[: len(index) // size * size]
    count = len(index) // size
    surface = Surface(points, np.full(count, size, np.int64), index)
    return add_attributes(surface, node, Corners(index, np.repeat(np.arange(count), size)))


def read_strips(node: Node) -> Surface:
    """Return the triangles of a TriangleStripSet or an IndexedTriangleStripSet; every second one is turned."""
    points, index, first, step = _read_runs(node, "stripCount")
    odd = step % 2
    return _from_triangles(
        points, node, index[np.stack([first + step + odd, first + step + 1 - odd, first + step + 2], 1)]
    )


def read_fans(node: Node) -> Surface:
    """Return the triangles of a TriangleFanSet or an IndexedTriangleFanSet."""
    points, index, first, step = _read_runs(node, "fanCount")
    return _from_triangles(points, node, index[np.stack([first, first + step + 1, first + step + 2], 1)])


def _from_triangles(points: Float64, node: Node, triangles: Index) -> Surface:
    corners = triangles.ravel()
    count = len(triangles)
    # strips repeat vertices where they are joined
    surface = Surface(points, np.full(count, 3, np.int64), corners, is_computed=True)
    return add_attributes(surface, node, Corners(corners, np.repeat(np.arange(count), 3)))


def _read_runs(node: Node, counts_field: str) -> tuple[Float64, Index, Index, Index]:
    """Return points, indices, and the first corner of the run of each triangle, and its number in the run."""
    points = _read_points(node)
    if node.kind.startswith("Indexed"):
        index = read_integers(node, "index")
        is_end = index < 0
        run = np.cumsum(is_end)[~is_end]
        counts, index = np.bincount(run), index[~is_end]
    else:
        counts, index = read_integers(node, counts_field), np.arange(len(points))
        if len(counts) and (counts.min() < 0 or counts.max() > len(points) or counts.sum() > len(points)):
            raise UnreadableFile(
                f"{counts_field} of a {quote(node.kind)} does not fit to {len(points)} points; export it again"
            )
    triangles = np.maximum(counts - 2, 0)
    first = np.repeat(np.cumsum(counts) - counts, triangles)
    step = np.arange(int(triangles.sum())) - np.repeat(np.cumsum(triangles) - triangles, triangles)
    return points, index, first, step
