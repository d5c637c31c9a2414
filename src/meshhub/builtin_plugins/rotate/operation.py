"""Turn the whole scene, as one rigid body, about the axes."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.rotate import RotateOptions
from meshhub.model.notes import did
from meshhub.model.scene import Float64, Scene
from meshhub.toolkit.geometry import turned


def run(scene: Scene, options: RotateOptions) -> Scene:
    """Turn the scene about X, then about Y, then about Z, in place.

    Args:
        scene: Millimeters, Z up.
        options: Degrees; counter-clockwise, seen against the axis. None does not turn.
    Returns:
        Turned scene; see `turned` for what stays in place.
    Raises:
        ValueError: The scene has no faces.
    """
    angles = [angle or 0.0 for angle in (options.rotate_x_deg, options.rotate_y_deg, options.rotate_z_deg)]
    x, y, z = (_rotation(axis, angle) for axis, angle in enumerate(angles))
    did(rotated_deg=[*angles])
    return turned(scene, z @ y @ x)


def _rotation(axis: int, degrees: float) -> Float64:
    """Return the (3, 3) rotation about an axis; quarter turns are exact, so that flat bases stay exactly flat."""
    quarters, rest = divmod(degrees, 90)
    if rest == 0:
        cosine, sine = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[int(quarters) % 4]
    else:
        cosine, sine = float(np.cos(np.deg2rad(degrees))), float(np.sin(np.deg2rad(degrees)))
    matrix = np.eye(3)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix[first, first] = matrix[second, second] = cosine
    matrix[second, first], matrix[first, second] = sine, -sine
    return matrix
