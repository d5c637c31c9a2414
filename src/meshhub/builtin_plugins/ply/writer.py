"""Writes PLY: the placed scene as one mesh, binary (little endian) or text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.ply import PlyWriterOptions
from meshhub.errors import ConversionFailed
from meshhub.model.notes import note
from meshhub.model.scene import Float32, Float64, Int32, Mesh, Scene, UInt8
from meshhub.model.source import Target
from meshhub.toolkit.colors import multiply_colors
from meshhub.toolkit.columns import write_rows
from meshhub.toolkit.geometry import baked

_LOST = 1e-7
"""Coordinates are written as float while that moves no vertex by more than this share of the model's size.

Around the origin a float always keeps that; a small model far away from it needs a double.
"""

_WHITE = np.full(4, 255, np.uint8)

_TYPE_NAMES = {"f4": "float", "f8": "double", "u1": "uchar"}

Columns = list[tuple[str, NDArray[np.generic]]]


def write(scene: Scene, target: Target, options: PlyWriterOptions) -> None:
    """The placed scene as PLY.

    Colors of materials become colors of vertices, doubled along the borders between colors, and are multiplied with
    the mesh's own. Raises ConversionFailed for what the format cannot count.
    """
    meshes = [mesh for mesh in baked(scene).meshes if len(mesh.faces)]
    meshes = _coloured(meshes, scene)
    mesh = _merged(meshes)
    columns = _columns(mesh)
    lines = [
        "ply",
        f"format {'ascii' if options.ply_ascii else 'binary_little_endian'} 1.0",
        "comment unit: millimetre",
    ]
    lines.append(f"element vertex {len(mesh.vertices)}")
    lines += [f"property {_TYPE_NAMES[values.dtype.str[1:]]} {name}" for name, values in columns]
    lines += [f"element face {len(mesh.faces)}", "property list uchar int vertex_indices", "end_header", ""]
    with target.open() as file:
        file.write("\n".join(lines).encode("ascii"))
        if options.ply_ascii:
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


def _columns(mesh: Mesh) -> Columns:
    """The properties of the vertices by name, in the order of the file."""
    vertices = _coordinates(mesh.vertices)
    columns: Columns = [(name, vertices[:, axis]) for axis, name in enumerate("xyz")]
    if mesh.normals is not None:
        columns += [(name, mesh.normals[:, axis] + np.float32(0)) for axis, name in enumerate(("nx", "ny", "nz"))]
    if mesh.uv is not None:
        columns += [(name, mesh.uv[:, axis] + np.float32(0)) for axis, name in enumerate("st")]
    if mesh.colors is not None:
        names = ("red", "green", "blue", "alpha") if (mesh.colors[:, 3] < 255).any() else ("red", "green", "blue")
        columns += [(name, mesh.colors[:, channel]) for channel, name in enumerate(names)]
    return columns


def _coordinates(vertices: Float64) -> Float32 | Float64:
    """The vertices as float where that is exact enough, else as double; see `_LOST`."""
    with np.errstate(over="ignore", invalid="ignore"):
        single = vertices.astype(np.float32)
        moved = np.abs(single - vertices).max()
    size = float(np.linalg.norm(np.ptp(vertices, axis=0)))
    if moved <= _LOST * size:
        return single + np.float32(0)
    return vertices + 0.0


def _coloured(meshes: list[Mesh], scene: Scene) -> list[Mesh]:
    """Every mesh with colours when any part of the scene shows one, else none with them."""
    shades = np.array([material.base_color for material in scene.materials], np.float64).reshape(-1, 4)
    palette = np.concatenate([_WHITE[None], np.clip(np.rint(shades * 255), 0, 255).astype(np.uint8)])
    tinted = [
        mesh.face_material is not None and bool((palette[np.unique(mesh.face_material) + 1] != 255).any())
        for mesh in meshes
    ]
    if any(tinted):
        note("materials_as_colors", "PLY has no materials: their colors were written as colors of vertices")
    elif not any(mesh.colors is not None for mesh in meshes):
        return meshes
    return [
        _shaded(mesh, palette) if is_tinted or mesh.colors is None else mesh
        for mesh, is_tinted in zip(meshes, tinted, strict=True)
    ]


def _shaded(mesh: Mesh, palette: UInt8) -> Mesh:
    """The mesh with the colors of its faces' materials on its vertices, multiplied with its own.

    palette: (materials + 1, 4), that of no material first
    """
    if mesh.face_material is None:
        return replace(mesh, colors=np.broadcast_to(_WHITE, (len(mesh.vertices), 4)))
    # materials of one colour need no border between them
    _, same = np.unique(palette.view("<u4")[:, 0], return_inverse=True)
    leader = np.zeros(len(palette), np.int64)
    leader[same] = np.arange(len(palette))
    shade = leader[same][mesh.face_material + 1].repeat(3)
    corner = mesh.faces.reshape(-1)
    held = np.zeros(len(mesh.vertices), np.int64)
    held[corner] = shade
    other = np.flatnonzero(held[corner] != shade)
    doubled, index = np.unique(corner[other] * np.int64(len(palette)) + shade[other], return_inverse=True)
    origin, tint = np.divmod(doubled, len(palette))
    faces = corner.copy()
    faces[other] = len(mesh.vertices) + index.reshape(-1)
    rows = np.concatenate([np.arange(len(mesh.vertices)), origin])
    shades = palette[np.concatenate([held, tint])]
    return Mesh(
        mesh.vertices[rows],
        faces.reshape(-1, 3),
        normals=None if mesh.normals is None else mesh.normals[rows],
        uv=None if mesh.uv is None else mesh.uv[rows],
        colors=shades if mesh.colors is None else multiply_colors(mesh.colors[rows], shades),
    )


def _merged(meshes: list[Mesh]) -> Mesh:
    """All meshes as one. UV of a mesh without any are 0; normals are written when every mesh has them."""
    if len(meshes) == 1:
        return meshes[0]
    counts = [len(mesh.vertices) for mesh in meshes]
    if sum(counts) > np.iinfo(np.int32).max:
        raise ConversionFailed(
            "PLY counts at most 2147483647 vertices; reduce the model with {optimize_target_faces}",
            options=("optimize_target_faces",),
        )
    before = np.cumsum([0, *counts[:-1]])
    faces: Int32 = np.concatenate([mesh.faces + np.int32(start) for mesh, start in zip(meshes, before, strict=True)])
    normals = [mesh.normals for mesh in meshes if mesh.normals is not None]
    if normals and len(normals) < len(meshes):
        note(
            "normals_dropped", f"{len(meshes) - len(normals)} of {len(meshes)} parts have no normals: none was written"
        )
    uv: list[Float32] = [np.zeros((len(m.vertices), 2), np.float32) if m.uv is None else m.uv for m in meshes]
    colors: list[UInt8] = [mesh.colors for mesh in meshes if mesh.colors is not None]
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        faces,
        normals=np.concatenate(normals) if len(normals) == len(meshes) else None,
        uv=np.concatenate(uv) if any(mesh.uv is not None for mesh in meshes) else None,
        colors=np.concatenate(colors) if len(colors) == len(meshes) else None,
    )
