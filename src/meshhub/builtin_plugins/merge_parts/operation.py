"""Merge all parts of the scene into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from manifold3d import Manifold, OpType

from meshhub.builtin_plugins.merge_parts import MergePartsOptions
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import baked
from meshhub.toolkit.solids import Solids, is_valid_in_file


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
    parts = baked(scene)
    meshes = [(part.name, parts.meshes[part.mesh]) for part in parts.parts if len(parts.meshes[part.mesh].faces)]
    solids = Solids.of([mesh for _, mesh in meshes], len(scene.materials), "repair")
    mesh = _unite(solids, meshes) if options.merge_parts == "union" else _join(solids, [mesh for _, mesh in meshes])
    if len(scene.parts) > 1:
        note("parts_merged", f"{len(scene.parts):,} parts are one part now, without names")
    return replace(scene, meshes=(mesh,), parts=(Part(0),))


def _unite(solids: Solids, meshes: Sequence[tuple[str, Mesh]]) -> Mesh:
    """Return the surface of the union of named meshes; where two surfaces coincide, the first has precedence."""
    bodies = [solids.to_solid(mesh, name) for name, mesh in track(meshes)]
    union = Manifold.batch_boolean(bodies, OpType.Add)
    before, after = sum(body.volume() for body in bodies), union.volume()
    did(volume_before_mm3=before, volume_after_mm3=after, overlap_mm3=max(before - after, 0.0))
    mesh = replace(solids.to_mesh(union, meshes[0][1]), name="")
    if not is_valid_in_file(mesh):
        note(
            "union_not_closed",
            "the union has invalid edges in files with 32-bit numbers; use {repair} on the result",
            options=("repair",),
        )
    return mesh


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
