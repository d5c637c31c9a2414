"""Tables and faces into meshes: polygons cut, corners that differ made vertices, parts told apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading.faces import Faces
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Float64, Int32, Mesh, UInt8
from meshhub.toolkit.geometry import compacted, weld
from meshhub.toolkit.polygons import triangulate_corners

Corners = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tables:
    """What corners refer to: (n, 3) positions, (t, 2) uv, (k, 3) unit normals.

    colors, colored: (n, 4) colours of the positions, and which of them the file gives, (n,); white where not.
    """

    positions: Float64
    colors: UInt8 | None
    colored: NDArray[np.bool_] | None
    uv: Float32
    normals: Float32


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles over the tables, a row for each: (m, 3) rows of positions, uv and normals, -1 for none.

    part, material: (m,) of each triangle; material is None when no face has one.
    """

    v: Corners
    vt: Corners | None
    vn: Corners | None
    part: Int32
    material: Int32 | None


def cut(tables: Tables, faces: Faces, part: Int32, material: Int32 | None) -> Triangles:
    """The faces as triangles, those of a part together and in the file's order."""
    short = int((faces.counts < 3).sum())
    if short:
        note("incomplete_faces", f"{short} of {len(faces.counts)} faces have fewer than three corners: left out")
    corners, polygon = triangulate_corners(tables.positions, faces.counts, faces.v)
    part = part[polygon]
    order: NDArray[np.intp] | None = None
    if len(part) and (np.diff(part) < 0).any():
        order = np.argsort(part, kind="stable")
        corners, polygon, part = corners[order], polygon[order], part[order]
    whole = order is None and len(corners) * 3 == len(faces.v)  # triangles all, as they stand in the file

    def placed(rows: Corners | None) -> Corners | None:
        return None if rows is None else rows.reshape(-1, 3) if whole else rows[corners]

    v = placed(faces.v)
    assert v is not None
    return Triangles(v, placed(faces.vt), placed(faces.vn), part, None if material is None else material[polygon])


def meshes(tables: Tables, triangles: Triangles, names: list[str]) -> list[Mesh]:
    """A mesh for each part."""
    vn = _whole_normals(triangles, len(names))
    v, vt, part = triangles.v.ravel(), triangles.vt, triangles.part
    alone = len(names) == 1
    if alone and (vt is None or np.array_equal(v, vt.ravel())) and (vn is None or np.array_equal(v, vn.ravel())):
        return [_plain(tables, triangles, vt is not None, vn is not None, names[0])]
    key, spans = v, len(tables.positions)
    if vt is not None:
        key, spans = _joined(key, spans, vt.ravel() + 1, len(tables.uv) + 1)
    if vn is not None:
        key, spans = _joined(key, spans, vn.ravel() + 1, len(tables.normals) + 1)
    if not alone:
        # parts are ascending, so vertices numbered as they are met lie together part by part
        key, spans = _joined(np.repeat(part, 3).astype(np.int64), len(names), key, spans)
    first, index = weld(key[:, None])
    faces = index.reshape(-1, 3)
    ends = np.searchsorted(part, np.arange(len(names)), side="right")
    made: list[Mesh] = []
    start = begin = 0
    for name, end in zip(names, ends.tolist(), strict=True):
        # numbered as met: the last vertex of a part is its largest
        stop = int(faces[start:end].max()) + 1 if end > start else begin
        rows = first[begin:stop]
        positions = v[rows]
        made.append(
            Mesh(
                tables.positions[positions],
                faces[start:end] - np.int32(begin),
                normals=None if vn is None else _taken(tables.normals, vn.ravel()[rows]),
                uv=None if vt is None else _taken(tables.uv, vt.ravel()[rows]),
                colors=_colors(tables, positions),
                face_material=None if triangles.material is None else triangles.material[start:end],
                name=name,
            )
        )
        start, begin = end, stop
    return made


def _plain(tables: Tables, triangles: Triangles, uv: bool, normals: bool, name: str) -> Mesh:
    """One part whose corners name the same row of every table: the tables are its vertices."""
    count = len(tables.positions)

    def fitted(table: Float32) -> Float32:
        """As many rows as there are positions; rows that no corner names may be missing or too many."""
        made = np.zeros((count, table.shape[1]), np.float32)
        made[: len(table)] = table[:count]
        return made

    return compacted(
        Mesh(
            tables.positions,
            triangles.v.astype(np.int32),
            normals=fitted(tables.normals) if normals else None,
            uv=fitted(tables.uv) if uv else None,
            colors=_colors(tables, np.arange(count)),
            face_material=triangles.material,
            name=name,
        )
    )


def _whole_normals(triangles: Triangles, parts: int) -> Corners | None:
    """The normals, without those of parts where a corner has none: a made-up one would shade it wrongly."""
    vn = triangles.vn
    if vn is None:
        return None
    lacks = (vn < 0).any(axis=1)
    if not lacks.any():
        return vn
    lacking = np.bincount(triangles.part[lacks], minlength=parts) > 0
    if (vn[lacking[triangles.part]] >= 0).any():
        note("incomplete_normals", "some corners have no normal: the normals of their parts were left out")
    return np.where(lacking[triangles.part][:, None], -1, vn)


def _colors(tables: Tables, rows: Corners) -> UInt8 | None:
    """The colours of some positions, white where there is none; None when there is no other."""
    if tables.colors is None or tables.colored is None:
        return None
    given = tables.colored[rows]
    if not given.any():
        return None
    if not given.all():
        note("incomplete_colors", "some vertices of coloured parts have no colour: white was taken")
    return tables.colors[rows]


def _taken(table: Float32, rows: Corners) -> Float32 | None:
    """Rows of a table, zeros for -1; None when there is nothing else."""
    missing = rows < 0
    if missing.all():
        return None
    found = table[np.maximum(rows, 0)]
    found[missing] = 0
    return found


def _joined(key: Corners, spans: int, other: Corners, more: int) -> tuple[Corners, int]:
    """Two numbers as one; numbered anew first where the product would not fit."""
    if spans * more >= 2**62:
        first, index = weld(key[:, None])
        key, spans = index.astype(np.int64), len(first)
    return key * more + other, spans * more
