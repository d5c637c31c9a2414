"""Convert scenes from and to meshio, which has one mesh without names, transforms and units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from meshhub.interop.pieces import as_rgba
from meshhub.model.capabilities import HOST_FRAME, Frame
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import placed_mesh
from meshhub.toolkit.polygons import triangulate

if TYPE_CHECKING:
    import meshio

_POLYGONS = ("triangle", "quad", "polygon")
_CHANNELS = ("red", "green", "blue", "alpha")


def to_meshio(scene: Scene) -> meshio.Mesh:
    """Return all parts as one mesh of meshio, with transforms applied; vertex colors are point data as in PLY."""
    import meshio

    placed = [placed_mesh(scene.meshes[part.mesh], part.transform) for part in scene.parts]
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in placed)])
    points = np.concatenate([mesh.vertices for mesh in placed] or [np.empty((0, 3))])
    cells = [mesh.faces + np.int32(start) for mesh, start in zip(placed, starts, strict=False)]
    data = {}
    if any(mesh.colors is not None for mesh in placed):
        white = np.uint8(255)
        colors = np.concatenate(
            [np.full((len(mesh.vertices), 4), white) if mesh.colors is None else mesh.colors for mesh in placed]
        )
        data = {channel: colors[:, number] for number, channel in enumerate(_CHANNELS)}
    return meshio.Mesh(points, {"triangle": np.concatenate(cells or [np.empty((0, 3), np.int32)])}, point_data=data)


def from_meshio(mesh: meshio.Mesh, *, frame: Frame = HOST_FRAME) -> Scene:
    """Return a scene from the triangles, quads and polygons of a mesh of meshio; other cells are left out.

    Args:
        mesh: Points in the unit of `frame`; two-dimensional points get Z = 0.
        frame: Unit and up axis (default: millimeters, Z up).
    """
    points = np.zeros((len(mesh.points), 3))
    points[:, : np.shape(mesh.points)[1]] = mesh.points
    faces: list[Any] = [np.empty((0, 3), np.int32)]
    for block in mesh.cells:
        if block.type == "triangle":
            faces.append(np.asarray(block.data, np.int32))
        elif block.type in _POLYGONS:
            counts = np.array([len(polygon) for polygon in block.data])
            faces.append(
                triangulate(points, counts, np.concatenate([np.asarray(polygon) for polygon in block.data]))[0]
            )
    data = mesh.point_data
    colors = None
    if all(channel in data for channel in _CHANNELS[:3]):
        present = [np.asarray(data[channel]) for channel in _CHANNELS if channel in data]
        colors = as_rgba(np.stack(present, axis=1), len(points))
    return Scene((Mesh(points, np.concatenate(faces), colors=colors),), (Part(0),), frame=frame)
