"""Which objects and groups of an OBJ file are pieces of one surface: those that name the same vertices.

Everything is labelled by whole columns; the time grows with the corners, whatever the number of groups.
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


def joined_objects(owner: Labels, faces: Faces) -> Labels:
    """The object of each face, (p,), where objects that only together close a surface have one number: their smallest.

    owner: (p,) the object of each face

    Linked are objects that have an open edge in common, so that neighbours that are closed by
    themselves, or share no more than a corner, stay apart. A union that is left open is none.
    """
    if not _share(owner, faces):
        return owner
    border, edge, size = _open_edges(*_sides(owner, faces))
    count = int(owner.max()) + 1
    _, label = components(count, *_links(border, edge, len(size)))
    torn = np.zeros(count, np.bool_)
    torn[label[border[size[edge] != 2]]] = True
    smallest = np.full(count, count, np.int64)
    np.minimum.at(smallest, label, np.arange(count))
    return np.where(torn[label], np.arange(count), smallest[label])[owner]


def joined_groups(group: Labels, count: int, owner: Labels, faces: Faces) -> Int32:
    """The surface that each group belongs to, (count,), numbered by their first groups.

    group, owner: (p,) the group and the object of each face; a group is of one object

    Groups of one object are one surface when their faces share vertices, directly or through others.
    """
    if count == len(np.unique(owner)):
        return np.arange(count, dtype=np.int32)
    corners = _corners(faces)
    point, size = faces.v[corners], int(faces.v.max()) + 1
    if _share(owner, faces):
        first, index = weld((_spread(owner, faces, corners).astype(np.int64) * size + point)[:, None])
        point, size = index.astype(np.int64), len(first)
    _, label = components(count, *_links(_spread(group, faces, corners), point, size))
    return label


def _links(one: Labels, point: Labels, size: int) -> tuple[Labels, Labels]:
    """Pairs that link all labels met at each point: each with the last one there, every pair once."""
    last = np.zeros(size, np.int64)
    last[point] = one
    other = last[point]
    apart = one != other
    pairs = np.stack([one[apart].astype(np.int64), other[apart]], axis=1)
    first, _ = weld(pairs)
    return pairs[first, 0], pairs[first, 1]


def _share(owner: Labels, faces: Faces) -> bool:
    """Whether any two owners have faces at the same vertex."""
    if int(owner.min()) == int(owner.max()):
        return False
    corners = _corners(faces)
    mine = _spread(owner, faces, corners)
    last = np.zeros(int(faces.v.max()) + 1, np.int64)
    last[faces.v[corners]] = mine
    return bool((last[faces.v[corners]] != mine).any())


def _corners(faces: Faces) -> NDArray[np.bool_] | slice:
    """The corners of faces that have an area; those of one or two corners hold nothing together."""
    short = faces.counts < 3
    return np.repeat(~short, faces.counts) if short.any() else slice(None)


def _spread(label: Labels, faces: Faces, corners: NDArray[np.bool_] | slice) -> Labels:
    """The label of each corner's face."""
    spread: Labels = np.repeat(label, faces.counts)[corners]
    return spread


def _sides(owner: Labels, faces: Faces) -> tuple[Labels, Labels]:
    """The sides of all faces: a number for each pair of vertices, and whose face it is."""
    corners = _corners(faces)
    ends = np.cumsum(faces.counts)
    filled = faces.counts > 0
    after = np.arange(1, len(faces.v) + 1)
    after[ends[filled] - 1] = (ends - faces.counts)[filled]
    begin, end = faces.v[corners], faces.v[after][corners]
    pair = np.minimum(begin, end) * (int(faces.v.max()) + 1) + np.maximum(begin, end)
    apart = begin != end
    return pair[apart], _spread(owner, faces, corners)[apart]


def _open_edges(pair: Labels, owner: Labels) -> tuple[Labels, Labels, Labels]:
    """The edges on which an owner has one side only: whose, which edge, and how many owners each edge is open for.

    Nearly all edges have two sides of one owner: owners are told apart only for the rest.
    """
    order = np.argsort(pair, kind="stable")
    pair, owner = pair[order], owner[order]
    start = np.flatnonzero(np.diff(pair, prepend=-1))
    sides = np.diff(start, append=len(pair))
    even = np.minimum.reduceat(owner, start) == np.maximum.reduceat(owner, start)
    index = np.repeat(np.arange(len(start)), sides)
    rest = np.repeat(~even | (sides != 2), sides)
    rows = np.stack([index[rest], owner[rest].astype(np.int64)], axis=1)
    first, met = weld(rows)
    edge, border = rows[first[np.bincount(met, minlength=len(first)) == 1]].T
    return border, edge, np.bincount(edge, minlength=len(sides))
