"""PLY writer: the placed scene as one mesh, binary (little endian) or text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply import PlyWriterOptions
from meshhub.errors import ConversionFailed
from meshhub.model.notes import advise_reduction, note
from meshhub.model.scene import Float32, Float64, Int32, Mesh, Scene, UInt8
from meshhub.model.source import Target
from meshhub.toolkit.colors import multiply_colors
from meshhub.toolkit.geometry import baked

_MAX_FLOAT_SHIFT_RATIO = 1e-7
"""Largest shift of a vertex, as a share of the model's size, for which coordinates are written as float.

Near the origin, float32 always suffices; a small model far away from it needs double.
"""

_WHITE = np.full(4, 255, np.uint8)

_TYPE_NAMES = {"f4": "float", "f8": "double", "u1": "uchar"}

Columns = list[tuple[str, NDArray[np.generic]]]


def write(scene: Scene, target: Target, options: PlyWriterOptions) -> None:
    """Write the placed parts of a scene as one PLY mesh.

    Material colors become vertex colors, multiplied with the mesh's own; vertices are duplicated along the borders
    between colors.

    Raises:
        ConversionFailed: The scene has more vertices than PLY can index.
    """
    meshes = [mesh for mesh in baked(scene).meshes if len(mesh.faces)]
    mesh = _merge(_apply_materials(meshes, scene))
    columns = _vertex_columns(mesh)
    lines = [
        "ply",
        f"format {'ascii' if options.ply_ascii else 'binary_little_endian'} 1.0",
        "comment written by meshhub",
        "comment unit: millimetre",
    ]
    lines.append(f"element vertex {len(mesh.vertices)}")
    lines += [f"property {_TYPE_NAMES[values.dtype.str[1:]]} {name}" for name, values in columns]
    lines += [f"element face {len(mesh.faces)}", "property list uchar int vertex_indices", "end_header", ""]
    with target.open() as file:
        file.write("\n".join(lines).encode("ascii"))
        if options.ply_ascii:
            from meshhub.toolkit.columns import write_rows

            file.write(write_rows(["", *[" "] * (len(columns) - 1), "\n"], [values for _, values in columns]))
            file.write(write_rows(["3 ", " ", " ", "\n"], list(mesh.faces.T)))
            return
        rows = np.empty(len(mesh.vertices), [(name, values.dtype.newbyteorder("<")) for name, values in columns])
        for name, values in columns:
            rows[name] = values
        file.write(rows.data)
        faces = np.empty(len(mesh.faces), [("count", "u1"), ("corners", "<i4", 3)])
        faces["count"] = 3
        faces["corners"] = mesh.faces
        file.write(faces.data)


def _vertex_columns(mesh: Mesh) -> Columns:
    """Return the vertex properties and their names, in file order."""
    vertices = _narrow_coordinates(mesh.vertices)
    columns: Columns = [(name, vertices[:, axis]) for axis, name in enumerate("xyz")]
    if mesh.normals is not None:
        columns += [(name, mesh.normals[:, axis] + np.float32(0)) for axis, name in enumerate(("nx", "ny", "nz"))]
    if mesh.uv is not None:
        columns += [(name, mesh.uv[:, axis] + np.float32(0)) for axis, name in enumerate("st")]
    if mesh.colors is not None:
        names = ("red", "green", "blue", "alpha") if (mesh.colors[:, 3] < 255).any() else ("red", "green", "blue")
        columns += [(name, mesh.colors[:, channel]) for channel, name in enumerate(names)]
    return columns


def _narrow_coordinates(vertices: Float64) -> Float32 | Float64:
    """Return the vertices as float32 if that is exact enough (`_MAX_FLOAT_SHIFT_RATIO`), otherwise as float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = vertices.astype(np.float32)
        # axis by axis, because the differences of all take as much memory as the mesh
        shift = max(float(np.abs(narrow[:, axis] - vertices[:, axis]).max()) for axis in range(3))
    size = float(np.linalg.norm(np.ptp(vertices, axis=0)))
    if shift <= _MAX_FLOAT_SHIFT_RATIO * size:
        return narrow + np.float32(0)
    return vertices + 0.0


def _apply_materials(meshes: list[Mesh], scene: Scene) -> list[Mesh]:
    """Give all meshes vertex colors if any mesh has colors or a colored material; otherwise, return them unchanged."""
    base_colors = np.array([material.base_color for material in scene.materials], np.float64).reshape(-1, 4)
    palette = np.concatenate([_WHITE[None], np.clip(np.rint(base_colors * 255), 0, 255).astype(np.uint8)])
    has_tint = [
        mesh.face_material is not None and bool((palette[np.unique(mesh.face_material) + 1] != 255).any())
        for mesh in meshes
    ]
    if any(has_tint):
        note("materials_as_colors", "PLY has no materials: wrote their colors as vertex colors")
    elif not any(mesh.colors is not None for mesh in meshes):
        return meshes
    return [
        _apply_palette(mesh, palette) if is_tinted or mesh.colors is None else mesh
        for mesh, is_tinted in zip(meshes, has_tint, strict=True)
    ]


def _apply_palette(mesh: Mesh, palette: UInt8) -> Mesh:
    """Color the vertices by the materials of their faces, multiplied with the mesh's own colors.

    Args:
        mesh: Any frame.
        palette: (materials + 1, 4) colors; the first is for faces without a material.
    """
    if mesh.face_material is None:
        return replace(mesh, colors=np.broadcast_to(_WHITE, (len(mesh.vertices), 4)))
    # no border is needed between materials of one color, so each is replaced by the last material of its color
    _, color_index = np.unique(palette.view("<u4")[:, 0], return_inverse=True)
    representative = np.zeros(len(palette), np.int64)
    representative[color_index] = np.arange(len(palette))
    corner_color = representative[color_index][mesh.face_material + 1].repeat(3)
    corner_vertex = mesh.faces.reshape(-1)
    vertex_color = np.zeros(len(mesh.vertices), np.int64)
    vertex_color[corner_vertex] = corner_color
    # corners whose color differs from that of their vertex share a duplicate per vertex and color
    differing = np.flatnonzero(vertex_color[corner_vertex] != corner_color)
    keys = corner_vertex[differing] * np.int64(len(palette)) + corner_color[differing]
    duplicates, index = np.unique(keys, return_inverse=True)
    duplicate_vertex, duplicate_color = np.divmod(duplicates, len(palette))
    faces = corner_vertex.copy()
    faces[differing] = len(mesh.vertices) + index.reshape(-1)
    rows = np.concatenate([np.arange(len(mesh.vertices)), duplicate_vertex])
    colors = palette[np.concatenate([vertex_color, duplicate_color])]
    return Mesh(
        mesh.vertices[rows],
        faces.reshape(-1, 3),
        normals=None if mesh.normals is None else mesh.normals[rows],
        uv=None if mesh.uv is None else mesh.uv[rows],
        colors=colors if mesh.colors is None else multiply_colors(mesh.colors[rows], colors),
    )


def _merge(meshes: list[Mesh]) -> Mesh:
    """Merge meshes. Meshes without UV get zeros; normals and colors are kept only if every mesh has them."""
    if len(meshes) == 1:
        return meshes[0]
    counts = [len(mesh.vertices) for mesh in meshes]
    if sum(counts) > np.iinfo(np.int32).max:
        advice, options = advise_reduction()
        raise ConversionFailed(f"PLY can index at most 2147483647 vertices; {advice}", options=options)
    starts = np.cumsum([0, *counts[:-1]])
    faces: Int32 = np.concatenate([mesh.faces + np.int32(start) for mesh, start in zip(meshes, starts, strict=True)])
    normals = [mesh.normals for mesh in meshes if mesh.normals is not None]
    if normals and len(normals) < len(meshes):
        note(
            "normals_dropped",
            f"dropped all normals: {len(meshes) - len(normals)} of {len(meshes)} parts have none, and a PLY mesh "
            "needs one for each vertex",
        )
    uv: list[Float32] = [
        np.zeros((len(mesh.vertices), 2), np.float32) if mesh.uv is None else mesh.uv for mesh in meshes
    ]
    colors: list[UInt8] = [mesh.colors for mesh in meshes if mesh.colors is not None]
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        faces,
        normals=np.concatenate(normals) if len(normals) == len(meshes) else None,
        uv=np.concatenate(uv) if any(mesh.uv is not None for mesh in meshes) else None,
        colors=np.concatenate(colors) if len(colors) == len(meshes) else None,
    )
