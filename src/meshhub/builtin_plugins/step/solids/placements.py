"""Placements of surfaces: origins, axes, and X axes that point away from their faces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize, perpendicular, sum_by_label
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import cylindrical
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_SPHERE_AXES_COUNT = 16
"""Axes of a sphere that are tried for a face with one loop."""
_MIN_MEAN_LENGTH_RATIO = 1e-3
"""Length of the mean of unit vectors below which a face has no middle direction: it winds around its axis."""


class SurfaceTriangles(NamedTuple):
    """Triangles relative to their surfaces.

    center:   (m, 3) mm
    height:   (m,) mm along the axis from the surface's origin
    distance: (m,) mm from the axis
    away:     (m, 3) unit vectors from the axis
    weight:   (m,) twice the areas, mm²
    """

    center: Float64
    height: Float64
    distance: Float64
    away: Float64
    weight: Float64


class Placements(NamedTuple):
    """Fields as in `Seams`; the arrays are changed in place."""

    origin: Float64
    axis: Float64
    reference: Float64
    radius: Float64
    second: Float64


def measure_triangles(skin: Skin, regions: Regions) -> SurfaceTriangles:
    """Return the triangles of a mesh relative to the surfaces of their regions."""
    center = skin.points[skin.faces].mean(axis=1)
    return SurfaceTriangles(center, *cylindrical(regions.surfaces.take(regions.region), center), lengths(skin.cross))


def place_surfaces(skin: Skin, regions: Regions, outline: Outline, triangles: SurfaceTriangles) -> Placements:
    """Return placements whose X axes point away from the middle of each face.

    Args:
        skin: Mesh, millimeters.
        regions: Regions with their surfaces.
        outline: Outlines of the regions.
        triangles: Result of `measure_triangles`.
    """
    placements = _point_away(regions, triangles)
    _shift_origins(skin, regions, placements)
    _orient_spheres(skin, regions, outline, triangles, placements)
    return placements


def _point_away(regions: Regions, triangles: SurfaceTriangles) -> Placements:
    """Return placements whose X axes point away from the middle of each face."""
    surfaces = regions.surfaces
    axis = surfaces.axis.copy()
    mean = _sum_vectors(regions, triangles.weight, triangles.away)
    mean /= sum_by_label(regions.region, triangles.weight, len(surfaces))[:, None]
    has_middle = lengths(mean) > _MIN_MEAN_LENGTH_RATIO
    reference = np.where(has_middle[:, None], -normalize(mean), perpendicular(axis))
    flat = traits.IS_PLANE[surfaces.kind]
    reference[flat] = perpendicular(axis[flat])
    return Placements(surfaces.origin.copy(), axis, reference, surfaces.radius.copy(), surfaces.second.copy())


def _shift_origins(skin: Skin, regions: Regions, placements: Placements) -> None:
    """Move origins along their axes, in place: to the lower end of cylinders and the wider end of cones.

    The axes of cones are turned so that the cones widen along them; the half angle of a STEP cone is positive.
    """
    kind = regions.surfaces.kind
    origin, axis, _, radius, second = placements
    cone = traits.HAS_SLOPE[kind]
    turned = cone & (second < 0)
    axis[turned] *= -1
    second[turned] *= -1
    corner = skin.points[skin.faces]
    along = np.einsum("ijk,ik->ij", corner - origin[regions.region][:, None, :], axis[regions.region])
    low, high = np.full(len(kind), np.inf), np.full(len(kind), -np.inf)
    np.minimum.at(low, regions.region, along.min(axis=1))
    np.maximum.at(high, regions.region, along.max(axis=1))
    shift = np.where(kind == SurfaceKind.CYLINDER, low, np.where(cone, high, 0.0))
    origin += shift[:, None] * axis
    radius[cone] += second[cone] * shift[cone]
    second[cone] = np.arctan(second[cone])


def _orient_spheres(
    skin: Skin, regions: Regions, outline: Outline, triangles: SurfaceTriangles, placements: Placements
) -> None:
    """Point the X axes of spheres away from their faces and choose their poles, in place."""
    spheres = np.flatnonzero(traits.HAS_FREE_AXIS[regions.surfaces.kind])
    if len(spheres) == 0:
        return
    out = triangles.center - placements.origin[regions.region]
    placements.reference[spheres] = -normalize(_sum_vectors(regions, triangles.weight, out)[spheres])
    placements.axis[spheres] = _choose_poles(skin, regions, outline, spheres, placements.reference[spheres])


def _choose_poles(skin: Skin, regions: Regions, outline: Outline, spheres: IntIndex, away: Float64) -> Float64:
    """Return axes (b, 3) of spheres whose poles are outside the faces and farthest from the outlines.

    CAD programs fail to trim a face if a pole lies on its outline.

    Args:
        skin: Mesh, millimeters.
        regions: Regions of the mesh.
        outline: Their outlines.
        spheres: (b,) regions.
        away: (b, 3) unit vectors from the centers to the middle of the uncovered part.
    """
    number = np.full(len(regions.surfaces), -1, np.intp)
    number[spheres] = np.arange(len(spheres))
    half = outline.half[number[regions.region[outline.half // 3]] >= 0]
    owner = number[regions.region[half // 3]]
    out = normalize(skin.points[skin.begin[half]] - regions.surfaces.origin[spheres][owner])
    u = perpendicular(away)
    v = np.cross(away, u)
    angle = np.arange(_SPHERE_AXES_COUNT) * (np.pi / _SPHERE_AXES_COUNT)
    across = np.cos(angle)[:, None, None] * u + np.sin(angle)[:, None, None] * v
    # about half a ball has its outline where these poles are
    axes = np.concatenate([across, normalize((across + away).reshape(-1, 3)).reshape(across.shape)])
    nearest_cos = np.zeros((len(axes), len(spheres)))
    for candidate, axis in enumerate(axes):
        np.maximum.at(nearest_cos[candidate], owner, np.abs(np.einsum("ij,ij->i", out, axis[owner])))
    # rounded, so that rounding noise does not decide between equal candidates
    best: Float64 = axes[np.round(nearest_cos, 3).argmin(axis=0), np.arange(len(spheres))]
    return best


def _sum_vectors(regions: Regions, weight: Float64, vectors: Float64) -> Float64:
    """Return the weighted sum (r, 3) over the triangles of each region."""
    count = len(regions.surfaces)
    return np.stack([sum_by_label(regions.region, weight * vectors[:, k], count) for k in range(3)], axis=1)
