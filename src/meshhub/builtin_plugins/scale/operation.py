"""Scale the whole scene, as one body, by a factor."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.scale import ScaleOptions
from meshhub.errors import InvalidOption, format_number
from meshhub.model.notes import did
from meshhub.model.scene import Scene
from meshhub.toolkit.geometry import MAX_EXTENT_MM, bounds, scaled


def run(scene: Scene, options: ScaleOptions) -> Scene:
    """Scale the scene uniformly about its origin, the pivot that the author of the model chose.

    Args:
        scene: Millimeters, Z up.
        options: `scale_percent`; None leaves the scene unchanged.
    Returns:
        Scaled scene; instances stay shared.
    Raises:
        InvalidOption: A side would exceed MAX_EXTENT_MM.
    """
    if options.scale_percent is None:
        return scene
    factor = options.scale_percent / 100
    longest = float(np.ptp(bounds(scene), axis=0).max()) * factor
    if longest > MAX_EXTENT_MM:
        raise InvalidOption(
            f"option '{{scale_percent}}' {format_number(options.scale_percent)} would make the model "
            f"{format_number(longest, 4)} mm long, over {format_number(MAX_EXTENT_MM)} mm; reduce it",
            options=("scale_percent",),
        )
    did(scale_factor=factor)
    return scaled(scene, factor)
