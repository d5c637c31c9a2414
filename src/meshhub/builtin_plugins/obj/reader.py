"""Reads OBJ: tables, faces, objects and groups as parts, materials from the files beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.reading import lines as words
from meshhub.builtin_plugins.obj.reading.appearance import Surfaces, read_surfaces, with_transforms
from meshhub.builtin_plugins.obj.reading.build import Tables, cut, meshes
from meshhub.builtin_plugins.obj.reading.faces import read_faces
from meshhub.builtin_plugins.obj.reading.lines import split
from meshhub.builtin_plugins.obj.reading.numbers import Table, read_table
from meshhub.builtin_plugins.obj.reading.parts import materials_of_faces, parts_of_faces
from meshhub.errors import EmptyModel, UnreadableFile
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Part, Scene, UInt8
from meshhub.model.source import Source


def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """An OBJ file as a scene, in the file's own numbers.

    Raises UnreadableFile, EmptyModel, ModelTooComplex.
    """
    lines = split(source.read())
    points = read_table(lines, words.V, "f8", 3)
    uv = read_table(lines, words.VT, "f4", 1)
    normals = read_table(lines, words.VN, "f4", 3)
    faces = read_faces(lines, (len(points.rows), len(uv.rows), len(normals.rows)))
    others = lines.others()
    if len(faces.counts) == 0 or int(faces.counts.max()) < 3:
        raise _empty(len(points.rows), others)
    if others:
        note("ignored_elements", f"the OBJ also holds {', '.join(others)}: only its faces were read")
    colors, colored = _colors(points)
    tables = Tables(
        np.ascontiguousarray(points.rows[:, :3]),
        colors,
        colored,
        _uv(uv.rows),
        _units(normals.rows[:, :3]),
    )
    part, places = parts_of_faces(lines, faces)
    material, names = materials_of_faces(lines, faces.line)
    triangles = cut(tables, faces, part, material)
    surfaces = read_surfaces(source, lines, names) if names else Surfaces()
    if surfaces.transforms and triangles.vt is not None and triangles.material is not None:
        table, rows = with_transforms(tables.uv, triangles.vt, triangles.material, surfaces.transforms)
        tables, triangles = replace(tables, uv=table), replace(triangles, vt=rows)
    made = meshes(tables, triangles, [place.name for place in places])
    kept = [index for index, mesh in enumerate(made) if len(mesh.faces)]
    return Scene(
        tuple(made[index] for index in kept),
        tuple(Part(row, name=places[index].name, path=places[index].path) for row, index in enumerate(kept)),
        surfaces.materials,
        surfaces.images,
    )


def _empty(points: int, others: list[str]) -> EmptyModel | UnreadableFile:
    if others:
        return EmptyModel(f"the OBJ holds only {', '.join(others)}, and no faces; export the model as a mesh")
    if points:
        return EmptyModel(f"the OBJ holds {points} points and no faces; export the model as a mesh")
    return UnreadableFile("no vertices and no faces are in the file: it is no Wavefront OBJ; export the model again")


def _colors(points: Table) -> tuple[UInt8 | None, NDArray[np.bool_] | None]:
    """(n, 4) colours written after the positions, 0 to 1 or 0 to 255, and which vertices have one."""
    width, counts = points.rows.shape[1], points.counts
    if width < 6:
        weights = points.rows[:, 3:4] if counts is None else points.rows[counts > 3, 3:4]
        if (weights != 1).any():
            note("weights_ignored", "the OBJ gives weights after x, y, z, which are for curves: they were left out")
        return None, None
    given = np.ones((len(points.rows), 4))
    given[:, : min(width - 3, 4)] = points.rows[:, 3:7]
    there: NDArray[np.bool_] = np.asarray(np.isfinite(given[:, :3]).all(axis=1))
    if counts is not None:
        there &= counts >= 6
    if not there.any():
        return None, None
    scale = 1.0 if float(given[there, :3].max()) > 1 else 255.0
    without = ~np.isfinite(given[:, 3]) if counts is None else ~np.isfinite(given[:, 3]) | (counts < 7)
    given[without | (width < 7), 3] = 255 / scale
    given[~there] = 255 / scale
    made = np.clip(np.rint(given * scale), 0, 255).astype(np.uint8)
    if not made[there, 3].any():
        made[:, 3] = 255
        note("alpha_zero", "every colour in the OBJ is wholly transparent: read as opaque")
    return made, there


def _uv(rows: Float32) -> Float32:
    """(t, 2) texture coordinates; what is missing or no number is 0."""
    made = np.zeros((len(rows), 2), np.float32)
    width = min(rows.shape[1], 2)
    made[:, :width] = rows[:, :width]
    return np.nan_to_num(made, copy=False, nan=0, posinf=0, neginf=0)


def _units(rows: Float32) -> Float32:
    """Normals of unit length; what is no number is 0."""
    wide = np.nan_to_num(rows.astype(np.float64), copy=False, nan=0, posinf=0, neginf=0)
    length = np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    unit: Float32 = np.divide(wide, length, out=wide, where=length > 0).astype(np.float32)
    return unit
