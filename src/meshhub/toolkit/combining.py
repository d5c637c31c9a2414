"""Combination of all parts of a scene to one: a union, a difference or an intersection of solids."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from manifold3d import Manifold, OpType

from meshhub.model.progress import track
from meshhub.model.scene import Part, Scene
from meshhub.toolkit.geometry import baked
from meshhub.toolkit.solids import Solids

Combination = Literal["union", "difference", "intersection"]
"""Volume in any part, in the first part but in no other, or in all parts."""

MIN_OVERLAP_RATIO = 1e-9
"""Share of the volume from which bodies overlap; below, the rounding of the sum differs."""

_KINDS = {"union": OpType.Add, "difference": OpType.Subtract, "intersection": OpType.Intersect}


def combine_parts(scene: Scene, combination: Combination, repair_option: str) -> tuple[Scene, list[float]]:
    """Combine all parts that have faces to one without a name.

    Args:
        scene: Millimeters, in any direction.
        combination: How to combine them.
        repair_option: Option that the message about an invalid mesh advises.
    Returns:
        Scene of one part with the materials of the faces, and the volumes of the solids before. Where two surfaces
        coincide, the first part has precedence. The mesh has no faces if nothing is left.
    Raises:
        ConversionFailed: A part is not a solid.
    """
    parts = baked(scene)
    meshes = [(part.name, parts.meshes[part.mesh]) for part in parts.parts if len(parts.meshes[part.mesh].faces)]
    solids = Solids.of([mesh for _, mesh in meshes], len(scene.materials), repair_option)
    bodies = [_unite_bodies(solids.to_solid(mesh, name)) for name, mesh in track(meshes)]
    result = Manifold.batch_boolean(bodies, _KINDS[combination])
    mesh = replace(solids.to_mesh(result, meshes[0][1]), name="")
    return replace(scene, meshes=(mesh,), parts=(Part(0),)), [body.volume() for body in bodies]


def _unite_bodies(solid: Manifold) -> Manifold:
    """Return a solid whose own bodies do not overlap; Manifold takes that for granted.

    A solid with cavities stays as it is, because `decompose` separates these from their bodies.
    """
    bodies = solid.decompose()
    if len(bodies) < 2 or any(body.volume() < 0 for body in bodies):
        return solid
    union = Manifold.batch_boolean(bodies, OpType.Add)
    return union if union.volume() < (1 - MIN_OVERLAP_RATIO) * solid.volume() else solid
