"""Scenes with their bodies oriented outward, for all that depends on which side is inside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshhub.model.scene import Mesh, Scene
from meshhub.toolkit.once_per_scene import OncePerScene
from meshhub.toolkit.scene_topology import SceneTopology, analyze


def topology_of(scene: Scene) -> SceneTopology:
    """Return the topology of the meshes of a scene; a scene that was only moved has the same."""
    return _analyze(scene.meshes[0], scene.meshes[1:]) if scene.meshes else analyze(())


@OncePerScene
def _analyze(first: Mesh, others: tuple[Mesh, ...]) -> SceneTopology:
    return analyze((first, *others))


def oriented(scene: Scene) -> Scene:
    """Return the scene with closed bodies oriented outward; open surfaces stay as they are.

    Faces and parts keep their order. Slicers orient bodies that are inside out, too.
    """
    turned = _turn_inverted_bodies(scene)
    return scene if turned is None else turned


@OncePerScene
def _turn_inverted_bodies(scene: Scene) -> Scene | None:
    """Return the scene with closed bodies oriented outward, so that all callers share it; None if they are already."""
    topology = topology_of(scene)
    inverted = topology.shells.inverted
    if not inverted.any():
        return None
    joined = topology.joined
    is_flipped = np.zeros(len(joined.faces), np.bool_)
    is_flipped[~joined.collapsed] = inverted[topology.shells.label]
    masks = np.split(is_flipped, np.cumsum(joined.sizes)[:-1])
    meshes = tuple(
        Mesh(mesh.vertices, np.where(mask[:, None], mesh.faces[:, ::-1], mesh.faces))
        for mesh, mask in zip(scene.meshes, masks, strict=True)
    )
    return replace(scene, meshes=meshes)
