"""Where surfaces of revolution begin: placements whose seam lies outside the face, or on a seam edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.arrays import lengths, normalize, sum_by_label
from meshhub.builtin_plugins.step.recognition.outline import Outline
from meshhub.builtin_plugins.step.recognition.regions import Regions
from meshhub.builtin_plugins.step.recognition.skin import Skin
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceKind, cylindrical, perpendicular
from meshhub.builtin_plugins.step.writing.curves import Curve, Curves
from meshhub.builtin_plugins.step.writing.ring_seams import Belt, common_side, free_sides
from meshhub.builtin_plugins.step.writing.sphere_seams import meridian
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_POLES = 16
_NO = np.zeros(3)


@dataclass(frozen=True, eq=False)
class Ring:
    """A face all around an axis, and the seam edge between its rims.

    loop, other: its two rims; `other` is -1 where it ends in a tip or a pole
    corner, opposite: the corners of the rims, of the outline's points, that the seam joins
    start, stop: (3,) where these are
    around:      (3,) the axis of the rims
    centre, axis, radius: of the circle along which the seam runs, counter-clockwise; None for a straight one
    """

    region: int
    loop: int
    other: int
    corner: int
    opposite: int
    start: Float64
    stop: Float64
    around: Float64
    centre: Float64 | None
    axis: Float64
    radius: float


@dataclass(frozen=True, eq=False)
class Seams:
    """How surfaces are placed, and the corners that moved for a seam.

    origin, axis, reference: (r, 3) the placement of each region's surface
    radius, second: (r,) as STEP has them: a cone's half angle, a torus's smaller radius
    corner, position: corners of closed edges, and where on their circle they stand
    rings: faces that are written with a seam edge
    slit: spheres with holes that are written with a seam edge from pole to pole
    """

    origin: Float64
    axis: Float64
    reference: Float64
    radius: Float64
    second: Float64
    corner: IntIndex
    position: Float64
    rings: tuple[Ring, ...]
    slit: tuple[int, ...]


def seams_of(skin: Skin, regions: Regions, outline: Outline, curves: Curves, belts: tuple[Belt, ...]) -> Seams:
    """The placements of all surfaces."""
    surfaces = regions.surfaces
    count = len(surfaces)
    corner = skin.points[skin.faces]
    middle = corner.mean(axis=1)
    height, distance, away = cylindrical(surfaces.take(regions.region), middle)
    weight = lengths(skin.cross)
    mean = np.stack([sum_by_label(regions.region, weight * away[:, k], count) for k in range(3)], axis=1)
    mean /= sum_by_label(regions.region, weight, count)[:, None]
    axis = surfaces.axis.copy()
    origin = surfaces.origin.copy()
    second = surfaces.second.copy()
    radius = surfaces.radius.copy()
    clear = lengths(mean) > 1e-3
    reference = np.where(clear[:, None], -normalize(mean), perpendicular(axis))
    flat = surfaces.kind == SurfaceKind.PLANE
    reference[flat] = perpendicular(axis[flat])
    around, side = free_sides(skin, regions, outline, curves)
    reference[around] = side

    # along their axes: cylinders begin at their lower end, cones at their wider one, opening upwards
    cone = surfaces.kind == SurfaceKind.CONE
    turn = cone & (second < 0)
    axis[turn] *= -1
    second[turn] *= -1
    along = np.einsum("ijk,ik->ij", corner - origin[regions.region][:, None, :], axis[regions.region])
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, regions.region, along.min(axis=1))
    np.maximum.at(high, regions.region, along.max(axis=1))
    shift = np.where(surfaces.kind == SurfaceKind.CYLINDER, low, np.where(cone, high, 0.0))
    origin += shift[:, None] * axis
    radius = np.where(cone, radius + second * shift, radius)
    second = np.where(cone, np.arctan(second), second)

    ball = np.flatnonzero(surfaces.kind == SurfaceKind.SPHERE)
    if len(ball):
        out = middle - origin[regions.region]
        towards = np.stack([sum_by_label(regions.region, weight * out[:, k], count) for k in range(3)], axis=1)[ball]
        reference[ball] = -normalize(towards)
        axis[ball] = _poles(skin, regions, outline, ball, reference[ball])
    ring_distance = distance - radius[regions.region]
    moved, position, rings = _rings(regions, outline, curves, belts, middle, height, ring_distance, weight)
    for ring in rings:
        if surfaces.kind[ring.region] == SurfaceKind.SPHERE:
            axis[ring.region] = ring.around
        reference[ring.region] = _across(ring.start - origin[ring.region], axis[ring.region])
    slit: list[int] = []
    for face in _pierced(regions, outline, rings).tolist():
        seam = meridian(skin, regions, outline, face)
        if seam is not None:
            axis[face], reference[face] = seam
            slit.append(face)
    return Seams(origin, axis, reference, radius, second, moved, position, rings, tuple(slit))


def _poles(skin: Skin, regions: Regions, outline: Outline, ball: IntIndex, away: Float64) -> Float64:
    """(b, 3) the axes of spheres: beside their patches, `away` being the middle of what is left out of each.

    Of those the one whose poles keep clear of the outline: programs lose their way where a pole lies on it.
    """
    place = np.full(len(regions.surfaces), -1, np.intp)
    place[ball] = np.arange(len(ball))
    half = outline.half[place[regions.region[outline.half // 3]] >= 0]
    owner = place[regions.region[half // 3]]
    out = normalize(skin.points[skin.begin[half]] - regions.surfaces.origin[ball][owner])
    u = perpendicular(away)
    v = np.cross(away, u)
    angle = np.arange(_POLES) * (np.pi / _POLES)
    axes = np.cos(angle)[:, None, None] * u + np.sin(angle)[:, None, None] * v
    nearest = np.zeros((_POLES, len(ball)))
    for number, axis in enumerate(axes):
        np.maximum.at(nearest[number], owner, np.abs(np.einsum("ij,ij->i", out, axis[owner])))
    # rounded, so that noise does not choose among equals
    made: Float64 = axes[np.round(nearest, 3).argmin(axis=0), np.arange(len(ball))]
    return made


def pierced_spheres(regions: Regions, outline: Outline, seams: Seams) -> IntIndex:
    """Spheres with so many holes that there is no room for a seam: wherever programs put theirs, it would cross one."""
    return np.setdiff1d(_pierced(regions, outline, seams.rings), seams.slit)


def _pierced(regions: Regions, outline: Outline, rings: tuple[Ring, ...]) -> IntIndex:
    """Spheres with several loops that are no zones."""
    loops = np.bincount(outline.loop_region, minlength=len(regions.surfaces))
    pierced = (regions.surfaces.kind == SurfaceKind.SPHERE) & (loops > 1)
    pierced[[ring.region for ring in rings]] = False
    return np.flatnonzero(pierced)


def _crowded(outline: Outline) -> NDArray[np.bool_]:
    """(k,) whether a chain that is a whole loop has its corner in common with another edge."""
    edge = outline.edge_chain
    uses = np.bincount(np.concatenate([outline.start[edge], outline.stop[edge]]))
    made: NDArray[np.bool_] = uses[outline.start] > 2
    return made


def _across(vector: Float64, axis: Float64) -> Float64:
    """The unit direction of a vector away from an axis."""
    made: Float64 = normalize((vector - axis * (vector @ axis))[None])[0]
    return made


def _rings(
    regions: Regions,
    outline: Outline,
    curves: Curves,
    belts: tuple[Belt, ...],
    middle: Float64,
    height: Float64,
    ring: Float64,
    weight: Float64,
) -> tuple[IntIndex, Float64, tuple[Ring, ...]]:
    """Belts, and faces with nothing but two whole circles around an axis as outline, or one and a tip or a pole.

    The corner of such a circle is free to move: it goes where all circles about one axis agree, so that
    the seams of neighbours meet.
    """
    surfaces = regions.surfaces
    loops = np.bincount(outline.loop_region, minlength=len(surfaces))
    first_chain = outline.loop_begin[:-1]
    edge = outline.edge[first_chain]
    circle = (np.diff(outline.loop_begin) == 1) & (curves.kind[edge] == Curve.CIRCLE)
    circle &= (outline.start == outline.stop)[first_chain] & ~_crowded(outline)[first_chain]
    region = outline.loop_region
    # every axis through a sphere's middle is its own: its rims choose
    line = surfaces.axis.copy()
    line[region] = np.where((surfaces.kind[region] == SurfaceKind.SPHERE)[:, None], curves.axis[edge], line[region])
    offset = curves.centre[edge] - surfaces.origin[region]
    aside = lengths(np.cross(offset, line[region]))
    parallel = np.abs(np.einsum("ij,ij->i", curves.axis[edge], line[region])) > 1 - 1e-6
    circle &= parallel & (aside <= np.maximum(1e-3 * curves.radius[edge], 1e-9))
    whole = regions.curved & (np.bincount(region, circle, len(surfaces)) == loops)
    usable = whole & ((loops == 2) | ((loops == 1) & np.isin(surfaces.kind, (SurfaceKind.CONE, SurfaceKind.SPHERE))))
    rims = np.flatnonzero(usable[region])
    corner = outline.start[first_chain[rims]]
    above = np.einsum("ij,ij->i", middle - surfaces.origin[regions.region], line[regions.region])
    level = sum_by_label(regions.region, weight * above, len(surfaces)) / sum_by_label(
        regions.region, weight, len(surfaces)
    )
    towards = common_side(curves.axis[edge[rims]])
    position = curves.centre[edge[rims]] + curves.radius[edge[rims]][:, None] * towards
    made: list[Ring] = []
    for belt in belts:
        (start, stop), (one, other) = belt.position, belt.points
        position[corner == one], position[corner == other] = start, stop
        made.append(Ring(belt.region, *belt.loops, one, other, start, stop, surfaces.axis[belt.region], None, _NO, 0.0))
    begin = np.argsort(region[rims], kind="stable")
    by_region: dict[int, list[int]] = {}
    for place in begin.tolist():
        by_region.setdefault(int(region[rims[place]]), []).append(place)
    for face, places in by_region.items():
        start = position[places[0]]
        origin, radius, around = surfaces.origin[face], surfaces.radius[face], line[face]
        away = _across(start - origin, around)
        centre, turn, size = None, _NO, 0.0
        if len(places) == 2:
            stop = position[places[1]]
            if away @ _across(stop - origin, around) < 1 - 1e-8:
                continue
        elif surfaces.kind[face] == SurfaceKind.CONE:
            stop = origin - around * (radius / surfaces.second[face])
        else:
            stop = origin + around * np.copysign(radius, level[face] - (start - origin) @ around)
        if surfaces.kind[face] == SurfaceKind.TORUS:
            centre, turn, size = _tube_seam(regions, face, start, stop, height, ring, weight)
        elif surfaces.kind[face] == SurfaceKind.SPHERE:
            centre, turn, size = origin, np.cross(away, around) * np.sign((stop - start) @ around), float(radius)
        other = int(rims[places[1]]) if len(places) == 2 else -1
        opposite = int(corner[places[1]]) if len(places) == 2 else -1
        made.append(
            Ring(
                face,
                int(rims[places[0]]),
                other,
                int(corner[places[0]]),
                opposite,
                start,
                stop,
                around,
                centre,
                turn,
                size,
            )
        )
    joints = np.array([point for belt in belts for point in belt.points], np.intp)
    positions = [position, *(belt.position for belt in belts)]
    return np.concatenate([corner, joints]), np.concatenate(positions), tuple(made)


def _tube_seam(
    regions: Regions,
    face: int,
    start: Float64,
    stop: Float64,
    height: Float64,
    ring: Float64,
    weight: Float64,
) -> tuple[Float64, Float64, float]:
    """The circle of a torus's tube through `start` and `stop`, in the sense that runs over the face."""
    origin, axis = regions.surfaces.origin[face], regions.surfaces.axis[face]
    away = _across(start - origin, axis)
    centre = origin + regions.surfaces.radius[face] * away
    second = float(regions.surfaces.second[face])

    def angle(point: Float64) -> float:
        return float(np.arctan2((point - centre) @ axis, (point - centre) @ away))

    mine = np.flatnonzero(regions.region == face)
    tube = ring[mine]
    middle = float(np.arctan2((weight[mine] * height[mine]).sum(), (weight[mine] * tube).sum()))
    whole = 2 * np.pi
    forward = (middle - angle(start)) % whole < (angle(stop) - angle(start)) % whole
    turn = np.cross(away, axis)
    return centre, turn if forward else -turn, second
