"""Which of many small meshes are sound, asked of all at once: one by one, most of the time goes into the asking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from meshhub import topology
from meshhub.builtin_plugins.repair.orient import shell_volumes
from meshhub.builtin_plugins.repair.surface import Surface, rounded_each, said_twice
from meshhub.geometry import IntIndex, weld
from meshhub.scene import Float64, Mesh

SMALL = 2000
"""Meshes of more faces and vertices, taken together, gain nothing by company."""

LOT = 400_000
"""So many faces and vertices are looked at together at most; bounds the memory."""


def sound_volumes(meshes: Sequence[Mesh]) -> Float64:
    """The volume of each mesh that is one shell and sound; NaN for any other, which must be looked at by itself.

    Only small meshes are looked at. What is told of one is what `judge.health` tells of it, to the last bit.
    """
    volumes = np.full(len(meshes), np.nan)
    sizes = np.array([len(mesh.faces) + len(mesh.vertices) for mesh in meshes], np.intp)
    full = np.array([len(mesh.faces) > 0 for mesh in meshes], np.bool_)
    for lot in _lots(np.flatnonzero(full & (sizes <= SMALL)), sizes):
        volumes[lot] = _sound_volumes([meshes[index] for index in lot])
    return volumes


def _lots(chosen: IntIndex, sizes: IntIndex) -> Iterator[IntIndex]:
    if len(chosen) < 2:
        return
    number = np.cumsum(sizes[chosen]) // LOT
    yield from np.split(chosen, np.flatnonzero(np.diff(number)) + 1)


def _sound_volumes(meshes: Sequence[Mesh]) -> Float64:
    """The same for meshes that all have faces."""
    count = len(meshes)
    begin = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes])
    vertex_owner = np.repeat(np.arange(count), np.diff(begin))
    owner = np.repeat(np.arange(count, dtype=np.int32), [len(mesh.faces) for mesh in meshes])
    # points of different meshes are never one
    key = np.concatenate([rounded_each(vertices, begin), vertex_owner[:, None].astype(np.float64)], axis=1)
    first, index = weld(key)
    raw = np.concatenate([mesh.faces + np.int32(start) for mesh, start in zip(meshes, begin, strict=False)])
    faces = index[raw]

    bad = np.zeros(count, np.bool_)
    found = topology.edges(faces)
    bad[owner[found.order[found.start[found.size != 2]] // 3]] = True
    one, other = found.pairs()
    corner = faces.ravel()
    opposed = corner[one] != corner[other]
    bad[owner[one[~opposed] // 3]] = True
    a, b, c = faces.T
    bad[owner[(a == b) | (b == c) | (c == a)]] = True
    number, label = topology.shells(faces, found)
    bad |= np.bincount(owner[topology.first_members(label, number)], minlength=count) != 1
    bad |= np.bincount(owner, minlength=count) < 4
    torn = topology.torn_points(faces, one[opposed], other[opposed])
    bad[vertex_owner[first[torn]]] = True
    volumes = shell_volumes(_labelled(vertices[first], faces, owner))
    bad |= ~(volumes >= 0)
    distinct = np.bincount(vertex_owner[first], minlength=count)
    for place in np.flatnonzero(~bad & (distinct < np.diff(begin))).tolist():
        bad[place] = said_twice(meshes[place], int(distinct[place])) > 0
    return np.where(bad, np.nan, volumes)


def _labelled(points: Float64, faces: NDArray[np.int32], owner: NDArray[np.int32]) -> Surface:
    return Surface(points, faces, faces, np.arange(len(faces), dtype=np.int32), np.ones(len(faces), np.bool_), owner)
