"""Scale the whole scene, as one body, to a height."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.target_height import TargetHeightOptions
from meshhub.errors import InvalidOption, format_number
from meshhub.model.notes import did, note
from meshhub.model.scene import Scene
from meshhub.toolkit.geometry import MAX_EXTENT_MM, bounds, scaled

FLAT_RATIO = 1e-9
"""Minimum height per diagonal; a lower scene is flat, and its height is rounding noise."""

MAX_FLOAT32_OFFSET_RATIO = 8.0
"""Distance from Z = 0, per height, beyond which float32 files cannot store the height to one part in a million."""


def run(scene: Scene, options: TargetHeightOptions) -> Scene:
    """Scale the scene uniformly about the origin to the target height.

    The origin is the pivot that the author of the model chose, so that a model on the bed stays on the bed, and a
    centered model stays centered. Vertices and translations are scaled, so rotations stay rotations.

    Args:
        scene: Millimeters, Z up.
        options: `target_height_mm` is the Z extent to reach; None leaves the scene unchanged.
    Returns:
        Scaled scene; instances stay shared.
    Raises:
        InvalidOption: The scene is flat, or a side would exceed MAX_EXTENT_MM.
    """
    target_mm = options.target_height_mm
    if target_mm is None:
        return scene
    box = bounds(scene)
    sides = box[1] - box[0]
    height = float(sides[2])
    if height <= FLAT_RATIO * float(np.linalg.norm(sides)):
        raise InvalidOption(
            "option '{target_height_mm}' cannot scale a flat model: its Z extent is 0; "
            "set the up axis with '{input_up}'",
            options=("target_height_mm", "input_up"),
        )
    factor = target_mm / height
    longest = float(sides.max()) * factor
    if longest > MAX_EXTENT_MM:
        raise InvalidOption(
            f"option '{{target_height_mm}}' {format_number(target_mm)} would make the model "
            f"{format_number(longest, 4)} mm long, over {format_number(MAX_EXTENT_MM)} mm; reduce it, "
            "or set the up axis with '{input_up}'",
            options=("target_height_mm", "input_up"),
        )
    farthest = float(np.abs(box[:, 2]).max()) * factor
    if farthest > MAX_FLOAT32_OFFSET_RATIO * target_mm:
        note(
            "far_from_origin",
            f"model is {format_number(farthest, 4)} mm from Z = 0, where float32 formats round its height; "
            "use {place_on_bed}",
            options=("place_on_bed",),
        )
    did(height_before_mm=height, height_mm=target_mm, scale_factor=factor)
    return scaled(scene, factor)
