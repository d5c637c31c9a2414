"""Orthographic cameras: from the frame of the scene to the samples of a picture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64
from meshhub.toolkit.rendering.options import View

Float32 = NDArray[np.float32]

MARGIN_RATIO = 0.06
"""Share of the shorter side of the picture that stays free on each side of the model."""

GRID = 64.0
"""Steps per sample to which positions are rounded, so that equal points get equal positions and no crack opens."""

_ISO_ELEVATION_RAD = np.arctan(1 / np.sqrt(2))
"""Angle of an isometric view above the horizon."""

# azimuth of the camera in quarter turns from the front, counter-clockwise seen from above, and elevation
_DIRECTIONS: dict[View, tuple[float, float]] = {
    "iso": (0.5, float(_ISO_ELEVATION_RAD)),
    "iso-back": (2.5, float(_ISO_ELEVATION_RAD)),
    "iso-below": (0.5, -float(_ISO_ELEVATION_RAD)),
    "front": (0, 0.0),
    "right": (1, 0.0),
    "back": (2, 0.0),
    "left": (3, 0.0),
    "top": (0, np.pi / 2),
    "bottom": (0, -np.pi / 2),
}


class Projection(NamedTuple):
    """A camera and its picture.

    rotation: (3, 3) from the scene to the camera: right, up, toward the viewer
    middle:   (2,) right and up of the middle of the picture, in units of the scene
    scale:    samples per unit of the scene
    width:    samples
    height:   samples
    """

    rotation: Float64
    middle: Float64
    scale: float
    width: int
    height: int


def view_rotation(view: View) -> Float64:
    """Return the (3, 3) rotation from the scene (Z up, front toward -Y) to the camera of a view."""
    quarters, elevation = _DIRECTIONS[view]
    azimuth = quarters * np.pi / 2
    right = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    toward = np.array([np.cos(elevation) * np.sin(azimuth), -np.cos(elevation) * np.cos(azimuth), np.sin(elevation)])
    # exact zeros, so that an axis-aligned face stays one row or column
    return np.round(np.stack([right, np.cross(toward, right), toward]), 15)


def turn(vertices: Float64, rotation: Float64) -> list[Float64]:
    """Return the coordinates of (n, 3) vertices in the camera's frame, one array for each axis.

    It does not use a matrix product, because the last bits of a row would depend on its position, and cracks would
    open.
    """
    columns = vertices.T
    return [columns[0] * row[0] + columns[1] * row[1] + columns[2] * row[2] for row in rotation]


def project(vertices: Float64, projection: Projection) -> tuple[Float32, Float32, Float32]:
    """Return the positions of (n, 3) vertices in samples: x to the right, y down, depth away from the viewer."""
    right, up, toward = turn(vertices, projection.rotation)
    x = (right - projection.middle[0]) * projection.scale + projection.width / 2
    y = projection.height / 2 - (up - projection.middle[1]) * projection.scale
    depth = (toward.max() - toward) * projection.scale
    x, y = (np.rint(values * GRID) / GRID for values in (x, y))
    return x.astype(np.float32), y.astype(np.float32), depth.astype(np.float32)


def unproject(position: NDArray[np.intp], depth: Float32, projection: Projection, near: float) -> Float64:
    """Return the (k, 3) points of the scene that samples show.

    Args:
        position: (k,) index of each sample.
        depth: (k,) depth away from the viewer, in samples.
        projection: Camera.
        near: Coordinate toward the viewer at which the depth is 0.
    """
    row, column = np.divmod(position, projection.width)
    right = (column + 0.5 - projection.width / 2) / projection.scale + projection.middle[0]
    up = (projection.height / 2 - row - 0.5) / projection.scale + projection.middle[1]
    result: Float64 = np.stack([right, up, near - depth / projection.scale], axis=1) @ projection.rotation
    return result
