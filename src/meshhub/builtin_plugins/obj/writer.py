"""Writes OBJ: an object for each part, a run of faces for each material, numbers by columns."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj import ObjWriterOptions
from meshhub.builtin_plugins.obj.mtl_writer import Library
from meshhub.builtin_plugins.obj.names import Names
from meshhub.capabilities import Frame
from meshhub.columns import shortest, write_rows
from meshhub.geometry import baked, to_frame, weld
from meshhub.notes import did, note
from meshhub.scene import Float32, Int32, Mesh, Scene, UInt8
from meshhub.source import Target

Index = NDArray[np.signedinteger[Any]]


def write(scene: Scene, target: Target, options: ObjWriterOptions) -> None:
    """The placed scene as OBJ; materials and their pictures become companions."""
    scene = baked(to_frame(scene, Frame(scene.frame.unit, options.obj_up)))
    filled = [part for part in scene.parts if len(scene.meshes[part.mesh].faces)]
    used = scene.used_materials()
    textured = any(scene.meshes[part.mesh].uv is not None for part in filled)
    library = Library(scene, (-1, *used) if _bare(scene) else used, textured=textured) if used else None
    names = Names("part")
    with target.open() as file:
        file.write(f"# meshhub, {scene.frame.unit}, {options.obj_up.upper()} up\n".encode())
        if library is not None:
            file.write(f"mtllib {library.name}\n".encode())
        before = [1, 1, 1]
        for part in filled:
            if len(filled) > 1 or part.name:
                file.write(f"o {names.unique(part.name)}\n".encode())
            _write_mesh(file, scene.meshes[part.mesh], before, library)
    if library is not None:
        for name, data in library.files.items():
            target.companion(name, data)
        did(companions=len(library.files))


def _bare(scene: Scene) -> bool:
    """Whether some face has no material."""
    shown = [scene.meshes[part.mesh].face_material for part in scene.parts]
    return any(own is None or bool((own < 0).any()) for own in shown)


def _write_mesh(file: BinaryIO, mesh: Mesh, before: list[int], library: Library | None) -> None:
    """One object; `before` counts the rows of positions, uv and normals so far, from 1, and is moved on.

    Seams cut only what differs there: each table is welded by itself, so that the surface stays whole.
    """
    vertex: Int32 | None = None
    vertices, colors = mesh.vertices, mesh.colors
    if mesh.uv is not None or mesh.normals is not None:
        rows = vertices if colors is None else np.concatenate([vertices, colors], axis=1)
        first, vertex = weld(rows)
        vertices, colors = vertices[first], None if colors is None else colors[first]
    _write_positions(file, vertices, colors)
    indices: list[Index | None] = [_corners(mesh.faces, vertex, before[0]), None, None]
    lengths = [len(vertices), 0, 0]
    for slot, keyword, table in ((1, "vt", mesh.uv), (2, "vn", mesh.normals)):
        if table is not None:
            first, index = weld(table)
            file.write(_table(keyword, table[first]))
            indices[slot] = _corners(mesh.faces, index, before[slot])
            lengths[slot] = len(first)
    _write_faces(file, indices, mesh.face_material, library)
    for slot, length in enumerate(lengths):
        before[slot] += length


def _corners(faces: Int32, index: Int32 | None, start: int) -> Index:
    rows: Index = faces if index is None else index[faces]
    return rows + np.int64(start)


def _table(keyword: str, table: NDArray[Any]) -> memoryview:
    width = table.shape[1]
    table = shortest(table)
    return write_rows([f"{keyword} ", *[" "] * (width - 1), "\n"], [table[:, axis] for axis in range(width)])


def _write_positions(file: BinaryIO, vertices: NDArray[np.float64], colors: UInt8 | None) -> None:
    if colors is None:
        file.write(_table("v", vertices))
        return
    if (colors[:, 3] != 255).any():
        note("alpha_dropped", "OBJ holds colours of vertices without transparency: it was left out")
    # a byte in three decimals reads back as the same byte, and is shorter than exact
    shades: Float32 = np.round(np.arange(256) / 255, 3).astype(np.float32)
    channels = [shades[colors[:, channel]] for channel in range(3)]
    points = shortest(vertices)
    file.write(write_rows(["v ", *[" "] * 5, "\n"], [*(points[:, axis] for axis in range(3)), *channels]))


def _write_faces(
    file: BinaryIO, indices: list[Index | None], face_material: Int32 | None, library: Library | None
) -> None:
    """Faces in the form that what is there asks for, those of one material together."""
    given = [index for index in indices if index is not None]
    between = "//" if indices[1] is None else "/"
    literals = ["f "] + ([between] * (len(given) - 1) + [" "]) * 2 + [between] * (len(given) - 1) + ["\n"]

    def rows(chosen: slice | NDArray[np.intp]) -> memoryview:
        return write_rows(literals, [index[chosen, corner] for corner in range(3) for index in given])

    if library is None:
        file.write(rows(slice(None)))
        return
    if face_material is None:
        # a material stays in force over objects, so faces without one need to say so
        file.write(f"usemtl {library.names[-1]}\n".encode())
        file.write(rows(slice(None)))
        return
    order = np.argsort(face_material, kind="stable")
    shown = face_material[order]
    starts = np.flatnonzero(np.diff(shown, prepend=shown[0] - 1))
    for chosen, material in zip(np.split(order, starts[1:]), shown[starts].tolist(), strict=True):
        file.write(f"usemtl {library.names[material]}\n".encode())
        file.write(rows(chosen))
