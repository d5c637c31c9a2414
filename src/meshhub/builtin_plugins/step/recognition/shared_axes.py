"""Common axes of surfaces of revolution, planes across and along them, and cylinders that touch planes.

Each surface is fitted separately. Where a plane is not quite across the axis of a cylinder, they meet in an ellipse,
and CAD programs widen the tolerance of the circle that stands for it. The same holds for the line along which a
rounding touches a plane. Surfaces change only where the corners of the facets allow it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.design_values import EXACT_RATIO, are_design_lengths
from meshhub.builtin_plugins.step.recognition.regions import Regions, region_areas
from meshhub.builtin_plugins.step.surfaces.arrays import distinct_pairs, expand_ranges, lengths, normalize
from meshhub.builtin_plugins.step.surfaces.kinds import SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import SurfaceArray, cylindrical, distances
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_SINE = 1e-3
"""Sine of 0.06°: angle below which an axis or a plane may be aligned with another axis."""

_MAX_SURFACES_COUNT = 2_000
"""Surfaces beyond which none is aligned; scans have more, and each direction is compared with all of them."""

_MAX_DIRECTIONS_COUNT = 256
"""Directions with which others are aligned, those of the longest surfaces first; bounds the time."""

_MAX_AXES_COUNT = 256
"""Axes onto which others are moved, those of the longest surfaces first; bounds the time."""

_MAX_PLANES_COUNT = 512
"""Planes onto which others are moved, the widest first; bounds the time."""

_MAX_OFFSET_RATIO = 16.0
"""Distance of two axes over that of exact corners, below which they may be one: small arcs hardly determine an axis."""

_MAX_ROUNDING_SINE = 1e-9
"""Sine of the angle between directions that were aligned, which only rounding has changed."""

_MIN_LEVER_MM = 1e-9
"""Millimeters; avoids a division by zero."""

Mask = NDArray[np.bool_]


def share_axes(skin: Skin, regions: Regions, tolerance: float) -> Regions:
    """Align surfaces with the axes of others, if all their corners stay within rounding.

    Args:
        skin: Mesh.
        regions: Regions with their surfaces.
        tolerance: Millimeters that rounding explains.
    Returns:
        The regions with changed surfaces; regions of one recognized surface keep one. The same regions if there are too
        many.
    """
    kinds = (SurfaceKind.CYLINDER, SurfaceKind.CONE, SurfaceKind.TORUS)
    count = len(regions.surfaces)
    if count > _MAX_SURFACES_COUNT or not np.isin(regions.surfaces.kind, kinds).any():
        return regions
    _, first, segment = np.unique(regions.segment, return_index=True, return_inverse=True)
    group = np.where(regions.segment >= 0, first[segment.reshape(-1)], np.arange(count))
    row, point = distinct_pairs(np.repeat(group[regions.region], 3), skin.faces.ravel(), len(skin.points))
    alignment = _Alignment(
        regions.surfaces, skin.points[point], np.searchsorted(row, np.arange(count + 1)), EXACT_RATIO * tolerance
    )
    is_round = np.isin(regions.surfaces.kind, kinds) & (group == np.arange(count))
    order = np.argsort(-_measure_levers(skin, regions, row, point), kind="stable")
    _align_directions(alignment, is_round, ~regions.curved, order)
    _align_centers(alignment, is_round, order)
    _align_planes(alignment, ~regions.curved, order)
    _touch_planes(alignment, *_find_meeting(regions.surfaces.kind, row, point))
    return replace(regions, surfaces=alignment.surfaces.take(group))


def _measure_levers(skin: Skin, regions: Regions, row: IntIndex, point: IntIndex) -> Float64:
    """Return (s,) millimeters over which the corners of a surface determine its direction.

    Args:
        skin: Mesh.
        regions: Regions with their surfaces.
        row: (k,) surface of each corner, ascending.
        point: (k,) corners.
    """
    surfaces = regions.surfaces
    height, distance, _ = cylindrical(surfaces.take(row), skin.points[point])
    low, high, reach = np.full(len(surfaces), np.inf), np.full(len(surfaces), -np.inf), np.zeros(len(surfaces))
    np.minimum.at(low, row, height)
    np.maximum.at(high, row, height)
    np.maximum.at(reach, row, distance)
    kind = surfaces.kind
    # a plane is twice as long as it reaches
    width = region_areas(skin, regions) / np.maximum(reach, _MIN_LEVER_MM)
    return np.where(kind == SurfaceKind.PLANE, width, np.where(kind == SurfaceKind.TORUS, reach, high - low))


def _align_directions(alignment: _Alignment, is_round: Mask, is_plane: Mask, order: IntIndex) -> None:
    """Turn surfaces parallel or perpendicular to those before them in the order."""
    is_round, is_plane = is_round.copy(), is_plane.copy()
    used = 0
    for leader in order.tolist():
        if used == _MAX_DIRECTIONS_COUNT or not is_round.any():
            return
        if not (is_round[leader] or is_plane[leader]):
            continue
        used += 1
        axis = alignment.surfaces.axis[leader]
        if not is_round[leader] and len(alignment.find_parallel(is_round, axis)) == 0:
            continue
        is_round[leader] = is_plane[leader] = False
        is_round[alignment.turn(is_round, axis)] = False
        is_plane[alignment.turn(is_plane, axis)] = False
        is_plane[alignment.turn_along(is_plane, axis)] = False


def _align_centers(alignment: _Alignment, is_round: Mask, order: IntIndex) -> None:
    """Move the axes of surfaces onto the axes of those before them in the order."""
    is_round = is_round.copy()
    for leader in order[is_round[order]][:_MAX_AXES_COUNT].tolist():
        if is_round[leader]:
            is_round[leader] = False
            is_round[alignment.center(is_round, leader)] = False


def _align_planes(alignment: _Alignment, is_plane: Mask, order: IntIndex) -> None:
    """Turn planes parallel to those before them in the order, and move them onto these if they are as high.

    A corner of two faces on one plane lies on both; the flanks of a slot touch both of its ends.
    """
    is_turned, is_level = ~is_plane, ~is_plane
    for leader in order[is_plane[order]][:_MAX_PLANES_COUNT].tolist():
        if not is_turned[leader]:
            is_turned[leader] = True
            is_turned[alignment.turn(~is_turned, alignment.surfaces.axis[leader])] = True
        if not is_level[leader]:
            is_level[leader] = True
            is_level[alignment.level(~is_level, leader)] = True


def _find_meeting(kind: NDArray[np.int8], row: IntIndex, point: IntIndex) -> tuple[IntIndex, IntIndex]:
    """Return (n,) each, the planes and cylinders that have a corner in common.

    Args:
        kind: (s,) kinds of the surfaces.
        row: (k,) surface of each corner.
        point: (k,) corners.
    """
    (plane, on_plane), (cylinder, on_cylinder) = (
        (row[kind[row] == one], point[kind[row] == one]) for one in (SurfaceKind.PLANE, SurfaceKind.CYLINDER)
    )
    order = np.argsort(on_plane, kind="stable")
    plane, on_plane = plane[order], on_plane[order]
    first = np.searchsorted(on_plane, on_cylinder)
    owner, place = expand_ranges(first, np.searchsorted(on_plane, on_cylinder, side="right") - first)
    return distinct_pairs(plane[place], cylinder[owner], len(kind))


def _touch_planes(alignment: _Alignment, plane: IntIndex, cylinder: IntIndex) -> None:
    """Move cylinders that almost touch planes beside them until they do, with all surfaces on their axes.

    Args:
        alignment: Surfaces, which are changed.
        plane: (n,) planes.
        cylinder: (n,) cylinders with a corner on these planes.
    """
    sign, gap = alignment.measure_gaps(plane, cylinder)
    axis = alignment.surfaces.axis
    is_along = np.abs(np.einsum("ij,ij->i", axis[plane], axis[cylinder])) <= _MAX_ROUNDING_SINE
    touches = is_along & (np.abs(gap) <= _MAX_OFFSET_RATIO * alignment.exact_mm)
    plane, cylinder, away = plane[touches], cylinder[touches], (sign[:, None] * axis[plane])[touches]
    left = np.unique(cylinder)
    while len(left):
        rows = alignment.find_coaxial(int(left[0]))
        mine = np.isin(cylinder, rows)
        _, gap = alignment.measure_gaps(plane[mine], cylinder[mine])
        # several planes may have one normal
        shift = np.linalg.lstsq(away[mine], -gap, rcond=_MAX_SINE)[0]
        growth = np.zeros(len(rows))
        if float(np.abs(away[mine] @ shift + gap).max()) > _MIN_LEVER_MM:
            # between two parallel planes, as in a slot, radii give way, except for those that a designer entered
            is_own = np.equal.outer(cylinder[mine], rows) & ~are_design_lengths(alignment.surfaces.radius[rows])
            solution = np.linalg.lstsq(np.column_stack([away[mine], -1.0 * is_own]), -gap, rcond=_MAX_SINE)[0]
            shift, growth = solution[:3], solution[3:]
        alignment.shift(rows, shift, growth)
        for pair in np.flatnonzero(mine).tolist():
            alignment.lift(plane[pair : pair + 1], cylinder[pair : pair + 1])
        left = np.setdiff1d(left, rows)


@dataclass
class _Alignment:
    """Surfaces that are aligned with axes, each with the corners of its facets.

    surfaces: (s,) surfaces
    corners:  (k, 3) corners of all surfaces
    begin:    (s + 1,) position in `corners` where each surface begins
    exact_mm: millimeters that corners may always lie off
    """

    surfaces: SurfaceArray
    corners: Float64
    begin: IntIndex
    exact_mm: float

    def find_parallel(self, candidates: Mask, axis: Float64) -> IntIndex:
        """Return the (s,) candidates whose axes are nearly parallel to an axis."""
        return np.flatnonzero(candidates & (lengths(np.cross(self.surfaces.axis, axis)) <= _MAX_SINE))

    def center(self, candidates: Mask, leader: int) -> IntIndex:
        """Move the axes of (s,) candidates that are parallel to that of a surface onto it; return those that are."""
        origin, axis = self.surfaces.origin[leader], self.surfaces.axis[leader]
        rows = np.flatnonzero(candidates & (np.abs(self.surfaces.axis) == np.abs(axis)).all(axis=1))
        along = np.einsum("ij,j->i", self.surfaces.origin[rows] - origin, axis)
        centers = origin + along[:, None] * axis
        is_near = lengths(self.surfaces.origin[rows] - centers) <= _MAX_OFFSET_RATIO * self.exact_mm
        rows, centers = rows[is_near], centers[is_near]
        return self._take(rows, self.surfaces.axis[rows], centers)

    def find_coaxial(self, row: int) -> IntIndex:
        """Return the curved surfaces with corners and the axis of a surface, itself included.

        The corners of several regions on one recognized surface all belong to the first of them.
        """
        origin, axis = self.surfaces.origin[row], self.surfaces.axis[row]
        is_coaxial = lengths(np.cross(self.surfaces.origin - origin, axis)) <= _MIN_LEVER_MM
        is_coaxial &= lengths(np.cross(self.surfaces.axis, axis)) <= _MAX_ROUNDING_SINE
        is_coaxial &= (self.surfaces.kind != SurfaceKind.PLANE) & (self.begin[:-1] < self.begin[1:])
        is_coaxial[row] = True
        return np.flatnonzero(is_coaxial)

    def measure_gaps(self, planes: IntIndex, cylinders: IntIndex) -> tuple[Float64, Float64]:
        """Return (n,) each: on which side of its plane a cylinder is, 1 or -1, and the distance between both, mm."""
        offset = self.surfaces.origin[cylinders] - self.surfaces.origin[planes]
        height = np.einsum("ij,ij->i", offset, self.surfaces.axis[planes])
        return np.sign(height), np.abs(height) - self.surfaces.radius[cylinders]

    def lift(self, plane: IntIndex, cylinder: IntIndex) -> None:
        """Move a plane (1,), and the faces on it, until they touch a cylinder (1,): all or none of them."""
        sign, gap = self.measure_gaps(plane, cylinder)
        if abs(gap[0]) <= _MIN_LEVER_MM:
            return
        before = self.surfaces
        origin, axis = before.origin[plane[0]], before.axis[plane[0]]
        is_coplanar = (before.kind == SurfaceKind.PLANE) & (np.abs(before.axis) == np.abs(axis)).all(axis=1)
        is_coplanar &= np.abs(np.einsum("ij,j->i", before.origin - origin, axis)) <= _MIN_LEVER_MM
        rows = np.flatnonzero(is_coplanar)
        if len(self._take(rows, before.axis[rows], before.origin[rows] + sign * gap * axis)) < len(rows):
            self.surfaces = before

    def level(self, candidates: Mask, leader: int) -> IntIndex:
        """Move (s,) candidates that are parallel to a plane onto it; return those that are."""
        origin, axis = self.surfaces.origin[leader], self.surfaces.axis[leader]
        rows = np.flatnonzero(candidates & (np.abs(self.surfaces.axis) == np.abs(axis)).all(axis=1))
        height = np.einsum("ij,j->i", self.surfaces.origin[rows] - origin, axis)
        is_near = np.abs(height) <= _MAX_OFFSET_RATIO * self.exact_mm
        rows, height = rows[is_near], height[is_near]
        return self._take(rows, self.surfaces.axis[rows], self.surfaces.origin[rows] - height[:, None] * axis)

    def shift(self, rows: IntIndex, way: Float64, growth: Float64) -> None:
        """Move (n,) surfaces by (3,) millimeters, and let their radii grow by (n,) millimeters: all or none of them."""
        before = self.surfaces
        radius = before.radius[rows] + growth
        if len(self._take(rows, before.axis[rows], before.origin[rows] + way, radius)) < len(rows):
            self.surfaces = before

    def turn(self, candidates: Mask, axis: Float64) -> IntIndex:
        """Turn the axes of (s,) candidates parallel to an axis; return those that are."""
        rows = self.find_parallel(candidates, axis)
        return self._take(rows, self._directed(rows, axis), self.surfaces.origin[rows])

    def turn_along(self, candidates: Mask, axis: Float64) -> IntIndex:
        """Turn the axes of (s,) candidates perpendicular to an axis; return those that are."""
        cosine = np.einsum("ij,j->i", self.surfaces.axis, axis)
        rows = np.flatnonzero(candidates & (np.abs(cosine) <= _MAX_SINE))
        directions = normalize(self.surfaces.axis[rows] - cosine[rows, None] * axis)
        return self._take(rows, directions, self.surfaces.origin[rows])

    def _directed(self, rows: IntIndex, axis: Float64) -> Float64:
        """Return (n, 3) the axis, in the direction that each surface has."""
        result: Float64 = np.where(np.einsum("ij,j->i", self.surfaces.axis[rows], axis) < 0, -1.0, 1.0)[:, None] * axis
        return result

    def _take(self, rows: IntIndex, axis: Float64, origin: Float64, radius: Float64 | None = None) -> IntIndex:
        """Change surfaces whose corners stay within rounding, and return these."""
        if len(rows) == 0:
            return rows
        before = self.surfaces.take(rows)
        after = replace(before, axis=axis, origin=origin, radius=before.radius if radius is None else radius)
        owner, place = expand_ranges(self.begin[rows], self.begin[rows + 1] - self.begin[rows])
        begin = np.searchsorted(owner, np.arange(len(rows)))
        off, off_before = (
            np.maximum.reduceat(np.abs(distances(side.take(owner), self.corners[place])), begin)
            for side in (after, before)
        )
        good = off <= np.maximum(off_before, self.exact_mm)
        self.surfaces = self.surfaces.replace_rows(rows[good], after.take(good))
        return rows[good]
