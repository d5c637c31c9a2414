"""A scene's tables and faces as OBJ text: made whole by columns, then cut where parts begin.

A call of the column writer costs as much as a thousand rows, so ten thousand small parts are not
written one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.notes import note
from meshhub.model.scene import Int32, Mesh
from meshhub.toolkit.columns import shortest, write_rows
from meshhub.toolkit.geometry import weld

Index = NDArray[np.intp]

_NEWLINE = 10
_SHADES = np.round(np.arange(256) / 255, 3).astype(np.float32)
"""A byte in three decimals reads back as the same byte, and is shorter than exact."""


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of each part as text, and for each vertex of all parts the row it shows, counted from 1; 0 for none."""

    pieces: list[memoryview]
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Run:
    """Faces of one part that show one material, -1 for none, as text."""

    part: int
    material: int
    text: memoryview


def positions(meshes: Sequence[Mesh]) -> Table:
    """`v`, with colours where a part has them.

    Seams in UV or normals double vertices, which OBJ does not need: they are welded, and the surface stays whole.
    """
    counts = _counts(meshes)
    vertices = np.concatenate([mesh.vertices for mesh in meshes])
    colored = np.array([mesh.colors is not None for mesh in meshes])
    colors = _filled([mesh.colors for mesh in meshes], counts, 4, np.uint8) if colored.any() else None
    rows: NDArray[Any] = np.arange(len(vertices))
    sewn = np.array([mesh.uv is not None or mesh.normals is not None for mesh in meshes])
    if sewn.any():
        apart = np.where(np.repeat(sewn, counts), 0, np.arange(len(vertices)))
        owner = _owner(counts)
        keys = [vertices, owner[:, None]] if sewn.all() else [vertices, owner[:, None], apart[:, None]]
        first, rows = weld(np.concatenate(keys if colors is None else [*keys, colors], axis=1))
        vertices, colors = vertices[first], None if colors is None else colors[first]
        counts = np.bincount(owner[first], minlength=len(meshes))
    pieces: list[memoryview] = [memoryview(b"")] * len(meshes)
    points = shortest(vertices)
    for with_colors in (False, True):
        chosen = np.flatnonzero(colored == with_colors)
        if len(chosen) == 0:
            continue
        mask = slice(None) if len(chosen) == len(meshes) else np.repeat(colored == with_colors, counts)
        columns: list[NDArray[Any]] = [points[mask, axis] for axis in range(3)]
        if with_colors and colors is not None:
            columns += [_SHADES[colors[mask, channel]] for channel in range(3)]
            if (colors[mask, 3] != 255).any():
                note("alpha_dropped", "OBJ holds colours of vertices without transparency: it was left out")
        _place(pieces, chosen, _rows("v", columns), counts[chosen])
    return Table(pieces, rows.astype(np.int64) + 1)


def coordinates(keyword: str, meshes: Sequence[Mesh], tables: Sequence[NDArray[np.float32] | None]) -> Table | None:
    """`vt` or `vn` of the parts that have them, each row once a part; None without any."""
    chosen = [number for number, table in enumerate(tables) if table is not None]
    if not chosen:
        return None
    values = np.concatenate([table for table in tables if table is not None])
    counts = _counts(meshes)
    has = np.zeros(len(meshes), np.bool_)
    has[chosen] = True
    owner = _owner(counts)[np.repeat(has, counts)]
    # the owner as bits of a float32 would be rounded from 2²⁴ on, and many parts have few vertices each
    keys = [values, (owner // 4096)[:, None].astype(np.float32), (owner % 4096)[:, None].astype(np.float32)]
    first, index = weld(values if len(chosen) == 1 else np.concatenate(keys, axis=1))
    kept = values[first] + np.float32(0)
    pieces: list[memoryview] = [memoryview(b"")] * len(meshes)
    text = _rows(keyword, [kept[:, axis] for axis in range(kept.shape[1])])
    _place(pieces, np.array(chosen), text, np.bincount(owner[first], minlength=len(meshes))[chosen])
    rows = np.zeros(int(counts.sum()), np.int64)
    rows[np.repeat(has, counts)] = index.astype(np.int64) + 1
    return Table(pieces, rows)


def faces(meshes: Sequence[Mesh], v: Table, vt: Table | None, vn: Table | None, *, by_material: bool) -> list[Run]:
    """The faces of each part, those of one material together, in the form that the part's tables ask for."""
    counts = _counts(meshes)
    begins = np.cumsum(counts) - counts
    corners = np.concatenate(
        [mesh.faces + np.int64(begin) for mesh, begin in zip(meshes, begins.tolist(), strict=True)]
    )
    owner = _owner(np.array([len(mesh.faces) for mesh in meshes]))
    material = np.full(len(corners), -1, np.int32)
    if by_material:
        shown = [_materials(mesh) for mesh in meshes]
        material = np.concatenate(shown)
        order = np.lexsort((material, owner))
        corners, owner, material = corners[order], owner[order], material[order]
    changes = (np.diff(owner, prepend=-1) != 0) | (np.diff(material, prepend=-2) != 0)
    starts = np.flatnonzero(changes)
    lengths = np.diff(starts, append=len(corners))
    part = owner[starts]
    texts: list[memoryview] = [memoryview(b"")] * len(starts)
    form = np.array([(mesh.uv is not None) * 2 + (mesh.normals is not None) for mesh in meshes])[part]
    for kind in np.unique(form).tolist():
        tables = [v, *([vt] if kind & 2 and vt is not None else []), *([vn] if kind & 1 and vn is not None else [])]
        between = "//" if kind == 1 else "/"
        literals = ["f ", *([between] * (len(tables) - 1) + [" "]) * 2, *[between] * (len(tables) - 1), "\n"]
        chosen = np.flatnonzero(form == kind)
        mine = corners if len(chosen) == len(starts) else corners[np.repeat(form == kind, lengths)]
        text = write_rows(literals, [table.rows[mine[:, corner]] for corner in range(3) for table in tables])
        _place(texts, chosen, text, lengths[chosen])
    return [Run(*run) for run in zip(part.tolist(), material[starts].tolist(), texts, strict=True)]


def _rows(keyword: str, columns: Sequence[NDArray[Any]]) -> memoryview:
    return write_rows([f"{keyword} ", *[" "] * (len(columns) - 1), "\n"], columns)


def _place(pieces: list[memoryview], chosen: Index, text: memoryview, counts: Index) -> None:
    """Cut a text after so many lines each, and put what comes of it in the chosen places."""
    if len(chosen) == 1:
        pieces[int(chosen[0])] = text
        return
    ends = np.append(0, np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1)
    bounds = ends[np.append(0, np.cumsum(counts))].tolist()
    for place, (start, end) in zip(chosen.tolist(), pairwise(bounds), strict=True):
        pieces[place] = text[start:end]


def _counts(meshes: Sequence[Mesh]) -> Index:
    return np.array([len(mesh.vertices) for mesh in meshes], np.intp)


def _owner(counts: Index) -> Index:
    return np.repeat(np.arange(len(counts)), counts)


def _filled(tables: Sequence[NDArray[Any] | None], counts: Index, width: int, dtype: type[np.generic]) -> NDArray[Any]:
    """The parts' tables one below the other, zeros for a part without one."""
    return np.concatenate(
        [
            np.zeros((count, width), dtype) if table is None else table
            for table, count in zip(tables, counts.tolist(), strict=True)
        ]
    )


def _materials(mesh: Mesh) -> Int32:
    return np.full(len(mesh.faces), -1, np.int32) if mesh.face_material is None else mesh.face_material
