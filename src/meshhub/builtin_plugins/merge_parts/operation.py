"""Merge all parts of the scene into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.merge_parts import MergePartsOptions
from meshhub.model.notes import did, note
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.combining import combine_parts
from meshhub.toolkit.geometry import baked, signed_volume
from meshhub.toolkit.solids import Solids
from meshhub.toolkit.validity import find_damage, note_damage


def run(scene: Scene, options: MergePartsOptions) -> Scene:
    """Merge all parts, as a union of solids or as one mesh.

    Args:
        scene: Millimeters, Z up.
        options: `merge_parts` None leaves the scene unchanged.
    Returns:
        Scene of one part without a name, with the materials of the faces.
    Raises:
        ConversionFailed: A part is not a solid, and `merge_parts` is "union".
    """
    if options.merge_parts is None:
        return scene
    if len(scene.parts) > 1:
        note("parts_merged", f"{len(scene.parts):,} parts are one part now, without names", count=len(scene.parts))
    if options.merge_parts == "union":
        return _unite(scene)
    parts = baked(scene)
    meshes = [mesh for part in parts.parts if len((mesh := parts.meshes[part.mesh]).faces)]
    mesh = _join(Solids.of(meshes, len(scene.materials), "repair"), meshes)
    return replace(scene, meshes=(mesh,), parts=(Part(0),))


def _unite(scene: Scene) -> Scene:
    """Return the union of all parts."""
    result, volumes = combine_parts(scene, "union", "repair")
    mesh = result.meshes[0]
    before, after = sum(volumes), signed_volume(mesh.vertices, mesh.faces)
    did(volume_before_mm3=before, volume_after_mm3=after, overlap_mm3=max(before - after, 0.0))
    note_damage("the union", find_damage(mesh))
    return result


def _join(solids: Solids, meshes: Sequence[Mesh]) -> Mesh:
    """Return one mesh with the faces of all meshes."""
    complete = [solids.complete(mesh) for mesh in meshes]
    begin = np.cumsum([0, *(len(mesh.vertices) for mesh in complete)])
    materials = [
        np.full(len(mesh.faces), -1, np.int32) if mesh.face_material is None else mesh.face_material
        for mesh in complete
    ]
    vertices, normals, uv, colors = (
        [values for mesh in complete if (values := getattr(mesh, name)) is not None]
        for name in ("vertices", "normals", "uv", "colors")
    )
    return Mesh(
        np.concatenate(vertices),
        np.concatenate([mesh.faces + start for mesh, start in zip(complete, begin, strict=False)]),
        np.concatenate(normals) if normals else None,
        np.concatenate(uv) if uv else None,
        np.concatenate(colors) if colors else None,
        np.concatenate(materials) if any(mesh.face_material is not None for mesh in complete) else None,
    )
