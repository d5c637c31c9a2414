"""Validity of many small meshes at once: one by one, most of the time is overhead per mesh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.orient import measure_shell_volumes
from meshhub.builtin_plugins.repair.validity import MIN_CLOSED_SHELL_FACES
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh, count_duplicate_vertices, round_points_by_mesh
from meshhub.model.scene import Float64, Mesh
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import IntIndex, weld

MAX_SMALL_MESH_SIZE = 2000
"""Faces plus vertices; larger meshes are not faster in a batch."""

MAX_BATCH_SIZE = 400_000
"""Faces plus vertices checked together; bounds the memory."""


def measure_valid_meshes(meshes: Sequence[Mesh]) -> Float64:
    """Measure the volumes of the small meshes that are valid and have one shell.

    Args:
        meshes: Any frame.
    Returns:
        (n,) volumes, equal to those of `validity.check_surface` to the last bit; NaN for all other meshes, which need
        a check of their own.
    """
    volumes = np.full(len(meshes), np.nan)
    sizes = np.array([len(mesh.faces) + len(mesh.vertices) for mesh in meshes], np.intp)
    has_faces = np.array([len(mesh.faces) > 0 for mesh in meshes], np.bool_)
    for batch in _split_into_batches(np.flatnonzero(has_faces & (sizes <= MAX_SMALL_MESH_SIZE)), sizes):
        volumes[batch] = _measure_batch([meshes[index] for index in batch])
    return volumes


def _split_into_batches(chosen: IntIndex, sizes: IntIndex) -> Iterator[IntIndex]:
    if len(chosen) < 2:
        return
    number = np.cumsum(sizes[chosen]) // MAX_BATCH_SIZE
    yield from np.split(chosen, np.flatnonzero(np.diff(number)) + 1)


def _measure_batch(meshes: Sequence[Mesh]) -> Float64:
    """Measure meshes that all have faces, as one mesh."""
    count = len(meshes)
    begin = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    vertices = np.concatenate([mesh.vertices for mesh in meshes])
    vertex_owner = np.repeat(np.arange(count), np.diff(begin))
    owner = np.repeat(np.arange(count, dtype=np.int32), [len(mesh.faces) for mesh in meshes])
    # the owner is part of the key, so that points of different meshes stay separate
    key = np.concatenate([round_points_by_mesh(vertices, begin), vertex_owner[:, None].astype(np.float64)], axis=1)
    first, index = weld(key)
    raw = np.concatenate([mesh.faces + np.int32(start) for mesh, start in zip(meshes, begin, strict=False)])
    faces = index[raw]

    is_bad = np.zeros(count, np.bool_)
    mesh_edges = topology.edges(faces)
    is_bad[owner[mesh_edges.order[mesh_edges.start[mesh_edges.size != 2]] // 3]] = True
    half_a, half_b = mesh_edges.pairs()
    corner = faces.ravel()
    opposed = corner[half_a] != corner[half_b]
    is_bad[owner[half_a[~opposed] // 3]] = True
    a, b, c = faces.T
    is_bad[owner[(a == b) | (b == c) | (c == a)]] = True
    number, label = topology.shells(faces, mesh_edges)
    is_bad |= np.bincount(owner[topology.first_members(label, number)], minlength=count) != 1
    is_bad |= np.bincount(owner, minlength=count) < MIN_CLOSED_SHELL_FACES
    nonmanifold = topology.nonmanifold_points(faces, half_a[opposed], half_b[opposed])
    is_bad[vertex_owner[first[nonmanifold]]] = True
    volumes = measure_shell_volumes(_label_by_owner(vertices[first], faces, owner))
    is_bad |= ~(volumes >= 0)
    distinct = np.bincount(vertex_owner[first], minlength=count)
    for place in np.flatnonzero(~is_bad & (distinct < np.diff(begin))).tolist():
        is_bad[place] = count_duplicate_vertices(meshes[place], int(distinct[place])) > 0
    return np.where(is_bad, np.nan, volumes)


def _label_by_owner(points: Float64, faces: NDArray[np.int32], owner: NDArray[np.int32]) -> WeldedMesh:
    """Return a welded mesh in which every original mesh is a shell."""
    return WeldedMesh(points, faces, faces, np.arange(len(faces), dtype=np.int32), np.ones(len(faces), np.bool_), owner)
