"""Distances from surfaces in the half plane through the axis, where each is a line or a circle.

A profile returns signed distances, and the components of their gradients away from the axis and along it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from meshhub.builtin_plugins.step.surfaces.arrays import TINY
from meshhub.model.scene import Float64


class ProfilePoints(NamedTuple):
    """Points in the half planes of their surfaces; all arrays broadcast.

    height:   along the axis from the origin
    distance: from the axis
    radius:   `SurfaceArray.radius`
    second:   `SurfaceArray.second`
    """

    height: Float64
    distance: Float64
    radius: Float64
    second: Float64


ProfileDistances: TypeAlias = tuple[Float64, Float64 | float, Float64 | float]
"""Signed distances, and the components of their gradients."""


def measure_plane(points: ProfilePoints) -> ProfileDistances:
    """Return the distances from planes across the axis."""
    return points.height, 0.0, 1.0


def measure_cylinder(points: ProfilePoints) -> ProfileDistances:
    """Return the distances from cylinders."""
    return points.distance - points.radius, 1.0, 0.0


def measure_cone(points: ProfilePoints) -> ProfileDistances:
    """Return the distances from cones."""
    height, distance, radius, second = points
    cosine = 1 / np.sqrt(1 + second**2)
    return (distance - radius - height * second) * cosine, cosine, -second * cosine


def measure_sphere(points: ProfilePoints) -> ProfileDistances:
    """Return the distances from spheres."""
    from_center = np.sqrt(points.distance**2 + points.height**2)
    size = np.maximum(from_center, TINY)
    return from_center - points.radius, points.distance / size, points.height / size


def measure_torus(points: ProfilePoints) -> ProfileDistances:
    """Return the distances from tori."""
    height, distance, radius, second = points
    from_ring = distance - radius
    tube = np.sqrt(from_ring**2 + height**2)
    size = np.maximum(tube, TINY)
    return tube - second, from_ring / size, height / size
