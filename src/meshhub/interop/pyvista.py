"""Convert scenes from and to PyVista."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from meshhub.interop.pieces import as_rgba, open_image, pieces
from meshhub.model.capabilities import HOST_FRAME, Frame
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import placed_mesh

if TYPE_CHECKING:
    import pyvista

COLORS = "RGBA"
"""Name of the point data with vertex colors; `plot(scalars="RGBA", rgba=True)` shows them."""


def to_pyvista(scene: Scene) -> pyvista.MultiBlock:
    """Return a block for each part, with its name and its transform applied; `.combine()` joins them.

    Vertex colors are the point data "RGBA"; texture coordinates are active, and the image of the base color is the
    field data "texture", an array (h, w, 3 or 4).
    """
    import pyvista

    blocks = pyvista.MultiBlock()
    for number, piece in enumerate(pieces(scene)):
        mesh = placed_mesh(piece.mesh, piece.transform)
        block = pyvista.PolyData.from_regular_faces(np.array(mesh.vertices), mesh.faces.astype(np.intp))
        if mesh.colors is not None:
            block.point_data[COLORS] = np.array(mesh.colors)
        if mesh.normals is not None:
            block.point_data.active_normals = np.array(mesh.normals)
        if mesh.uv is not None:
            block.active_texture_coordinates = np.array(mesh.uv)
        if piece.base_color_image is not None:
            block.field_data["texture"] = np.asarray(open_image(piece.base_color_image))
        blocks.append(block, piece.name or f"part_{number}")
    return blocks


def from_pyvista(model: pyvista.PolyData | pyvista.MultiBlock, *, frame: Frame = HOST_FRAME) -> Scene:
    """Return a scene from a surface, or from a part for each surface of a block; other data sets are extracted.

    Args:
        model: Surface or blocks, in the unit of `frame`.
        frame: Unit and up axis (default: millimeters, Z up).
    """
    import pyvista

    meshes, parts = [], []
    for name, block in _surfaces(model):
        surface = block if isinstance(block, pyvista.PolyData) else block.extract_surface(algorithm=None)
        surface = surface if surface.is_all_triangles else surface.triangulate()
        colors = surface.point_data.get(COLORS, surface.point_data.get("RGB"))
        uv = surface.active_texture_coordinates
        meshes.append(
            Mesh(
                surface.points,
                surface.faces.reshape(-1, 4)[:, 1:].astype(np.int32),
                uv=uv,
                colors=None if colors is None else as_rgba(colors, surface.n_points),
            )
        )
        parts.append(Part(len(meshes) - 1, name=name))
    return Scene(tuple(meshes), tuple(parts), frame=frame)


def _surfaces(model: Any) -> list[tuple[str, Any]]:
    if not hasattr(model, "recursive_iterator"):
        return [("", model)]
    blocks = model.recursive_iterator(contents="items", skip_none=True)
    return [(str(name or ""), block) for name, block in blocks]
