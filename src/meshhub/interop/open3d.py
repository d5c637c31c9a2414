"""Convert scenes from and to Open3D."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from meshhub.interop.pieces import SceneBuilder, as_rgba, open_image, pieces
from meshhub.model.capabilities import HOST_FRAME, Frame
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import placed_mesh, weld

if TYPE_CHECKING:
    import open3d


def to_open3d(scene: Scene) -> list[open3d.geometry.TriangleMesh]:
    """Return a mesh for each part and material, with transforms applied.

    The color of a material without an image becomes the color of all vertices.
    """
    import open3d

    return [_to_mesh(open3d, piece) for piece in pieces(scene)]


def _to_mesh(open3d: Any, piece: Any) -> Any:
    mesh = placed_mesh(piece.mesh, piece.transform)
    vectors = open3d.utility
    result = open3d.geometry.TriangleMesh(
        vectors.Vector3dVector(np.array(mesh.vertices)), vectors.Vector3iVector(np.array(mesh.faces))
    )
    if mesh.normals is not None:
        result.vertex_normals = vectors.Vector3dVector(mesh.normals.astype(np.float64))
    if mesh.colors is not None:
        result.vertex_colors = vectors.Vector3dVector(mesh.colors[:, :3] / 255)
    elif piece.material is not None and piece.base_color_image is None:
        result.paint_uniform_color(piece.material.base_color[:3])
    if mesh.uv is not None:
        result.triangle_uvs = vectors.Vector2dVector(mesh.uv[mesh.faces.ravel()].astype(np.float64))
        result.triangle_material_ids = vectors.IntVector(np.zeros(len(mesh.faces), np.int32))
    if piece.base_color_image is not None:
        image = open_image(piece.base_color_image).convert("RGB")
        result.textures = [open3d.geometry.Image(np.ascontiguousarray(image))]
    return result


def from_open3d(model: Any, *, frame: Frame = HOST_FRAME) -> Scene:
    """Return a scene from one `TriangleMesh` or a sequence of them.

    Args:
        model: Meshes in the unit of `frame`; the first texture of each is kept.
        frame: Unit and up axis (default: millimeters, Z up).
    """
    builder, parts = SceneBuilder(), []
    for source in model if isinstance(model, list | tuple) else [model]:
        textures = [image for image in source.textures if not image.is_empty()]
        material = builder.add_material(Material(), np.asarray(textures[0])) if textures else None
        parts.append(Part(builder.add_mesh(_from_mesh(source)), material=material))
    return Scene(tuple(builder.meshes), tuple(parts), tuple(builder.materials), tuple(builder.images), frame=frame)


def _from_mesh(source: Any) -> Mesh:
    vertices, faces = np.asarray(source.vertices), np.asarray(source.triangles)
    colors = as_rgba(source.vertex_colors, len(vertices)) if source.has_vertex_colors() else None
    normals = np.asarray(source.vertex_normals) if source.has_vertex_normals() else None
    if not source.has_triangle_uvs():
        return Mesh(vertices, faces, normals=normals, colors=colors)
    # Open3D has texture coordinates at corners: a vertex with several becomes several vertices
    corner = faces.ravel()
    uv = np.asarray(source.triangle_uvs)
    first, index = weld(np.column_stack([corner.astype(np.float64), uv]))
    kept = corner[first]
    return Mesh(
        vertices[kept],
        index.reshape(-1, 3),
        normals=None if normals is None else normals[kept],
        uv=uv[first],
        colors=None if colors is None else colors[kept],
    )
