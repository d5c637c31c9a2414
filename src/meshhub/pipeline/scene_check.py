"""Validate the scenes that plug-ins return."""

from __future__ import annotations

import numpy as np

from meshhub.errors import EmptyModel, ModelTooComplex, UnreadableFile, format_number, quote
from meshhub.model.scene import Mesh, Part, Scene

MAX_READ_EXTENT = 1e12
"""Maximum coordinate in units of the file; real models stay far below."""

MAX_RESULT_EXTENT = 1e30
"""Maximum millimeters after an operation; larger results approach the limit of float32, which most formats store. """

MAX_PLACED_FACES = 20_000_000
"""Maximum triangles, counted per instance, because a small file can place one mesh without end."""


def check_read_scene(scene: Scene, name: str) -> None:
    """Check the scene that a reader returned.

    Args:
        scene: In the frame of the file.
        name: Name of the file, for messages.
    Raises:
        UnreadableFile: An index, coordinate or matrix is invalid.
        EmptyModel: The scene has no triangle.
        ModelTooComplex: Its instances multiply to more than MAX_PLACED_FACES triangles.
    """
    fault = find_scene_fault(scene, MAX_READ_EXTENT)
    if fault:
        raise UnreadableFile(f"{name!r}: {fault}")
    count = scene.face_count
    if count == 0:
        raise EmptyModel(f"{name!r} holds no triangles; there is nothing to convert")
    if count > max(MAX_PLACED_FACES, sum(len(mesh.faces) for mesh in scene.meshes)):
        raise ModelTooComplex(
            f"{name!r} has {count:,} triangles in all its instances, over the limit of {MAX_PLACED_FACES:,}; "
            "use fewer instances, or a simpler mesh",
            values={"triangle_limit": MAX_PLACED_FACES},
        )


def find_scene_fault(scene: Scene, max_extent: float) -> str:
    """Describe the first fault of a scene, or return "".

    Args:
        scene: In any frame.
        max_extent: Largest magnitude of a coordinate or a matrix entry.
    """
    for number, mesh in enumerate(scene.meshes):
        fault = _find_mesh_fault(mesh, max_extent, len(scene.materials))
        if fault:
            return f"mesh {number}{_show_name(mesh.name)} {fault}"
    for number, part in enumerate(scene.parts):
        fault = _find_part_fault(part, max_extent, len(scene.meshes), len(scene.materials))
        if fault:
            return f"part {number}{_show_name(part.name)} {fault}"
    for number, material in enumerate(scene.materials):
        if any(not 0 <= image < len(scene.images) for image in material.images()):
            return f"material {number} refers to an image that does not exist"
    return ""


def _show_name(name: str) -> str:
    return f" ({quote(name)})" if name else ""


def _find_mesh_fault(mesh: Mesh, max_extent: float, material_count: int) -> str:
    if not np.isfinite(mesh.vertices).all():
        return "has coordinates that are not finite numbers"
    if len(mesh.vertices) and np.abs(mesh.vertices).max() > max_extent:
        return f"has coordinates beyond {format_number(max_extent)}"
    material = mesh.face_material
    if material is not None and len(material) and (material.min() < -1 or material.max() >= material_count):
        return "has faces with materials that do not exist"
    return ""


def _find_part_fault(part: Part, max_extent: float, mesh_count: int, material_count: int) -> str:
    if not 0 <= part.mesh < mesh_count:
        return "places a mesh that does not exist"
    if part.material is not None and not 0 <= part.material < material_count:
        return "has a material that does not exist"
    if not np.isfinite(part.transform).all() or not np.array_equal(part.transform[3], [0, 0, 0, 1]):
        return "has a transform that is not affine and finite"
    if np.abs(part.transform).max() > max_extent:
        return f"has a transform beyond {format_number(max_extent)}"
    return ""
