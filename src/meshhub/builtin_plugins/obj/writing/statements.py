"""OBJ statements (`v`, `vt`, `vn`, `f`) as text: formatted for all parts at once, then cut at part boundaries.

One call of the column writer costs as much as a thousand rows, so ten thousand small parts are not formatted one by
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.notes import note
from meshhub.model.scene import Int32, Mesh, UInt8
from meshhub.toolkit.columns import shortest, write_rows
from meshhub.toolkit.geometry import weld

Index = NDArray[np.intp]

_NEWLINE = 10
"""ASCII code of the line feed."""

_BYTE_FRACTIONS = np.round(np.arange(256) / 255, 3).astype(np.float32)
"""Fraction of each byte; three decimals read back as the same byte, and are shorter than the exact value."""

_OWNER_BASE = 4096
"""Base of the two digits that hold a part number in float32 columns, because one float32 is exact only up to 2²⁴."""


@dataclass(frozen=True, eq=False)
class StatementBlock:
    """Statements of one keyword for all parts.

    part_texts: Text for each part.
    rows: (n,) row, from 1, for each vertex of all parts; 0 for none.
    """

    part_texts: list[memoryview]
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FaceRun:
    """Face statements of one part and one material, -1 for none."""

    part: int
    material: int
    text: memoryview


def format_positions(meshes: Sequence[Mesh]) -> StatementBlock:
    """Format `v` statements, with colors for parts that have them.

    Vertices that were duplicated at seams in UV or normals are welded, because OBJ indexes those separately, and the
    surface stays closed.
    """
    counts = _vertex_counts(meshes)
    owner = _owners(counts)
    vertices = np.concatenate([mesh.vertices for mesh in meshes])
    has_colors = np.array([mesh.colors is not None for mesh in meshes])
    colors = _concatenate_colors(meshes) if has_colors.any() else None
    rows: NDArray[Any] = np.arange(len(vertices))
    has_seams = np.array([mesh.uv is not None or mesh.normals is not None for mesh in meshes])
    if has_seams.any():
        keys = [vertices, owner[:, None]]
        if not has_seams.all():
            # keep the vertices of other parts apart
            keys.append(np.where(np.repeat(has_seams, counts), 0, np.arange(len(vertices)))[:, None])
        if colors is not None:
            keys.append(colors)
        first, rows = weld(np.concatenate(keys, axis=1))
        vertices, colors = vertices[first], None if colors is None else colors[first]
        counts = np.bincount(owner[first], minlength=len(meshes))
    part_texts: list[memoryview] = [memoryview(b"")] * len(meshes)
    points = shortest(vertices)
    for with_colors in (False, True):
        chosen = np.flatnonzero(has_colors == with_colors)
        if len(chosen) == 0:
            continue
        mask = slice(None) if len(chosen) == len(meshes) else np.repeat(has_colors == with_colors, counts)
        columns: list[NDArray[Any]] = [points[mask, axis] for axis in range(3)]
        if with_colors and colors is not None:
            columns += [_BYTE_FRACTIONS[colors[mask, channel]] for channel in range(3)]
            if (colors[mask, 3] != 255).any():
                note("alpha_dropped", "OBJ vertex colors have no alpha: dropped the transparency")
        _cut_text(part_texts, chosen, _format_rows("v", columns), counts[chosen])
    return StatementBlock(part_texts, rows.astype(np.int64) + 1)


def format_attribute(
    keyword: str, meshes: Sequence[Mesh], tables: Sequence[NDArray[np.float32] | None]
) -> StatementBlock | None:
    """Format `vt` or `vn` statements, with each distinct row once per part; return None if no part has any.

    Args:
        tables: (vertices, k) attribute of each part.
    """
    chosen = [number for number, table in enumerate(tables) if table is not None]
    if not chosen:
        return None
    values = np.concatenate([table for table in tables if table is not None])
    counts = _vertex_counts(meshes)
    has_table = np.zeros(len(meshes), np.bool_)
    has_table[chosen] = True
    owner = _owners(counts)[np.repeat(has_table, counts)]
    keys = [values, *(digit[:, None].astype(np.float32) for digit in np.divmod(owner, _OWNER_BASE))]
    first, index = weld(values if len(chosen) == 1 else np.concatenate(keys, axis=1))
    distinct_values = values[first] + np.float32(0)
    part_texts: list[memoryview] = [memoryview(b"")] * len(meshes)
    text = _format_rows(keyword, [distinct_values[:, axis] for axis in range(distinct_values.shape[1])])
    _cut_text(part_texts, np.array(chosen), text, np.bincount(owner[first], minlength=len(meshes))[chosen])
    rows = np.zeros(int(counts.sum()), np.int64)
    rows[np.repeat(has_table, counts)] = index.astype(np.int64) + 1
    return StatementBlock(part_texts, rows)


def format_faces(
    meshes: Sequence[Mesh],
    v: StatementBlock,
    vt: StatementBlock | None,
    vn: StatementBlock | None,
    *,
    by_material: bool,
) -> list[FaceRun]:
    """Format `f` statements, in the form for the attributes that each part has.

    Args:
        v: Positions.
        vt: Texture coordinates.
        vn: Normals.
        by_material: Whether to group the faces of each part by material.
    """
    counts = _vertex_counts(meshes)
    begins = np.cumsum(counts) - counts
    corners = np.concatenate(
        [mesh.faces + np.int64(begin) for mesh, begin in zip(meshes, begins.tolist(), strict=True)]
    )
    owner = _owners(np.array([len(mesh.faces) for mesh in meshes]))
    material = np.full(len(corners), -1, np.int32)
    if by_material:
        material = np.concatenate([_face_materials(mesh) for mesh in meshes])
        order = np.lexsort((material, owner))
        corners, owner, material = corners[order], owner[order], material[order]
    is_start = (np.diff(owner, prepend=-1) != 0) | (np.diff(material, prepend=-2) != 0)
    starts = np.flatnonzero(is_start)
    lengths = np.diff(starts, append=len(corners))
    part = owner[starts]
    texts: list[memoryview] = [memoryview(b"")] * len(starts)
    has_vt = np.array([mesh.uv is not None for mesh in meshes])[part]
    has_vn = np.array([mesh.normals is not None for mesh in meshes])[part]
    for with_vt, with_vn in ((False, False), (False, True), (True, False), (True, True)):
        is_chosen = (has_vt == with_vt) & (has_vn == with_vn)
        chosen = np.flatnonzero(is_chosen)
        if len(chosen) == 0:
            continue
        blocks = [v, *([vt] if with_vt and vt is not None else []), *([vn] if with_vn and vn is not None else [])]
        separator = "//" if with_vn and not with_vt else "/"
        literals = ["f ", *([separator] * (len(blocks) - 1) + [" "]) * 2, *[separator] * (len(blocks) - 1), "\n"]
        chosen_corners = corners if len(chosen) == len(starts) else corners[np.repeat(is_chosen, lengths)]
        columns = [block.rows[chosen_corners[:, corner]] for corner in range(3) for block in blocks]
        _cut_text(texts, chosen, write_rows(literals, columns), lengths[chosen])
    return [FaceRun(*run) for run in zip(part.tolist(), material[starts].tolist(), texts, strict=True)]


def _format_rows(keyword: str, columns: Sequence[NDArray[Any]]) -> memoryview:
    return write_rows([f"{keyword} ", *[" "] * (len(columns) - 1), "\n"], columns)


def _cut_text(texts: list[memoryview], chosen: Index, text: memoryview, counts: Index) -> None:
    """Cut a text into pieces of the given line counts, and store them at the chosen indices of `texts`."""
    if len(chosen) == 1:
        texts[int(chosen[0])] = text
        return
    ends = np.append(0, np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1)
    bounds = ends[np.append(0, np.cumsum(counts))].tolist()
    for index, (start, end) in zip(chosen.tolist(), pairwise(bounds), strict=True):
        texts[index] = text[start:end]


def _vertex_counts(meshes: Sequence[Mesh]) -> Index:
    return np.array([len(mesh.vertices) for mesh in meshes], np.intp)


def _owners(counts: Index) -> Index:
    """Return the index of the part to which each vertex or face belongs."""
    return np.repeat(np.arange(len(counts)), counts)


def _concatenate_colors(meshes: Sequence[Mesh]) -> UInt8:
    """Return the vertex colors of all parts, zeros for a part without colors."""
    return np.concatenate(
        [np.zeros((len(mesh.vertices), 4), np.uint8) if mesh.colors is None else mesh.colors for mesh in meshes]
    )


def _face_materials(mesh: Mesh) -> Int32:
    return np.full(len(mesh.faces), -1, np.int32) if mesh.face_material is None else mesh.face_material
