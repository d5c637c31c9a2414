"""Convert scenes from and to trimesh.

trimesh keeps base color factors in linear light, as glTF does, and vertex colors as they are in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from meshhub.interop.pieces import Piece, SceneBuilder, as_rgba, open_image, pieces
from meshhub.model.capabilities import HOST_FRAME, UNIT_NAMES, Frame, Unit
from meshhub.model.scene import Color, Float64, Material, Mesh, Part, Scene
from meshhub.toolkit.colors import decode_srgb, encode_srgb

if TYPE_CHECKING:
    import trimesh

_UNITS: dict[str, Unit] = {
    "micrometers": "um",
    "um": "um",
    "microns": "um",
    "millimeters": "mm",
    "mm": "mm",
    "centimeters": "cm",
    "cm": "cm",
    "meters": "m",
    "m": "m",
    "inches": "in",
    "in": "in",
    "feet": "ft",
    "ft": "ft",
}


def to_trimesh(scene: Scene) -> trimesh.Scene:
    """Return a scene of trimesh; its `.to_mesh()` returns a single mesh.

    A part becomes a node with its name; a part with several materials becomes one node for each.
    """
    import trimesh

    result: Any = trimesh.Scene()
    geometry_names: dict[int, str] = {}
    for number, piece in enumerate(pieces(scene)):
        shared = geometry_names.get(id(piece.mesh)) if piece.material is None else None
        if shared is not None:
            result.graph.update(frame_to=f"part_{number}", matrix=piece.transform, geometry=shared)
            continue
        name = piece.name if piece.name and piece.name not in result.geometry else f"{piece.name or 'part'}_{number}"
        result.add_geometry(_to_mesh(piece), node_name=name, geom_name=name, transform=piece.transform)
        geometry_names[id(piece.mesh)] = name
    result.units = UNIT_NAMES[(scene.frame or HOST_FRAME).unit]
    return cast("trimesh.Scene", result)


def _to_mesh(piece: Piece) -> trimesh.Trimesh:
    import trimesh
    from trimesh.visual import material as materials

    visual: Any = trimesh.visual
    new_material: Any = materials.PBRMaterial
    mesh, material = piece.mesh, piece.material
    result = trimesh.Trimesh(mesh.vertices, mesh.faces, vertex_normals=mesh.normals, process=False, validate=False)
    if material is not None and (mesh.uv is not None or mesh.colors is None):
        linear = np.append(decode_srgb(np.array(material.base_color[:3])), material.base_color[3])
        result.visual = visual.TextureVisuals(
            uv=mesh.uv,
            material=new_material(
                name=material.name or None,
                baseColorFactor=np.rint(linear * 255).astype(np.uint8),
                baseColorTexture=None if piece.base_color_image is None else open_image(piece.base_color_image),
                metallicFactor=material.metallic,
                roughnessFactor=material.roughness,
                doubleSided=material.double_sided,
                alphaMode=material.alpha_mode.upper(),
            ),
        )
    elif mesh.colors is not None:
        result.visual = visual.ColorVisuals(result, vertex_colors=mesh.colors)
    return result


def from_trimesh(model: trimesh.Trimesh | trimesh.Scene, *, frame: Frame | None = None) -> Scene:
    """Return a scene from a mesh or a scene of trimesh.

    Args:
        model: Mesh or scene; geometry without faces is left out.
        frame: Unit and up axis (default: the unit of the model, or millimeters; Z up).
    """
    import trimesh

    units = str(getattr(model, "units", None) or "mm").lower()
    builder, parts = SceneBuilder(), []
    added: dict[int, tuple[int, int | None]] = {}
    for mesh, matrix, name in _placed(model):
        if not isinstance(mesh, trimesh.Trimesh):
            continue
        if id(mesh) not in added:
            added[id(mesh)] = _add_mesh(builder, mesh)
        index, material = added[id(mesh)]
        parts.append(Part(index, transform=matrix, name=name, material=material))
    return Scene(
        meshes=tuple(builder.meshes),
        parts=tuple(parts),
        materials=tuple(builder.materials),
        images=tuple(builder.images),
        frame=frame or Frame(_UNITS.get(units, "mm"), "z"),
    )


def _placed(model: Any) -> Iterator[tuple[Any, Float64, str]]:
    if not hasattr(model, "graph"):
        yield model, np.eye(4), ""
        return
    for node in model.graph.nodes_geometry:
        matrix, geometry = model.graph[node]
        yield model.geometry[geometry], np.asarray(matrix), str(node)


def _add_mesh(builder: SceneBuilder, mesh: Any) -> tuple[int, int | None]:
    visual = mesh.visual
    uv = getattr(visual, "uv", None)
    uv = None if uv is None or np.shape(uv) != (len(mesh.vertices), 2) else np.asarray(uv)
    material = getattr(visual, "material", None)
    colors = None
    if visual.kind == "vertex":
        colors = as_rgba(visual.vertex_colors, len(mesh.vertices))
    elif visual.kind == "face":
        return _add_face_colors(builder, mesh), None
    # read the cache: the property would compute normals for meshes that have none
    normals = mesh._cache.cache.get("vertex_normals")
    index = builder.add_mesh(Mesh(mesh.vertices, mesh.faces, normals=normals, uv=uv, colors=colors))
    return index, None if material is None else _add_material(builder, material)


def _add_face_colors(builder: SceneBuilder, mesh: Any) -> int:
    """Add a mesh with colors of faces: a material for each color."""
    colors, index = np.unique(np.asarray(mesh.visual.face_colors), axis=0, return_inverse=True)
    first = len(builder.materials)
    for color in colors:
        builder.add_material(Material(base_color=cast(Color, tuple((color / 255).tolist()))))
    return builder.add_mesh(Mesh(mesh.vertices, mesh.faces, face_material=(index.reshape(-1) + first).astype(np.int32)))


def _add_material(builder: SceneBuilder, material: Any) -> int:
    if type(material).__name__ != "PBRMaterial":
        # SimpleMaterial of OBJ and COLLADA, whose colors are not linear
        base_color = np.asarray(material.main_color) / 255
        image = getattr(material, "image", None)
        return builder.add_material(_material(material, base_color), image)
    factor = material.baseColorFactor
    base_color = np.ones(4)
    if factor is not None:
        base_color = np.asarray(factor, np.float64) / (255 if np.asarray(factor).dtype.kind in "ui" else 1)
        base_color = np.append(encode_srgb(base_color[:3]), base_color[3:4] if len(base_color) > 3 else 1.0)
    return builder.add_material(_material(material, base_color), material.baseColorTexture)


def _material(material: Any, base_color: Float64) -> Material:
    def factor(name: str, default: float) -> float:
        value = getattr(material, name, None)
        return default if value is None else float(value)

    return Material(
        name=str(getattr(material, "name", None) or ""),
        base_color=cast(Color, tuple(base_color.tolist())),
        metallic=factor("metallicFactor", 0.0),
        roughness=factor("roughnessFactor", 1.0),
        double_sided=bool(getattr(material, "doubleSided", False)),
    )
