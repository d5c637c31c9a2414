"""Placements of the surfaces, and the seam edges of closed faces.

The parameters of a surface of revolution begin at a seam (ISO 10303-42). It must lie outside the face or on a seam
edge of the face, because CAD programs split faces that their seam crosses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.solids.band_seams import PARALLEL_COS, Band, common_directions, find_free_directions
from meshhub.builtin_plugins.step.solids.curves import CurveKind, Curves
from meshhub.builtin_plugins.step.solids.placements import SurfaceTriangles, measure_triangles, place_surfaces
from meshhub.builtin_plugins.step.solids.sphere_seams import find_meridian
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_ASIDE_RATIO = 1e-3
"""Distance of a rim's center from the axis, as a share of the rim's radius."""
_MAX_ASIDE_MM = 1e-9
"""Millimeters; lower limit of this distance, for tiny rims."""
_ALIGN_STEPS_COUNT = 3
"""Newton steps that turn a corner; the first error is the rounding of the axes, and they converge quadratically."""
_ALIGNED_RATIO = 1e-12
"""Distance of a corner from the half plane of the other end, over the radius, that is small enough."""
_ALIGNED_COS = 1 - 1e-8
"""Cosine of the angle (0.008°) about the axis by which the two ends of a seam may differ."""


class SeamCircle(NamedTuple):
    """Circle along which a seam runs, counter-clockwise about its axis; center, axis: (3,), radius: mm."""

    center: Float64
    axis: Float64
    radius: float


@dataclass(frozen=True, eq=False)
class SlitFace:
    """A face that winds around an axis, and the seam edge between its two rims, or between a rim and a tip.

    region:             region of the face
    loop, far_loop:     loops of its rims; `far_loop` is -1 for a tip of a cone or a pole of a sphere
    corner, far_corner: points of the skin at which the seam begins and ends; `far_corner` is -1 likewise
    start, stop:        (3,) their positions, mm
    rim_axis:           (3,) unit vector, axis of the rims
    circle:             circle of the seam; None for a straight seam
    """

    region: int
    loop: int
    far_loop: int
    corner: int
    far_corner: int
    start: Float64
    stop: Float64
    rim_axis: Float64
    circle: SeamCircle | None


@dataclass(frozen=True, eq=False)
class Seams:
    """Placements of the surfaces, and seam edges.

    origin, axis, reference: (r, 3) placement of each surface: origin (mm), Z axis, X axis
    radius, second:          (r,) parameters by ISO 10303-42, mm; `second` is a cone's half angle (rad) or a
                             torus's minor radius
    corner, position:        (k,) corners that move for a seam, and (k, 3) their positions on their circles, mm
    slit_faces:              faces with a seam edge between their rims
    slit_spheres:            regions of spheres with a seam edge from pole to pole between their holes
    """

    origin: Float64
    axis: Float64
    reference: Float64
    radius: Float64
    second: Float64
    corner: IntIndex
    position: Float64
    slit_faces: tuple[SlitFace, ...]
    slit_spheres: tuple[int, ...]


def place_seams(skin: Skin, regions: Regions, outline: Outline, curves: Curves, bands: tuple[Band, ...]) -> Seams:
    """Place all surfaces and find the seam edges of closed faces.

    Args:
        skin: Mesh, millimeters.
        regions: Regions with their surfaces.
        outline: Outlines of the regions.
        curves: Curves of the edges.
        bands: Faces whose seams end at fixed corners.
    """
    triangles = measure_triangles(skin, regions)
    placements = place_surfaces(skin, regions, outline, triangles)
    with_band, direction = find_free_directions(skin, regions, outline, curves)
    placements.reference[with_band] = direction
    slits = _SlitSearch(regions, triangles, *_find_rims(regions, outline, curves))
    slits.add_bands(bands)
    slits.add_circular_faces()
    slit_faces = tuple(slits.faces)
    for face in slit_faces:
        if traits.HAS_FREE_AXIS[regions.surfaces.kind[face.region]]:
            placements.axis[face.region] = face.rim_axis
        placements.reference[face.region] = _direction_from_axis(
            face.start - placements.origin[face.region], placements.axis[face.region]
        )
    slit_spheres: list[int] = []
    for region in _find_pierced(regions, outline, slit_faces).tolist():
        meridian = find_meridian(skin, regions, outline, region)
        if meridian is not None:
            placements.axis[region], placements.reference[region] = meridian
            slit_spheres.append(region)
    return Seams(*placements, *slits.moved_corners(), slit_faces, tuple(slit_spheres))


def find_unslit_spheres(regions: Regions, outline: Outline, seams: Seams) -> IntIndex:
    """Return spheres whose holes leave no room for a seam: the seam that CAD programs add would cross a hole."""
    return np.setdiff1d(_find_pierced(regions, outline, seams.slit_faces), seams.slit_spheres)


def find_unslit_walls(skin: Skin, regions: Regions, outline: Outline, curves: Curves, seams: Seams) -> IntIndex:
    """Return cylinders and cones all around their axes that have holes but no seam.

    CAD programs add a seam of their own, which tears some of these walls: 1 of 10 in a test with 250 parts.
    """
    wound, _ = find_free_directions(skin, regions, outline, curves)
    loop_count = np.bincount(outline.loop_region, minlength=len(regions.surfaces))
    return np.setdiff1d(wound[loop_count[wound] > 2], [face.region for face in seams.slit_faces])


def _find_pierced(regions: Regions, outline: Outline, slit_faces: tuple[SlitFace, ...]) -> IntIndex:
    """Return spheres with several loops that are not zones between two rims."""
    loop_count = np.bincount(outline.loop_region, minlength=len(regions.surfaces))
    pierced = traits.HAS_FREE_AXIS[regions.surfaces.kind] & (loop_count > 1)
    pierced[[face.region for face in slit_faces]] = False
    return np.flatnonzero(pierced)


def _shares_corner(outline: Outline) -> NDArray[np.bool_]:
    """Return, for each chain (k,) that is a whole loop, whether its corner belongs to another edge, too."""
    edge = outline.edge_chain
    use_count = np.bincount(np.concatenate([outline.start[edge], outline.stop[edge]]))
    shares: NDArray[np.bool_] = use_count[outline.start] > 2
    return shares


def _direction_from_axis(vector: Float64, axis: Float64) -> Float64:
    """Return the unit vector (3,) along the part of a vector that is perpendicular to an axis."""
    direction: Float64 = normalize((vector - axis * (vector @ axis))[None])[0]
    return direction


class _Rims(NamedTuple):
    """Whole circles that bound faces around an axis.

    loop, region: (k,) loops, and their regions
    corner:       (k,) their corners
    center, axis: (k, 3) mm and unit vectors
    radius:       (k,) mm
    """

    loop: IntIndex
    region: IntIndex
    corner: IntIndex
    center: Float64
    axis: Float64
    radius: Float64


def _find_rims(regions: Regions, outline: Outline, curves: Curves) -> tuple[Float64, _Rims]:
    """Return the axis of each region (r, 3), for spheres that of a rim, and the rims of faces with circles only."""
    surfaces = regions.surfaces
    loop_count = np.bincount(outline.loop_region, minlength=len(surfaces))
    first_chain = outline.loop_begin[:-1]
    edge, region = outline.edge[first_chain], outline.loop_region
    # every line through the center of a sphere is an axis: the rims determine it
    axis = surfaces.axis.copy()
    is_sphere = traits.HAS_FREE_AXIS[surfaces.kind[region]]
    axis[region] = np.where(is_sphere[:, None], curves.axis[edge], axis[region])
    circle = (np.diff(outline.loop_begin) == 1) & (curves.kind[edge] == CurveKind.CIRCLE)
    circle &= (outline.start == outline.stop)[first_chain] & ~_shares_corner(outline)[first_chain]
    circle &= np.abs(np.einsum("ij,ij->i", curves.axis[edge], axis[region])) > PARALLEL_COS
    aside = lengths(np.cross(curves.center[edge] - surfaces.origin[region], axis[region]))
    circle &= aside <= np.maximum(_MAX_ASIDE_RATIO * curves.radius[edge], _MAX_ASIDE_MM)
    has_only_circles = regions.curved & (np.bincount(region, circle, len(surfaces)) == loop_count)
    can_end_in_point = (traits.HAS_SLOPE | traits.HAS_FREE_AXIS)[surfaces.kind]
    usable = has_only_circles & ((loop_count == 2) | ((loop_count == 1) & can_end_in_point))
    loop = np.flatnonzero(usable[region])
    corner, edge = outline.start[first_chain[loop]], edge[loop]
    return axis, _Rims(
        loop, region[loop].astype(np.intp), corner, curves.center[edge], curves.axis[edge], curves.radius[edge]
    )


class _SlitSearch:
    """Search for faces with a seam edge between their rims.

    Bands come first. The others are faces bounded by two whole circles about an axis, or by one circle and a tip or
    a pole. The corner of a whole circle can move: it goes to the direction common to all circles about one axis, so
    that the seams of adjacent faces meet.

    axis:     (r, 3) axis of each region; for spheres that of a rim
    rims:     (k,) loops that are whole circles of such faces
    corner:   (k,) their corners
    position: (k, 3) the positions to which the corners move, mm
    faces:    results
    """

    def __init__(self, regions: Regions, triangles: SurfaceTriangles, axis: Float64, rims: _Rims) -> None:
        self._regions, self._triangles, self.axis = regions, triangles, axis
        self.rims, self._rim_region, self.corner, self._center, self._rim_axis, self._radius = rims
        self.position = self._center + self._radius[:, None] * common_directions(self._rim_axis)
        self.faces: list[SlitFace] = []
        self._bands: tuple[Band, ...] = ()

    def add_bands(self, bands: tuple[Band, ...]) -> None:
        """Add bands, and move the corners that circular faces share with them to the ends of their seams."""
        self._bands = bands
        for band in bands:
            (start, stop), (point, far_point) = band.position, band.points
            self.position[self.corner == point] = start
            self.position[self.corner == far_point] = stop
            axis = self._regions.surfaces.axis[band.region]
            self.faces.append(SlitFace(band.region, *band.loops, point, far_point, start, stop, axis, None))

    def add_circular_faces(self) -> None:
        """Add the faces bounded by whole circles, except those whose two corners are not opposite each other."""
        places_of_region: dict[int, list[int]] = {}
        for place in np.argsort(self._rim_region, kind="stable").tolist():
            places_of_region.setdefault(int(self._rim_region[place]), []).append(place)
        mean_level = self._mean_levels()
        self._align_ends([tuple(places) for places in places_of_region.values() if len(places) == 2])
        for region, places in places_of_region.items():
            axis, origin = self.axis[region], self._regions.surfaces.origin[region]
            start = self.position[places[0]]
            if len(places) == 2:
                stop = self.position[places[1]]
                towards = _direction_from_axis(start - origin, axis)
                if towards @ _direction_from_axis(stop - origin, axis) < _ALIGNED_COS:
                    continue
            else:
                stop = self._find_tip(region, start, mean_level[region])
            self.faces.append(
                SlitFace(
                    region,
                    int(self.rims[places[0]]),
                    int(self.rims[places[1]]) if len(places) == 2 else -1,
                    int(self.corner[places[0]]),
                    int(self.corner[places[1]]) if len(places) == 2 else -1,
                    start,
                    stop,
                    axis,
                    self._find_seam_circle(region, start, stop),
                )
            )

    def _align_ends(self, pairs: list[tuple[int, ...]]) -> None:
        """Turn the ends of each seam to one angle about the axis of its face.

        Adjacent surfaces have axes that differ by rounding. CAD programs do not mesh a face whose two ends differ by
        more than 1e-9 rad: it is wider than 2π. A corner that several seams share is turned only once.
        """
        fixed = {point for band in self._bands for point in band.points}
        pairs_at: dict[int, list[tuple[int, ...]]] = {}
        for pair in pairs:
            for place in pair:
                pairs_at.setdefault(int(self.corner[place]), []).append(pair)
        waiting = [pair for pair in pairs if not fixed.isdisjoint(self.corner[list(pair)].tolist())]
        done: set[tuple[int, ...]] = set()
        for first in pairs:
            waiting.append(first)
            while waiting:
                pair = waiting.pop()
                if pair in done:
                    continue
                done.add(pair)
                one, other = pair if int(self.corner[pair[1]]) not in fixed else pair[::-1]
                corner = int(self.corner[other])
                if corner not in fixed:
                    self.position[self.corner == corner] = self._turn_end(one, other)
                fixed.update(self.corner[list(pair)].tolist())
                waiting += pairs_at[int(self.corner[one])] + pairs_at[corner]

    def _turn_end(self, fixed: int, place: int) -> Float64:
        """Return the point (3,) of a rim at the angle of a point on the other rim, about the axis of their face."""
        region = int(self._rim_region[place])
        axis, origin = self.axis[region], self._regions.surfaces.origin[region]
        towards = _direction_from_axis(self.position[fixed] - origin, axis)
        beside = np.cross(axis, towards)
        center, rim_axis, radius = self._center[place], self._rim_axis[place], self._radius[place]
        # the common directions of two rims may differ by 90°, where Newton's method divides by zero
        point: Float64 = center + radius * _direction_from_axis(towards, rim_axis)
        for _ in range(_ALIGN_STEPS_COUNT):
            off = float((point - origin) @ beside)
            if abs(off) <= _ALIGNED_RATIO * radius:
                break
            along = np.cross(rim_axis, point - center)
            moved = point - along * (off / (along @ beside))
            point = center + radius * normalize((moved - center)[None])[0]
        return point

    def moved_corners(self) -> tuple[IntIndex, Float64]:
        """Return the corners that move for a seam, and their positions (mm)."""
        band_points = np.array([point for band in self._bands for point in band.points], np.intp)
        positions = [self.position, *(band.position for band in self._bands)]
        return np.concatenate([self.corner, band_points]), np.concatenate(positions)

    def _mean_levels(self) -> Float64:
        """Return the mean height of each face (r,) above its surface's origin along `axis`, mm."""
        region, surfaces, weight = self._regions.region, self._regions.surfaces, self._triangles.weight
        height = np.einsum("ij,ij->i", self._triangles.center - surfaces.origin[region], self.axis[region])
        total = sum_by_label(region, weight, len(surfaces))
        return sum_by_label(region, weight * height, len(surfaces)) / total

    def _find_tip(self, region: int, start: Float64, mean_level: float) -> Float64:
        """Return the tip of a cone, or the pole of a sphere on the face's side of its rim at `start`."""
        surfaces, axis = self._regions.surfaces, self.axis[region]
        origin, radius = surfaces.origin[region], surfaces.radius[region]
        if traits.HAS_SLOPE[surfaces.kind[region]]:
            tip: Float64 = origin - axis * (radius / surfaces.second[region])
        else:
            tip = origin + axis * np.copysign(radius, mean_level - (start - origin) @ axis)
        return tip

    def _find_seam_circle(self, region: int, start: Float64, stop: Float64) -> SeamCircle | None:
        """Return the circle of a seam from `start` to `stop` (3,) mm; None for a straight seam."""
        surfaces, axis = self._regions.surfaces, self.axis[region]
        origin = surfaces.origin[region]
        if traits.HAS_TUBE[surfaces.kind[region]]:
            return self._find_tube_circle(region, start, stop)
        if traits.HAS_FREE_AXIS[surfaces.kind[region]]:
            towards = _direction_from_axis(start - origin, axis)
            sense = np.sign((stop - start) @ axis)
            return SeamCircle(origin, np.cross(towards, axis) * sense, float(surfaces.radius[region]))
        return None

    def _find_tube_circle(self, region: int, start: Float64, stop: Float64) -> SeamCircle:
        """Return the circle of a torus's tube through `start` and `stop`, in the sense that runs over the face."""
        surfaces, triangles = self._regions.surfaces, self._triangles
        origin, axis = surfaces.origin[region], surfaces.axis[region]
        away = _direction_from_axis(start - origin, axis)
        center = origin + surfaces.radius[region] * away

        def tube_angle(point: Float64) -> float:
            return float(np.arctan2((point - center) @ axis, (point - center) @ away))

        rows = np.flatnonzero(self._regions.region == region)
        weight, height = triangles.weight[rows], triangles.height[rows]
        outward = triangles.distance[rows] - surfaces.radius[region]
        middle = float(np.arctan2((weight * height).sum(), (weight * outward).sum()))
        whole = 2 * np.pi
        is_forward = (middle - tube_angle(start)) % whole < (tube_angle(stop) - tube_angle(start)) % whole
        circle_axis = np.cross(away, axis)
        return SeamCircle(center, circle_axis if is_forward else -circle_axis, float(surfaces.second[region]))
