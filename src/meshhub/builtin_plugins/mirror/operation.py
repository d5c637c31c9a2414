"""Make the mirror image of the whole scene."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.mirror import MirrorOptions
from meshhub.model.notes import did
from meshhub.model.scene import Scene
from meshhub.toolkit.geometry import bounds, placed_mesh, report_transform


def run(scene: Scene, options: MirrorOptions) -> Scene:
    """Mirror the scene at the plane through the center of its bounding box, so that the box does not move.

    The meshes are mirrored and the matrices conjugated, because a matrix that mirrors would turn meshes inside out in
    programs that ignore its sign.

    Args:
        scene: Millimeters, Z up.
        options: `mirror` is the axis perpendicular to the plane; None leaves the scene unchanged.
    Returns:
        Mirrored scene; normals stay outward, and instances stay shared.
    Raises:
        ValueError: The scene has no faces.
    """
    if options.mirror is None:
        return scene
    axis = "xyz".index(options.mirror)
    reflection = np.eye(4)
    reflection[axis, axis] = -1
    shift = np.zeros(4)
    shift[axis] = bounds(scene)[:, axis].sum()
    parts = []
    for part in scene.parts:
        matrix = reflection @ part.transform @ reflection
        matrix[:, 3] += shift
        parts.append(replace(part, transform=matrix))
    did(mirrored_along=options.mirror)
    whole = reflection.copy()
    whole[:, 3] += shift
    report_transform(whole)
    return replace(scene, meshes=tuple(placed_mesh(mesh, reflection) for mesh in scene.meshes), parts=tuple(parts))
