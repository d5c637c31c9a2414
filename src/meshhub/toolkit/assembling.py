"""Combine several scenes into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meshhub.model.scene import Image, Int32, Material, Mesh, Part, Scene
from meshhub.toolkit.objects import find_objects


def combined(scenes: Sequence[Scene], names: Sequence[str]) -> Scene:
    """Combine scenes that have one frame: every object stays where it is.

    A scene of several objects becomes a group named after its file, and a single object without a name gets that name.
    Of names that several files share, all but the first get a number. Metadata stays where all scenes agree.

    Args:
        scenes: At least one.
        names: Name of each file without its extension.
    """
    meshes: list[Mesh] = []
    parts: list[Part] = []
    materials: list[Material] = []
    images: list[Image] = []
    for scene, name in zip(scenes, _distinct(names), strict=True):
        first_mesh, first_material, first_image = len(meshes), len(materials), len(images)
        meshes += [_with_materials(mesh, first_material) for mesh in scene.meshes]
        materials += [_with_images(material, first_image) for material in scene.materials]
        images += scene.images
        is_group = len(find_objects(scene)[0]) > 1
        parts += [
            replace(
                part,
                mesh=part.mesh + first_mesh,
                material=None if part.material is None else part.material + first_material,
                name=part.name or ("" if part.path or is_group else name),
                path=(name, *part.path) if is_group or part.path else (),
            )
            for part in scene.parts
        ]
    metadata = {
        key: value
        for key, value in scenes[0].metadata.items()
        if all(scene.metadata.get(key) == value for scene in scenes)
    }
    return Scene(tuple(meshes), tuple(parts), tuple(materials), tuple(images), scenes[0].frame, metadata=metadata)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names, numbered where a name was there before."""
    distinct: dict[str, None] = {}
    for name in names:
        number, unique = 2, name or "model"
        while unique in distinct:
            unique, number = f"{name}-{number}", number + 1
        distinct[unique] = None
    return list(distinct)


def _with_materials(mesh: Mesh, first: int) -> Mesh:
    if mesh.face_material is None or first == 0:
        return mesh
    shifted: Int32 = np.where(mesh.face_material < 0, -1, mesh.face_material + first).astype(np.int32)
    return replace(mesh, face_material=shifted).with_division(mesh.division)


def _with_images(material: Material, first: int) -> Material:
    shift = {
        name: index + first
        for name in (
            "base_color_image",
            "metallic_roughness_image",
            "normal_image",
            "occlusion_image",
            "emissive_image",
        )
        if (index := getattr(material, name)) is not None
    }
    return replace(material, **shift) if first and shift else material
