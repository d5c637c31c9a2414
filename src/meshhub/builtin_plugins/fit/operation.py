"""Scale the whole scene, as one body, to fill a box."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.fit import FitOptions
from meshhub.model.notes import did
from meshhub.model.scene import Scene
from meshhub.toolkit.geometry import bounds, scaled


def run(scene: Scene, options: FitOptions) -> Scene:
    """Scale the scene uniformly about its origin to the largest size that fits into the box; it is not turned.

    Args:
        scene: Millimeters, Z up.
        options: `fit_mm` is width × depth × height; None leaves the scene unchanged.
    Returns:
        Scaled scene with at least one side equal to that of the box; instances stay shared.
    Raises:
        ValueError: The scene has no faces.
    """
    if options.fit_mm is None:
        return scene
    box = np.array(options.box())
    sides = np.ptp(bounds(scene), axis=0)
    factor = float((box[sides > 0] / sides[sides > 0]).min())
    did(size_before_mm=[*map(float, sides)], size_mm=[*map(float, sides * factor)], scale_factor=factor)
    return scaled(scene, factor)
