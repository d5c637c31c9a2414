"""Scaling the whole scene, as one body, to a height."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.target_height import TargetHeightOptions
from meshhub.errors import InvalidOption
from meshhub.geometry import bounds
from meshhub.notes import did, note
from meshhub.scene import Part, Scene

LARGEST_MM = 1_000_000.0
"""A side longer than a kilometre is refused: the height was measured along the wrong axis."""

FLAT = 1e-9
"""Lower than this part of its diagonal, a scene has no height: what is left is rounding of a flat one."""

FLOAT32_ROOM = 8.0
"""Farther from Z = 0 than this many heights, float32 files cannot hold the height to a millionth."""


def run(scene: Scene, options: TargetHeightOptions) -> Scene:
    """The scene scaled uniformly about the origin, until its Z extent is `target_height_mm`.

    About the origin, because that is where a model's own author put its pivot: what stands on the
    bed stays there, a model centred on the origin stays centred. Vertices and translations are
    scaled, so rotations stay rotations and instances stay shared.

    Raises InvalidOption when the scene is flat, or would grow beyond a kilometre.
    """
    wanted = options.target_height_mm
    if wanted is None:
        return scene
    box = bounds(scene)
    sides = box[1] - box[0]
    height = float(sides[2])
    if height <= FLAT * float(np.linalg.norm(sides)):
        raise InvalidOption(
            "option 'target_height_mm' needs a model with some height, and this one is flat: its Z extent is 0. "
            "Say which axis points up with 'input_up', or leave the option out"
        )
    factor = wanted / height
    longest = float(sides.max()) * factor
    if longest > LARGEST_MM:
        raise InvalidOption(
            f"option 'target_height_mm' {wanted:g} would make the model {longest:.4g} mm long, because it is only "
            f"{height:.4g} mm high; at most {LARGEST_MM:g} mm are possible. Say which axis points up with 'input_up', "
            "or ask for less height"
        )
    farthest = float(np.abs(box[:, 2]).max()) * factor
    if farthest > FLOAT32_ROOM * wanted:
        note(
            "far_from_origin",
            f"the model stands {farthest:.4g} mm from Z = 0, where the 32-bit numbers of most formats cannot hold "
            "its height exactly; 'place_on_bed' mends that",
        )
    did(height_before_mm=height, height_mm=wanted, scale_factor=factor)
    meshes = tuple(replace(mesh, vertices=mesh.vertices * factor) for mesh in scene.meshes)
    return replace(scene, meshes=meshes, parts=tuple(_scaled(part, factor) for part in scene.parts))


def _scaled(part: Part, factor: float) -> Part:
    """The part's matrix conjugated by the scaling: only its translation changes."""
    matrix = part.transform.copy()
    matrix[:3, 3] *= factor
    return replace(part, transform=matrix)
