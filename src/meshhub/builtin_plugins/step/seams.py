"""Where surfaces of revolution begin: placements whose seam lies outside the face, or on a seam edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshhub.builtin_plugins.step.curves import Curves
from meshhub.builtin_plugins.step.outline import Outline
from meshhub.builtin_plugins.step.regions import Regions
from meshhub.builtin_plugins.step.skin import Skin, lengths, normalised
from meshhub.builtin_plugins.step.surfaces import Kind, cylindrical, perpendicular
from meshhub.geometry import IntIndex
from meshhub.scene import Float64


@dataclass(frozen=True, eq=False)
class Seams:
    """How surfaces are placed, and the corners that moved for a seam.

    origin, axis, reference: (r, 3) the placement of each region's surface
    radius, second: (r,) as STEP has them: a cone's half angle, a torus's smaller radius
    corner, position: corners of closed edges, and where on their circle they stand
    """

    origin: Float64
    axis: Float64
    reference: Float64
    radius: Float64
    second: Float64
    corner: IntIndex
    position: Float64


def seams_of(skin: Skin, regions: Regions, outline: Outline, curves: Curves) -> Seams:
    """The placements of all surfaces."""
    surfaces = regions.surfaces
    count = len(surfaces)
    corner = skin.points[skin.faces]
    middle = corner.mean(axis=1)
    height, _, away = cylindrical(surfaces.take(regions.region), middle)
    weight = lengths(skin.cross)
    mean = np.stack([np.bincount(regions.region, weight * away[:, k], count) for k in range(3)], axis=1)
    mean /= np.bincount(regions.region, weight, count)[:, None]
    axis = surfaces.axis.copy()
    origin = surfaces.origin.copy()
    second = surfaces.second.copy()
    radius = surfaces.radius.copy()
    clear = lengths(mean) > 1e-3
    reference = np.where(clear[:, None], -normalised(mean), perpendicular(axis))
    flat = surfaces.kind == Kind.PLANE
    reference[flat] = perpendicular(axis[flat])

    # along their axes: cylinders begin at their lower end, cones at their wider one, opening upwards
    cone = surfaces.kind == Kind.CONE
    turn = cone & (second < 0)
    axis[turn] *= -1
    second[turn] *= -1
    along = np.einsum("ijk,ik->ij", corner - origin[regions.region][:, None, :], axis[regions.region])
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, regions.region, along.min(axis=1))
    np.maximum.at(high, regions.region, along.max(axis=1))
    shift = np.where(surfaces.kind == Kind.CYLINDER, low, np.where(cone, high, 0.0))
    origin += shift[:, None] * axis
    radius = np.where(cone, radius + second * shift, radius)
    second = np.where(cone, np.arctan(second), second)

    # a sphere's poles go to the sides of a patch
    ball = np.flatnonzero(surfaces.kind == Kind.SPHERE)
    if len(ball):
        out = middle - origin[regions.region]
        towards = np.stack([np.bincount(regions.region, weight * out[:, k], count) for k in range(3)], axis=1)[ball]
        reference[ball] = -normalised(towards)
        axis[ball] = perpendicular(reference[ball])
    return Seams(origin, axis, reference, radius, second, np.empty(0, np.intp), np.empty((0, 3)))
