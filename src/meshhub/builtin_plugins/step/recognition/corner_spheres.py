"""Spheres of the corners where three equal fillets meet: they have too few points to be found by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.noisy_regions import Mask, NoisyRegions
from meshhub.builtin_plugins.step.surfaces.arrays import lengths
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind, concatenate
from meshhub.model.scene import Float64

_MAX_PARALLEL_COSINE = 0.9
"""Cosine of the angle between the axes of two fillets of one corner."""

_MAX_OFF_RATIO = 0.1
"""Difference of radii, and distance of axes, over the radius: fits to a quarter of a cylinder are biased."""

_MAX_NEIGHBORS = 30
"""Fillets with ends near those of one; more are a texture, and would have thousands of corners."""

_MIN_FACES = 3
"""Triangles of a sphere."""


class _Fillet(NamedTuple):
    """A cylinder, and where it ends.

    origin, axis: line
    radius:       mm
    low, high:    mm along the axis, of its points
    """

    origin: Float64
    axis: Float64
    radius: float
    low: float
    high: float

    def leads_from(self, place: Float64) -> Float64 | None:
        """Return the axis as it leads from a place at one end of the fillet to the other; None if it is elsewhere."""
        height = float((place - self.origin) @ self.axis)
        if min(abs(height - self.low), abs(height - self.high)) > self.radius:
            return None
        return self.axis if abs(height - self.low) < abs(height - self.high) else -self.axis


def add_corner_spheres(skin: Skin, regions: NoisyRegions, limit_mm: float) -> NoisyRegions:
    """Return the regions with spheres between fillets of one radius whose axes meet in a point.

    Args:
        skin: Mesh.
        regions: Regions of its faces.
        limit_mm: Distance from the sphere up to which a face belongs to it.
    """
    fillets = _list_fillets(skin, regions)
    middle = skin.points[skin.faces].mean(axis=1)
    region, surfaces, sigma = regions.region.copy(), [regions.surfaces], [regions.sigma]
    centers: list[Float64] = []
    for trio in _list_trios(fillets):
        center = _find_center(trio)
        if center is None or any(np.linalg.norm(center - other) < trio[0].radius for other in centers):
            continue
        radius = float(np.mean([fillet.radius for fillet in trio]))
        inside = _find_faces(trio, center, radius, middle, limit_mm)
        if inside.sum() < _MIN_FACES:
            continue
        centers.append(center)
        region[inside] = sum(map(len, surfaces))
        axis, lengths_mm = np.array([[0.0, 0.0, 1.0]]), np.array([radius])
        surfaces.append(
            SurfaceArray(np.array([SurfaceKind.SPHERE], np.int8), center[None], axis, lengths_mm, np.zeros(1))
        )
        sigma.append(regions.sigma.max(keepdims=True))
    return NoisyRegions(region, concatenate(surfaces), np.concatenate(sigma))


def _list_fillets(skin: Skin, regions: NoisyRegions) -> list[_Fillet]:
    result, surfaces = [], regions.surfaces
    for number in np.unique(regions.region[regions.region >= 0]).tolist():
        if surfaces.kind[number] == SurfaceKind.CYLINDER:
            points = skin.points[skin.faces[regions.region == number]].reshape(-1, 3)
            height = (points - surfaces.origin[number]) @ surfaces.axis[number]
            ends = float(height.min()), float(height.max())
            result.append(
                _Fillet(surfaces.origin[number], surfaces.axis[number], float(surfaces.radius[number]), *ends)
            )
    return result


def _list_trios(fillets: list[_Fillet]) -> Iterator[tuple[_Fillet, ...]]:
    """Yield three fillets each that have ends near each other."""
    if not fillets:
        return
    ends = np.array([fillet.origin + at * fillet.axis for fillet in fillets for at in (fillet.low, fillet.high)])
    reach = np.repeat([2 * (1 + _MAX_OFF_RATIO) * fillet.radius for fillet in fillets], 2)
    near: list[set[int]] = [set() for _ in fillets]
    for number, others in enumerate(cKDTree(ends).query_ball_point(ends, reach)):
        near[number // 2].update(other // 2 for other in others if other // 2 > number // 2)
    for number, others in enumerate(near):
        if len(others) > _MAX_NEIGHBORS:
            continue
        for pair in combinations(sorted(others), 2):
            if pair[1] in near[pair[0]]:
                yield fillets[number], fillets[pair[0]], fillets[pair[1]]


def _find_center(trio: tuple[_Fillet, ...]) -> Float64 | None:
    """Return the point where the axes of three equal fillets meet, at an end of each; None if they do not."""
    room = _MAX_OFF_RATIO * min(fillet.radius for fillet in trio)
    if max(fillet.radius for fillet in trio) - min(fillet.radius for fillet in trio) > room:
        return None
    if any(abs(float(one.axis @ other.axis)) > _MAX_PARALLEL_COSINE for one, other in combinations(trio, 2)):
        return None
    # the sum of squared distances from the three lines is least at the center
    across = [np.eye(3) - np.outer(fillet.axis, fillet.axis) for fillet in trio]
    center: Float64 = np.linalg.solve(
        np.sum(across, axis=0), sum(matrix @ fillet.origin for matrix, fillet in zip(across, trio, strict=True))
    )
    off = [float(np.linalg.norm(matrix @ (center - f.origin))) for matrix, f in zip(across, trio, strict=True)]
    return center if max(off) <= room and all(f.leads_from(center) is not None for f in trio) else None


def _find_faces(trio: tuple[_Fillet, ...], center: Float64, radius: float, middle: Float64, limit_mm: float) -> Mask:
    """Return the faces of a sphere: those behind the ends of all fillets."""
    offset = middle - center
    result: Mask = np.abs(lengths(offset) - radius) <= limit_mm
    for fillet in trio:
        axis = fillet.leads_from(center)
        if axis is not None:
            result &= offset @ axis <= 0
    return result
