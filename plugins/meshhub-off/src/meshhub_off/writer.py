"""Writes OFF text: the placed parts as one list of vertices and faces."""

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
    """The scene as OFF, its colours as bytes unless fractions are asked for."""
    whole = baked(scene)
    meshes = [whole.meshes[part.mesh] for part in whole.parts]
    prefix = ""
    columns = list(shortest(np.concatenate([mesh.vertices for mesh in meshes])).T)
    if any(mesh.uv is not None for mesh in meshes):
        prefix += "ST"
    if any(mesh.colors is not None for mesh in meshes):
        prefix += "C"
    if any(mesh.normals is not None for mesh in meshes):
        prefix += "N"
        columns += list(_filled([mesh.normals for mesh in meshes], meshes, 0.0, 3).T)
    if "C" in prefix:
        columns += _colours(_filled([mesh.colors for mesh in meshes], meshes, 255.0, 4), options)
    if "ST" in prefix:
        columns += list(_filled([mesh.uv for mesh in meshes], meshes, 0.0, 2).T)
    offsets = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, offsets, strict=False)])
    corners = list(faces.T)
    if any(mesh.face_material is not None for mesh in meshes):
        palette = np.array([*(one.base_color for one in whole.materials), (1.0, 1.0, 1.0, 1.0)])
        shown = [np.full(len(one.faces), -1) if one.face_material is None else one.face_material for one in meshes]
        corners += _colours(palette[np.concatenate(shown)] * 255, options)
    with target.open() as file:
        file.write(f"{prefix}OFF\n{offsets[-1]} {len(faces)} 0\n".encode())
        file.write(write_rows(["", *[" "] * (len(columns) - 1), "\n"], columns))
        file.write(write_rows(["3 ", *[" "] * (len(corners) - 1), "\n"], corners))


def _filled(found: list[NDArray[np.generic] | None], meshes: list[Mesh], missing: float, width: int) -> Floats:
    """(n, width): what the vertices of all meshes have, and one number throughout where a mesh has none."""
    rows = [
        np.full((len(mesh.vertices), width), missing) if one is None else one.astype(np.float64)
        for one, mesh in zip(found, meshes, strict=True)
    ]
    return shortest(np.concatenate(rows))


def _colours(shades: Floats, options: OffWriterOptions) -> list[NDArray[np.generic]]:
    """Red, green, blue and alpha as columns of text: bytes, or fractions."""
    shades = np.rint(np.clip(shades, 0, 255))
    if options.off_fractions:
        return list((shades / 255).T)
    return list(shades.astype(np.uint8).T)
