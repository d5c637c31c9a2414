"""OFF writer: the placed parts as one list of vertices and faces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub import Scene, Target
from meshhub.model.scene import Mesh
from meshhub.toolkit.columns import shortest, write_rows
from meshhub.toolkit.geometry import baked
from meshhub_off import OffWriterOptions

Floats = NDArray[np.floating[Any]]


def write(scene: Scene, target: Target, options: OffWriterOptions) -> None:
    """Write the placed parts of a scene as OFF, with colors as bytes or as fractions."""
    scene = baked(scene)
    meshes = [scene.meshes[part.mesh] for part in scene.parts]
    has_uv = any(mesh.uv is not None for mesh in meshes)
    has_colors = any(mesh.colors is not None for mesh in meshes)
    has_normals = any(mesh.normals is not None for mesh in meshes)
    columns = list(shortest(np.concatenate([mesh.vertices for mesh in meshes])).T)
    if has_normals:
        columns += list(_concatenate([mesh.normals for mesh in meshes], meshes, 0.0, 3).T)
    if has_colors:
        columns += _color_columns(_concatenate([mesh.colors for mesh in meshes], meshes, 255.0, 4), options)
    if has_uv:
        columns += list(_concatenate([mesh.uv for mesh in meshes], meshes, 0.0, 2).T)
    offsets = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, offsets, strict=False)])
    face_columns = list(faces.T)
    if any(mesh.face_material is not None for mesh in meshes):
        palette = np.array([*(material.base_color for material in scene.materials), (1.0, 1.0, 1.0, 1.0)])
        face_materials = [
            np.full(len(mesh.faces), -1) if mesh.face_material is None else mesh.face_material for mesh in meshes
        ]
        face_columns += _color_columns(palette[np.concatenate(face_materials)] * 255, options)
    prefix = "ST" * has_uv + "C" * has_colors + "N" * has_normals
    with target.open() as file:
        file.write(f"{prefix}OFF\n# meshhub\n{offsets[-1]} {len(faces)} 0\n".encode())
        file.write(write_rows(["", *[" "] * (len(columns) - 1), "\n"], columns))
        file.write(write_rows(["3 ", *[" "] * (len(face_columns) - 1), "\n"], face_columns))


def _concatenate(tables: list[NDArray[np.generic] | None], meshes: list[Mesh], default: float, width: int) -> Floats:
    """Return the (n, width) attribute of the vertices of all meshes, with a default for meshes without it."""
    rows = [
        np.full((len(mesh.vertices), width), default) if table is None else table.astype(np.float64)
        for table, mesh in zip(tables, meshes, strict=True)
    ]
    return shortest(np.concatenate(rows))


def _color_columns(colors: Floats, options: OffWriterOptions) -> list[NDArray[np.generic]]:
    """Return columns for red, green, blue and alpha, as bytes or fractions; `colors` are 0 … 255."""
    rounded = np.rint(np.clip(colors, 0, 255))
    if options.off_fractions:
        return list((rounded / 255).T)
    return list(rounded.astype(np.uint8).T)
