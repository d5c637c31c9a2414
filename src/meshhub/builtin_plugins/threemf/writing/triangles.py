"""Vertices and triangles of a mesh as XML, with their properties and paint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.threemf.paint_trees import PaintTrees
from meshhub.builtin_plugins.threemf.writing.appearance import Chunk
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.columns import TextColumn, shortest, write_rows
from meshhub.toolkit.geometry import weld


def weld_vertices(mesh: Mesh) -> tuple[Float64, Int32]:
    """Return vertices and faces with each position once, since 3MF identifies shared edges by vertex index.

    Core §4.1.4 requires three different indices, so a face with two equal positions keeps separate vertices.
    """
    first, index = weld(mesh.vertices)
    faces = index[mesh.faces]
    vertices = mesh.vertices[first]
    a, b, c = faces.T
    degenerate = np.flatnonzero((a == b) | (b == c) | (c == a))
    if len(degenerate):
        faces = faces.copy()
        added = np.arange(2 * len(degenerate), dtype=np.int32).reshape(-1, 2) + np.int32(len(vertices))
        vertices = np.concatenate([vertices, mesh.vertices[mesh.faces[degenerate, 1:]].reshape(-1, 3)])
        faces[degenerate, 1:] = added
    return vertices, faces


def format_vertices(vertices: Float64) -> Chunk:
    """Return the vertices (n, 3), in millimeters."""
    return write_rows(['<vertex x="', '" y="', '" z="', '"/>\n'], list(shortest(vertices).T))


def format_triangles(
    faces: Int32, group: Int32 | None = None, index: Int32 | None = None, paint: tuple[str, PaintTrees] | None = None
) -> Iterator[Chunk]:
    """Yield the triangles, those that are painted at the end.

    Args:
        faces: (m, 3) vertex indices.
        group: (m,) property groups, or None.
        index: (m, 3) properties of the corners, or None.
        paint: Name of the attribute of the paint, and the paint of all triangles; None without paint.
    """
    if paint is None:
        yield _format_rows(faces, group, index)
        return
    attribute, trees = paint
    is_painted = trees.is_painted()
    codes = replace(trees, roots=trees.roots[is_painted]).format_codes()
    for rows, column in ((~is_painted, None), (is_painted, (attribute, codes))):
        own_group, own_index = (None if values is None else values[rows] for values in (group, index))
        yield _format_rows(faces[rows], own_group, own_index, column)


def _format_rows(
    faces: Int32, group: Int32 | None, index: Int32 | None, paint: tuple[str, TextColumn] | None = None
) -> Chunk:
    """Return the triangles, with the shortest attributes that express their properties.

    Args:
        faces: (m, 3) vertex indices.
        group: (m,) property groups, or None.
        index: (m, 3) properties of the corners, or None.
        paint: Name of the attribute of the paint, and the (m,) codes; None for unpainted triangles.
    """
    literals = ['<triangle v1="', '" v2="', '" v3="']
    columns: list[NDArray[Any] | TextColumn] = list(faces.T)
    if group is not None and index is not None:
        is_flat = bool((index[:, 1:] == index[:, :1]).all())
        literals += ['" pid="', '" p1="', '" p2="', '" p3="'][: 2 if is_flat else 4]
        columns += [group, *index.T][: 2 if is_flat else 4]
    if paint is not None:
        literals.append(f'" {paint[0]}="')
        columns.append(paint[1])
    return write_rows([*literals, '"/>\n'], columns)
