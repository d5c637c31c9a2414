"""Areas and volumes of the written faces, by integrals along their trimming curves (Green's theorem).

They do not use the triangles, so a curve that runs the wrong way, or that encloses the wrong part of its surface, shows
as a difference from them. Patches have no such integrals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.bodies import shell_origins
from meshhub.builtin_plugins.step.recognition.regions import region_areas
from meshhub.builtin_plugins.step.solids.curves import edge_regions
from meshhub.builtin_plugins.step.solids.edge_segments import EdgeSegments
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.solids.tolerances import MIN_EDGE_MM
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import TINY, lengths, perpendicular, sum_by_label
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex


class TrimmedFaces(NamedTuple):
    """Size of each face within its trimming curves; NaN where it has no such integral.

    area: (r,) mm²
    cone: (r,) mm³, three times the volume of the cone from the first point of the shell; negative if the point is in
          front of the face
    """

    area: Float64
    cone: Float64


class _Path(NamedTuple):
    """Segments of the boundaries of curved faces.

    face:   (k,) region
    side:   (k,) 1 if the face is on the left of the segment, -1 on the right
    around: (3, k) angle about the axis at begin, middle and end, rad
    across: (3, k) height of cylinders and cones (mm), latitude of spheres, angle about the tube of tori (rad)
    wraps:  (2, k) whether `around` and `across` pass from one end of their period to the other
    """

    face: IntIndex
    side: Float64
    around: Float64
    across: Float64
    wraps: NDArray[np.bool_]


def measure_faces(model: BrepModel, segments: EdgeSegments) -> TrimmedFaces:
    """Measure all faces of a model between the segments of its edges."""
    skin, surfaces = model.skin, model.regions.surfaces
    count = len(surfaces)
    shell = np.empty(count, np.intp)
    shell[model.regions.region] = skin.shell
    origin = surfaces.origin - shell_origins(skin)[shell]
    left, right = edge_regions(model.outline)
    # an edge on the border of an open shell has no right side
    inner = np.flatnonzero((np.bincount(model.outline.edge, minlength=len(left)) == 2)[segments.edge])
    face = np.concatenate([left[segments.edge], right[segments.edge[inner]]])
    row = np.concatenate([np.arange(len(segments.edge)), inner])
    side = np.repeat([1.0, -1.0], [len(segments.edge), len(inner)])

    begin, middle, end = (
        points[row] - surfaces.origin[face] for points in (segments.begin, segments.middle, segments.end)
    )
    # vector areas, doubled, under the parabola through the three points
    moment = np.cross(begin, end) + 4 / 3 * np.cross(middle - (begin + end) / 2, end - begin)
    area = sum_by_label(face, side * np.einsum("ij,ij->i", moment, surfaces.axis[face]) / 2, count)
    cone = sum_by_label(face, side * np.einsum("ij,ij->i", moment, origin[face]) / 2, count)
    curved = model.regions.curved
    if curved.any():
        on_curved = curved[face]
        path = _trace_paths(model, segments, face[on_curved], row[on_curved], side[on_curved])
        curved_area, own_cone = _integrate(model, path)
        area[curved], cone[curved] = curved_area[curved], (cone + own_cone)[curved]
    return TrimmedFaces(area, cone)


def _trace_paths(model: BrepModel, segments: EdgeSegments, face: IntIndex, row: IntIndex, side: Float64) -> _Path:
    """Convert segments to the parameters of their faces, with angles that do not jump by a turn within a segment."""
    u, v, axis = _frames(model)
    surfaces = model.regions.surfaces.take(face)
    is_torus, is_sphere = traits.HAS_TUBE[surfaces.kind], traits.HAS_FREE_AXIS[surfaces.kind]
    u, v, axis = u[face], v[face], axis[face]
    around, across, away = np.empty((3, 3, len(face)))
    for place, points in enumerate((segments.begin, segments.middle, segments.end)):
        offset = points[row] - surfaces.origin
        x, y, height = (np.einsum("ij,ij->i", offset, direction) for direction in (u, v, axis))
        around[place], away[place] = np.arctan2(y, x), np.hypot(x, y)
        from_ring = np.where(is_sphere, away[place], away[place] - surfaces.radius)
        across[place] = np.where(is_torus | is_sphere, np.arctan2(height, from_ring), height)
    # on the axis, the angle is that of the other end
    is_near = away < MIN_EDGE_MM
    around[0] = np.where(is_near[0], around[2], around[0])
    around[2] = np.where(is_near[2], around[0], around[2])
    around[1] = np.where(is_near.any(axis=0), around[0], around[1])
    middle_around, middle_across = _middle_angles(model)
    around += _whole_turns(middle_around[face] - around)
    across[:, is_torus] += _whole_turns(middle_across[face] - across)[:, is_torus]
    wraps = np.stack([np.abs(np.diff(angle, axis=0)).max(axis=0) > np.pi for angle in (around, across)])
    wraps[1] &= is_torus
    for place in (1, 2):
        around[place] += _whole_turns(around[place - 1] - around[place])
        across[place, is_torus] += _whole_turns(across[place - 1] - across[place])[is_torus]
    return _Path(face, side, around, across, wraps)


def _whole_turns(angle: Float64) -> Float64:
    """Round angles to multiples of 2π."""
    turns: Float64 = 2 * np.pi * np.round(angle / (2 * np.pi))
    return turns


def _middle_angles(model: BrepModel) -> tuple[Float64, Float64]:
    """Return the mean angles of the triangles of each face about its axis and about its torus's tube, (r,) each."""
    skin, regions = model.skin, model.regions
    u, v, axis = _frames(model)
    region, count = regions.region, len(regions.surfaces)
    offset = skin.points[skin.faces].mean(axis=1) - regions.surfaces.origin[region]
    weight = lengths(skin.cross)
    x, y, height = (np.einsum("ij,ij->i", offset, direction[region]) for direction in (u, v, axis))
    from_ring = np.hypot(x, y) - regions.surfaces.radius[region]
    sums = [sum_by_label(region, weight * part, count) for part in (x, y, from_ring, height)]
    return np.arctan2(sums[1], sums[0]), np.arctan2(sums[3], sums[2])


def _frames(model: BrepModel) -> tuple[Float64, Float64, Float64]:
    """Return two directions across the axis, away from the middle of each face, and the axis; (r, 3) each."""
    surfaces = model.regions.surfaces
    axis = np.where(traits.HAS_FREE_AXIS[surfaces.kind][:, None], model.seams.axis, surfaces.axis)
    u = perpendicular(axis)
    return u, np.cross(axis, u), axis


def _integrate(model: BrepModel, path: _Path) -> tuple[Float64, Float64]:
    """Return the areas of curved faces, and their cones from the origins of their surfaces; (r,) each."""
    surfaces, count = model.regions.surfaces, len(model.regions.surfaces)
    outward = np.where(model.regions.outward, 1.0, -1.0)
    face = path.face
    # a tube that is cut across has no first angle about it, but one about the axis
    by_angle = np.zeros(count, np.bool_)
    by_angle[face[path.wraps[1]]] = True
    steps = np.where(by_angle[face], path.across, path.around)
    areas, cones = np.empty((2, 3, len(face)))
    for place in range(3):
        areas[place], cones[place] = _antiderivatives(
            surfaces.take(face), path.around[place], path.across[place], by_angle[face]
        )
    start, middle, stop = steps
    slopes = np.stack([4 * middle - 3 * start - stop, stop - start, start + 3 * stop - 4 * middle])
    weights = np.array([[1.0], [4.0], [1.0]]) / 6 * slopes * path.side
    area = -outward * sum_by_label(face, (weights * areas).sum(axis=0), count)
    cone = -sum_by_label(face, (weights * cones).sum(axis=0), count)
    # the rim of a cap runs around its pole, or around both
    turn = (path.around[2] - path.around[0]) * path.side
    winding = np.abs(np.round(sum_by_label(face, turn, count) / (2 * np.pi)))
    is_sphere, is_torus = traits.HAS_FREE_AXIS[surfaces.kind], traits.HAS_TUBE[surfaces.kind]
    whole_area = np.where(is_sphere, 4 * np.pi * surfaces.radius**2, 0.0)
    whole_area = np.where(is_torus, 4 * np.pi**2 * surfaces.radius * surfaces.second, whole_area)
    whole_cone = whole_area * np.where(is_sphere, surfaces.radius, 1.5 * surfaces.second)
    area += np.where(is_sphere, winding * whole_area / 2, 0.0)
    cone += np.where(is_sphere, outward * winding * whole_cone / 2, 0.0)
    # the boundary alone does not tell a face from the rest of a closed surface
    turns = np.round((region_areas(model.skin, model.regions) - area) / np.maximum(whole_area, TINY))
    turns = np.where(whole_area > 0, turns, 0.0)
    unknown = traits.IS_PATCH[surfaces.kind]
    unknown[face[path.wraps[0] & by_angle[face]]] = True
    return (
        np.where(unknown, np.nan, area + turns * whole_area),
        np.where(unknown, np.nan, cone + outward * turns * whole_cone),
    )


def _antiderivatives(
    surfaces: SurfaceArray, around: Float64, across: Float64, by_angle: NDArray[np.bool_]
) -> tuple[Float64, Float64]:
    """Return integrals of the elements of area and cone over `across`, per radian of `around`: (k,) and (k,).

    Args:
        surfaces: (k,) surfaces of revolution by a line or a circle; cones begin at their origins.
        around: (k,) angle about the axis, rad.
        across: (k,) height or angle, as in `_Path`.
        by_angle: (k,) tori whose elements are integrated over `around` instead, per radian of `across`, negated.
    """
    kind, radius, second = surfaces.kind, surfaces.radius, surfaces.second
    sine, cosine = np.sin(across), np.cos(across)
    is_cone = traits.HAS_SLOPE[kind]
    kinds = [is_cone, traits.HAS_FREE_AXIS[kind], traits.HAS_TUBE[kind]]
    reach = radius + second * cosine
    half = across / 2 + np.sin(2 * across) / 4
    # integral of the distance from the axis over the height; that of a cone begins at its tip
    from_tip = (radius + second * across) ** 2 / (2 * np.where(is_cone, second, 1.0))
    ring = second * ((radius**2 + second**2) * sine + radius * second * (across + half))
    cone = np.select(kinds, [radius * from_tip, radius**3 * sine, ring], radius**2 * across)
    slant = np.sqrt(1 + second**2) * from_tip
    area = np.select(kinds, [slant, radius**2 * sine, second * (radius * across + second * sine)], radius * across)
    pull = around * reach * second * (radius * cosine + second)
    return np.where(by_angle, -around * reach * second, area), np.where(by_angle, -pull, cone)
