"""OBJ reader: objects and groups become parts, companions give the materials."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj import ObjReaderOptions
from meshhub.builtin_plugins.obj.reading import lines as statements
from meshhub.builtin_plugins.obj.reading.appearance import ObjMaterials, apply_transforms, read_materials
from meshhub.builtin_plugins.obj.reading.faces import Faces, read_faces
from meshhub.builtin_plugins.obj.reading.lines import Lines, split_lines
from meshhub.builtin_plugins.obj.reading.meshes import VertexData, build_meshes, triangulate_faces
from meshhub.builtin_plugins.obj.reading.number_rows import NumberRows, read_number_rows
from meshhub.builtin_plugins.obj.reading.parts import assign_materials, assign_parts
from meshhub.errors import OTHER_KIND, EmptyModel, UnreadableFile
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Part, Scene, UInt8
from meshhub.model.source import Source
from meshhub.toolkit.geometry import unit_vectors

_POLYPAINT = re.compile(rb"(?m)^#MRGB ([0-9A-Fa-f]+) *$")
"""Comment with the colors of the next vertices, up to 64."""


def read(source: Source, options: ObjReaderOptions) -> Scene:
    """Read an OBJ file.

    Returns:
        Scene in the units of the file.
    Raises:
        UnreadableFile: A line is damaged, or the file is not OBJ.
        EmptyModel: The file has no faces.
        ModelTooComplex: A face has too many corners.
    """
    lines = split_lines(source.read())
    points = read_number_rows(lines, statements.V, "f8", 3)
    uv = read_number_rows(lines, statements.VT, "f4", 1)
    normals = read_number_rows(lines, statements.VN, "f4", 3)
    _check_keywords(lines)
    faces = read_faces(lines, (len(points.rows), len(uv.rows), len(normals.rows)))
    ignored = lines.ignored_elements()
    if len(faces.counts) == 0 or int(faces.counts.max()) < 3:
        raise _no_faces(len(points.rows), ignored)
    if ignored:
        note("ignored_elements", f"the OBJ also has {', '.join(ignored)}: read only its faces")
    _check_positions(lines, points, faces)
    colors, has_color = _read_colors(points)
    if colors is None:
        colors, has_color = _read_polypaint(lines, len(points.rows))
    _note_non_finite({"texture coordinates": uv.rows[:, :2], "normals": normals.rows[:, :3]})
    data = VertexData(
        np.ascontiguousarray(points.rows[:, :3]),
        colors,
        has_color,
        _clean_uv(uv.rows),
        _normalize(normals.rows[:, :3]),
    )
    part, part_names = assign_parts(lines, faces)
    material, material_names = assign_materials(lines, faces.line)
    triangles = triangulate_faces(data, faces, part, material)
    materials = ObjMaterials()
    if material_names:
        materials = read_materials(source, lines, material_names, ignores_gray=options.obj_kd == "ignore")
    if materials.transforms and triangles.vt is not None and triangles.material is not None:
        uv_table, rows = apply_transforms(data.uv, triangles.vt, triangles.material, materials.transforms)
        data, triangles = replace(data, uv=uv_table), replace(triangles, vt=rows)
    meshes = build_meshes(data, triangles, [part_name.name for part_name in part_names])
    kept = [(mesh, part_name) for mesh, part_name in zip(meshes, part_names, strict=True) if len(mesh.faces)]
    return Scene(
        tuple(mesh for mesh, _ in kept),
        tuple(Part(index, name=part_name.name, path=part_name.path) for index, (_, part_name) in enumerate(kept)),
        materials.materials,
        materials.images,
    )


def _note_non_finite(tables: dict[str, Float32]) -> None:
    """Note rows of optional tables that are read as 0 because they are not finite."""
    for label, rows in tables.items():
        count = int((~np.isfinite(rows).all(axis=1)).sum())
        if count:
            note("value_ignored", f"{count} {label} of the OBJ are not finite numbers: read as 0")


def _check_keywords(lines: Lines) -> None:
    """Reject numbers without a keyword, such as a damaged vertex, whose loss would shift the indices of others.

    Raises:
        UnreadableFile: The message names the line.
    """
    numbers = lines.find_numbers_without_keyword() if len(lines.find(statements.F)) else None
    if numbers is not None:
        raise lines.error(numbers, "the line has numbers without a keyword")


def _check_positions(lines: Lines, points: NumberRows, faces: Faces) -> None:
    """Reject a vertex of a face that is not finite. Raises UnreadableFile, which names the line."""
    is_finite = np.isfinite(points.rows[:, :3]).all(axis=1)
    if is_finite.all():
        return
    bad = faces.v[~is_finite[faces.v]]
    if len(bad):
        raise lines.error(int(lines.find(statements.V)[bad.min()]), "a coordinate is not a finite number")


def _no_faces(point_count: int, ignored: list[str]) -> EmptyModel | UnreadableFile:
    if ignored:
        return EmptyModel(f"the OBJ has only {', '.join(ignored)}, and no faces; export the model as a mesh")
    if point_count:
        return EmptyModel(f"the OBJ has {point_count} points and no faces; export the model as a mesh")
    return UnreadableFile(
        "the file has no vertices and no faces, so it is not Wavefront OBJ; export the model again", values=OTHER_KIND
    )


def _read_colors(points: NumberRows) -> tuple[UInt8 | None, NDArray[np.bool_] | None]:
    """Return the (n, 4) colors after the positions, and which vertices have one; None without colors.

    Colors range to 255 if any value is above 1, otherwise to 1. Vertices without a color get opaque white.
    """
    width, counts = points.rows.shape[1], points.counts
    if width < 6:
        weights = points.rows[:, 3:4] if counts is None else points.rows[counts > 3, 3:4]
        if (weights != 1).any():
            note("weights_ignored", "the OBJ has weights after x, y, z, which apply only to curves and were ignored")
        return None, None
    values = np.ones((len(points.rows), 4))
    values[:, : min(width - 3, 4)] = points.rows[:, 3:7]
    has_color: NDArray[np.bool_] = np.asarray(np.isfinite(values[:, :3]).all(axis=1))
    if counts is not None:
        has_color &= counts >= 6
    if not has_color.any():
        return None, None
    scale = 1.0 if float(values[has_color, :3].max()) > 1 else 255.0
    lacks_alpha = ~np.isfinite(values[:, 3]) if counts is None else ~np.isfinite(values[:, 3]) | (counts < 7)
    values[lacks_alpha | (width < 7), 3] = 255 / scale
    values[~has_color] = 255 / scale
    colors = np.clip(np.rint(values * scale), 0, 255).astype(np.uint8)
    if not colors[has_color, 3].any():
        colors[:, 3] = 255
        note("alpha_zero", "all colors in the OBJ are fully transparent: read as opaque")
    return colors, has_color


def _read_polypaint(lines: Lines, count: int) -> tuple[UInt8 | None, NDArray[np.bool_] | None]:
    """Return the colors in comments of ZBrush, `#MRGB MMRRGGBB…`, as `_read_colors` does; MM is a mask for sculpting.

    None without one for each vertex, and beside materials, whose textures usually show the same colors.
    """
    text = bytes(lines.join(lines.find(statements.COMMENT_M)))
    digits = b"".join(_POLYPAINT.findall(text))
    if len(lines.find(statements.MTLLIB)):
        return None, None
    if len(digits) != 8 * count:
        if digits:
            note(
                "value_ignored", f"{len(digits) // 8} colors in comments (#MRGB) do not match {count} vertices: ignored"
            )
        return None, None
    rows = np.frombuffer(bytes.fromhex(digits.decode()), np.uint8).reshape(-1, 4)
    colors = np.column_stack([rows[:, 1:], np.full(count, 255, np.uint8)])
    return colors, np.ones(count, np.bool_)


def _clean_uv(rows: Float32) -> Float32:
    """Return (t, 2) texture coordinates; 0 replaces missing numbers, NaN and infinity."""
    uv = np.zeros((len(rows), 2), np.float32)
    width = min(rows.shape[1], 2)
    uv[:, :width] = rows[:, :width]
    return np.nan_to_num(uv, copy=False, nan=0, posinf=0, neginf=0)


def _normalize(normals: Float32) -> Float32:
    """Return normals of unit length; 0 replaces NaN and infinity."""
    finite = np.nan_to_num(normals.astype(np.float64), copy=False, nan=0, posinf=0, neginf=0)
    return unit_vectors(finite).astype(np.float32)
