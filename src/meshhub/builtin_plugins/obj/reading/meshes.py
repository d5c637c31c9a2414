"""Meshes from vertex data and faces: triangulated polygons, and a vertex for each distinct corner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading.faces import Corners, Faces
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Float64, Int32, Mesh, UInt8, read_only
from meshhub.toolkit.geometry import compacted, weld
from meshhub.toolkit.polygons import note_incomplete_faces, triangulate_corners

_MAX_KEY = 2**62
"""Largest combined key, below the range of int64."""


@dataclass(frozen=True, eq=False)
class VertexData:
    """Tables that corners refer to.

    positions: (n, 3).
    colors: (n, 4), white for positions without one; None without colors.
    has_color: (n,) whether the file has a color for each position; None without colors.
    uv: (t, 2).
    normals: (k, 3), of unit length.
    """

    positions: Float64
    colors: UInt8 | None
    has_color: NDArray[np.bool_] | None
    uv: Float32
    normals: Float32


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles over vertex data.

    v, vt, vn: (m, 3) rows of positions, uv and normals, -1 for none; vt and vn are None without any.
    part: (m,) part of each, ascending.
    material: (m,) material of each, -1 for none; None if no face has one.
    """

    v: Corners
    vt: Corners | None
    vn: Corners | None
    part: Int32
    material: Int32 | None


def triangulate_faces(data: VertexData, faces: Faces, part: Int32, material: Int32 | None) -> Triangles:
    """Triangulate the faces and sort them by part; within a part, keep the order of the file.

    Args:
        part: (p,) part of each face.
        material: (p,) material of each face.
    """
    note_incomplete_faces(faces.counts)
    corners, polygon = triangulate_corners(data.positions, faces.counts, faces.v)
    part = part[polygon]
    is_sorted = not len(part) or not bool((np.diff(part) < 0).any())
    if not is_sorted:
        order = np.argsort(part, kind="stable")
        corners, polygon, part = corners[order], polygon[order], part[order]
    is_unchanged = is_sorted and len(corners) * 3 == len(faces.v)  # all faces are triangles already

    def select(rows: Corners | None) -> Corners | None:
        return None if rows is None else rows.reshape(-1, 3) if is_unchanged else rows[corners]

    v = select(faces.v)
    assert v is not None
    return Triangles(v, select(faces.vt), select(faces.vn), part, None if material is None else material[polygon])


def build_meshes(data: VertexData, triangles: Triangles, names: list[str]) -> list[Mesh]:
    """Build the mesh of each part.

    Args:
        triangles: The triangles, sorted by part.
    """
    vn = _drop_incomplete_normals(triangles, len(names))
    v, vt, part = triangles.v.ravel(), triangles.vt, triangles.part
    is_single = len(names) == 1
    if is_single and (vt is None or np.array_equal(v, vt.ravel())) and (vn is None or np.array_equal(v, vn.ravel())):
        return [_build_aligned_mesh(data, triangles, vt is not None, vn is not None, names[0])]
    key, key_limit = v, len(data.positions)
    if vt is not None:
        key, key_limit = _combine_keys(key, key_limit, vt.ravel() + 1, len(data.uv) + 1)
    if vn is not None:
        key, key_limit = _combine_keys(key, key_limit, vn.ravel() + 1, len(data.normals) + 1)
    if not is_single:
        # parts ascend, so vertices that are numbered by first corner are contiguous in each part
        key, key_limit = _combine_keys(np.repeat(part, 3).astype(np.int64), len(names), key, key_limit)
    first, index = weld(key[:, None])
    faces = index.reshape(-1, 3)
    part_ends = np.searchsorted(part, np.arange(len(names)), side="right")
    meshes: list[Mesh] = []
    start = begin = 0
    for name, end in zip(names, part_ends.tolist(), strict=True):
        # the last vertex of a part has its largest number
        stop = int(faces[start:end].max()) + 1 if end > start else begin
        rows = first[begin:stop]
        positions = v[rows]
        meshes.append(
            Mesh(
                read_only(data.positions[positions]),
                read_only(faces[start:end] - np.int32(begin)),
                normals=None if vn is None else _select_rows(data.normals, vn.ravel()[rows]),
                uv=None if vt is None else _select_rows(data.uv, vt.ravel()[rows]),
                colors=_select_colors(data, positions),
                face_material=None if triangles.material is None else triangles.material[start:end],
                name=name,
            )
        )
        start, begin = end, stop
    return meshes


def _build_aligned_mesh(data: VertexData, triangles: Triangles, has_uv: bool, has_normals: bool, name: str) -> Mesh:
    """Build a single part whose corners refer to the same row of every table, so that the tables are its vertices."""
    count = len(data.positions)

    def fit(table: Float32) -> Float32:
        """Resize the table to the number of positions; rows that no corner refers to may be missing or extra."""
        result = np.zeros((count, table.shape[1]), np.float32)
        result[: len(table)] = table[:count]
        return result

    return compacted(
        Mesh(
            data.positions,
            triangles.v.astype(np.int32),
            normals=fit(data.normals) if has_normals else None,
            uv=fit(data.uv) if has_uv else None,
            colors=_select_colors(data, np.arange(count)),
            face_material=triangles.material,
            name=name,
        )
    )


def _drop_incomplete_normals(triangles: Triangles, part_count: int) -> Corners | None:
    """Return the normals; none for parts with a corner that lacks one, because an invented one would be wrong."""
    vn = triangles.vn
    if vn is None:
        return None
    is_incomplete = (vn < 0).any(axis=1)
    if not is_incomplete.any():
        return vn
    part_is_incomplete = np.bincount(triangles.part[is_incomplete], minlength=part_count) > 0
    is_dropped = part_is_incomplete[triangles.part]
    if (vn[is_dropped] >= 0).any():
        note("incomplete_normals", "some corners have no normal: dropped all normals of their parts")
    return np.where(is_dropped[:, None], -1, vn)


def _select_colors(data: VertexData, rows: Corners) -> UInt8 | None:
    """Return the colors of positions, or None if none of them has a color."""
    if data.colors is None or data.has_color is None:
        return None
    has_color = data.has_color[rows]
    if not has_color.any():
        return None
    if not has_color.all():
        note("incomplete_colors", "some vertices of colored parts have no color: made them white")
    return data.colors[rows]


def _select_rows(table: Float32, rows: Corners) -> Float32 | None:
    """Return rows of a table, zeros for -1; None if all rows are -1."""
    is_missing = rows < 0
    if is_missing.all():
        return None
    result = table[np.maximum(rows, 0)]
    result[is_missing] = 0
    return result


def _combine_keys(key: Corners, limit: int, other: Corners, other_limit: int) -> tuple[Corners, int]:
    """Combine two keys into one, and return it with its limit; renumber the first key if the product would overflow."""
    if limit * other_limit >= _MAX_KEY:
        first, index = weld(key[:, None])
        key, limit = index.astype(np.int64), len(first)
    return key * other_limit + other, limit * other_limit
