"""Objects and groups of an OBJ file that form one surface because they share vertices.

All labels are computed by columns; the time grows with the number of corners, not of groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading.faces import Faces
from meshhub.model.scene import Int32
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.topology import components

Labels = NDArray[np.integer[Any]]


def join_objects(owner: Labels, faces: Faces) -> Labels:
    """Join objects that only together close a surface.

    Two objects are linked if they share an open edge. Neighbors that are closed, or that share only a vertex, stay
    separate, and so do linked objects whose union has an open edge.

    Args:
        owner: (p,) object of each face.
    Returns:
        (p,) object of each face; joined objects get the smallest of their numbers.
    """
    if not _share_vertices(owner, faces):
        return owner
    edge_owner, edge, open_count = _open_edges(*_polygon_sides(owner, faces))
    object_count = int(owner.max()) + 1
    _, label = components(object_count, *_links(edge_owner, edge, len(open_count)))
    is_open = np.zeros(object_count, np.bool_)
    is_open[label[edge_owner[open_count[edge] != 2]]] = True
    smallest = np.full(object_count, object_count, np.int64)
    np.minimum.at(smallest, label, np.arange(object_count))
    return np.where(is_open[label], np.arange(object_count), smallest[label])[owner]


def join_groups(group: Labels, group_count: int, owner: Labels, faces: Faces) -> Int32:
    """Join the groups of an object whose faces share vertices, directly or through other groups.

    Args:
        group: (p,) group of each face; a group belongs to one object.
        owner: (p,) object of each face.
    Returns:
        (group_count,) surface of each group, numbered by first group.
    """
    if group_count == len(np.unique(owner)):
        return np.arange(group_count, dtype=np.int32)
    corners = _area_corners(faces)
    vertex, vertex_count = faces.v[corners], int(faces.v.max()) + 1
    if _share_vertices(owner, faces):
        # a vertex that objects share becomes a separate vertex in each
        key = _per_corner(owner, faces, corners).astype(np.int64) * vertex_count + vertex
        first, index = weld(key[:, None])
        vertex, vertex_count = index.astype(np.int64), len(first)
    _, label = components(group_count, *_links(_per_corner(group, faces, corners), vertex, vertex_count))
    return label


def _links(label: Labels, place: Labels, place_count: int) -> tuple[Labels, Labels]:
    """Return distinct pairs of labels that link all labels at each place: each label with the last one there."""
    last = np.zeros(place_count, np.int64)
    last[place] = label
    partner = last[place]
    differs = label != partner
    pairs = np.stack([label[differs].astype(np.int64), partner[differs]], axis=1)
    first, _ = weld(pairs)
    return pairs[first, 0], pairs[first, 1]


def _share_vertices(owner: Labels, faces: Faces) -> bool:
    """Return whether two objects have faces at one vertex."""
    if int(owner.min()) == int(owner.max()):
        return False
    corners = _area_corners(faces)
    corner_owner = _per_corner(owner, faces, corners)
    last = np.zeros(int(faces.v.max()) + 1, np.int64)
    last[faces.v[corners]] = corner_owner
    return bool((last[faces.v[corners]] != corner_owner).any())


def _area_corners(faces: Faces) -> NDArray[np.bool_] | slice:
    """Select the corners of faces with three or more; faces with fewer have no area and join nothing."""
    is_short = faces.counts < 3
    return np.repeat(~is_short, faces.counts) if is_short.any() else slice(None)


def _per_corner(label: Labels, faces: Faces, corners: NDArray[np.bool_] | slice) -> Labels:
    """Return the label of the face of each selected corner."""
    labels: Labels = np.repeat(label, faces.counts)[corners]
    return labels


def _polygon_sides(owner: Labels, faces: Faces) -> tuple[Labels, Labels]:
    """Return the sides of all faces: a number for each pair of vertices, and the object of the face."""
    corners = _area_corners(faces)
    ends = np.cumsum(faces.counts)
    has_corners = faces.counts > 0
    following = np.arange(1, len(faces.v) + 1)
    following[ends[has_corners] - 1] = (ends - faces.counts)[has_corners]
    begin, end = faces.v[corners], faces.v[following][corners]
    pair = np.minimum(begin, end) * (int(faces.v.max()) + 1) + np.maximum(begin, end)
    has_length = begin != end
    return pair[has_length], _per_corner(owner, faces, corners)[has_length]


def _open_edges(pair: Labels, owner: Labels) -> tuple[Labels, Labels, Labels]:
    """Find the edges where an object has exactly one side.

    Nearly all edges have two sides of one object, so objects are compared only for the others.

    Args:
        pair: (s,) number of the vertex pair of each side.
        owner: (s,) object of each side.
    Returns:
        Object and edge of each such side, and for each edge the number of objects that are open there.
    """
    order = np.argsort(pair, kind="stable")
    pair, owner = pair[order], owner[order]
    start = np.flatnonzero(np.diff(pair, prepend=-1))
    side_count = np.diff(start, append=len(pair))
    has_one_owner = np.minimum.reduceat(owner, start) == np.maximum.reduceat(owner, start)
    edge_of_side = np.repeat(np.arange(len(start)), side_count)
    is_candidate = np.repeat(~has_one_owner | (side_count != 2), side_count)
    rows = np.stack([edge_of_side[is_candidate], owner[is_candidate].astype(np.int64)], axis=1)
    first, index = weld(rows)
    edge, edge_owner = rows[first[np.bincount(index, minlength=len(first)) == 1]].T
    return edge_owner, edge, np.bincount(edge, minlength=len(side_count))
