"""OBJ writer: one object per part, faces grouped by material; companions hold the materials and images."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.obj import ObjWriterOptions
from meshhub.builtin_plugins.obj.writing.appearance import MaterialLibrary
from meshhub.builtin_plugins.obj.writing.names import UniqueNames
from meshhub.builtin_plugins.obj.writing.statements import format_attribute, format_faces, format_positions
from meshhub.model.capabilities import HOST_FRAME
from meshhub.model.notes import did, note
from meshhub.model.scene import Material, Mesh, Scene
from meshhub.model.source import Target
from meshhub.toolkit.geometry import baked


def write(scene: Scene, target: Target, _options: ObjWriterOptions) -> None:
    """Write the placed parts of a scene as OBJ; materials and images become companions."""
    frame = scene.frame or HOST_FRAME
    scene = baked(scene)
    parts = [part for part in scene.parts if len(scene.meshes[part.mesh].faces)]
    meshes = [scene.meshes[part.mesh] for part in parts]
    library = _build_library(scene, meshes)
    _note_colored_materials(scene, meshes)
    v = format_positions(meshes)
    vt = format_attribute("vt", meshes, [mesh.uv for mesh in meshes])
    vn = format_attribute("vn", meshes, [mesh.normals for mesh in meshes])
    runs = iter(format_faces(meshes, v, vt, vn, by_material=library is not None))
    names = UniqueNames("part")
    with target.open() as file:
        file.write(f"# meshhub, {frame.unit}, {frame.up.upper()} up\n".encode())
        if library is not None:
            file.write(f"mtllib {library.name}\n".encode())
        run = next(runs, None)
        for number, part in enumerate(parts):
            if len(parts) > 1 or part.name:
                file.write(f"o {names.unique(part.name)}\n".encode())
            for block in (v, vt, vn):
                if block is not None:
                    file.write(block.part_texts[number])
            while run is not None and run.part == number:
                if library is not None:
                    file.write(f"usemtl {library.names[run.material]}\n".encode())
                file.write(run.text)
                run = next(runs, None)
    if library is not None:
        for name, data in library.files.items():
            target.companion(name, data)
        did(companions=len(library.files))


def _build_library(scene: Scene, meshes: list[Mesh]) -> MaterialLibrary | None:
    """Return the used materials, or None; -1 for faces without one, since `usemtl` stays in effect across objects."""
    used = scene.used_materials()
    if not used:
        return None
    has_bare_faces = any(mesh.face_material is None or bool((mesh.face_material < 0).any()) for mesh in meshes)
    has_uv = any(mesh.uv is not None for mesh in meshes)
    return MaterialLibrary(scene, (-1, *used) if has_bare_faces else used, has_uv=has_uv)


def _note_colored_materials(scene: Scene, meshes: list[Mesh]) -> None:
    """Note parts whose vertex colors and materials would have to be multiplied (glTF 2.0 §3.9.2)."""
    is_tinted = [
        material.base_color_image is not None or material.base_color[:3] != (1.0, 1.0, 1.0)
        for material in (*scene.materials, Material())
    ]
    count = sum(
        mesh.colors is not None
        and mesh.face_material is not None
        and bool((mesh.colors[:, :3] != 255).any())
        and any(is_tinted[index] for index in np.unique(mesh.face_material))
        for mesh in meshes
    )
    if count:
        note(
            "colors_beside_materials",
            f"{count} of {len(meshes)} parts have vertex colors and a material; OBJ does not define their product, "
            "and programs show one of them",
            count=count,
            total=len(meshes),
        )
