"""Checks that recognized surfaces stay close to the mesh, and the volume between mesh and surfaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.surfaces import traits
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, sum_by_label
from meshhub.builtin_plugins.step.surfaces.patches import PatchPool
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import curvatures, cylindrical, distances, gradients, pool_patches
from meshhub.model.scene import Float64
from meshhub.toolkit.distances import SurfaceDistance, closest_points
from meshhub.toolkit.geometry import IntIndex

SAGITTA_RATIO = 0.11
"""Sagitta over chord of an arc of 50° (tan(50° / 4) / 2); most triangles of a region turn by less."""

MAX_SAGITTA_RATIO = 0.2
"""Sagitta over chord of an arc of 85°: turn that no triangle may exceed.

Tessellators bound the turn along the edges of a face better than that within it."""

MAX_COARSE_RATIO = 1 / 8
"""Part of the triangles of a region that may exceed `SAGITTA_RATIO`."""

MAX_AREA_CHANGE_RATIO = 0.05
"""Part by which the area of a surface may differ from that of its triangles, and moved corners may change its volume.

A chord of 30.5° is 1.2 % shorter than its arc, and corners of a flat cap of a ball change its volume by 3 %.
"""

RADON_POINTS = [(np.full(3, 1 / 3), 9 / 40)] + [
    (np.where(np.arange(3) == corner, 1 - 2 * beside, beside), share)
    for beside, share in (((6 - 15**0.5) / 21, (155 - 15**0.5) / 1200), ((6 + 15**0.5) / 21, (155 + 15**0.5) / 1200))
    for corner in range(3)
]
"""Barycentric coordinates and weights of seven points; exact for polynomials of degree five on a triangle."""

_GRID = np.array([(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)]) / 4
"""Barycentric coordinates of fifteen points, on and between the edges."""

MAX_LIKELY_COUNT = 64
"""Points that are measured first."""

_SPACING_RATIO = 0.5
"""Distance between the samples of a mesh over the median edge."""

MIN_SPACING_MM = 1e-3
"""Millimeters; bounds the samples of a mesh of slivers."""

Mask = NDArray[np.bool_]


def measure_largest_bulge(corner: Float64, surfaces: SurfaceArray) -> float:
    """Return the largest distance of a point of a patch from the triangles that the patches replace.

    Args:
        corner: (m, 3, 3) triangles.
        surfaces: (m,) surface of each.
    """
    if not traits.IS_PATCH[surfaces.kind].any():
        return 0.0
    pool, rows, patch = pool_patches(surfaces)
    triangles = corner[rows]
    parameters = locate_triangles(pool, patch, pool.locate(np.repeat(patch, 3), triangles.reshape(-1, 3)))
    points = _place_points(pool, patch, parameters)
    own = _distances_to_own(points, triangles)
    # few points are measured exactly: the farthest, and those that may be farther than these
    likely = np.argsort(own, axis=None)[-MAX_LIKELY_COUNT:]
    largest = float(_distances_to_all(points.reshape(-1, 3)[likely], own.ravel()[likely], triangles).max())
    rest = np.flatnonzero(own > largest)
    exact = _distances_to_all(points.reshape(-1, 3)[rest], own.ravel()[rest], triangles)
    return max(largest, float(exact.max(initial=0.0)))


def locate_triangles(pool: PatchPool, patch: IntIndex, parameters: Float64) -> Float64:
    """Return the parameters (m, 3, 2) of the corners of triangles, so that none lies across the seam of its patch.

    Args:
        pool: Patches.
        patch: (m,) patch of each triangle.
        parameters: (3m, 2) parameters of the corners.
    """
    corner = parameters.reshape(-1, 3, 2)
    closed = pool.is_closed[patch]
    corner[closed, :, 0] += np.round(corner[closed, :1, 0] - corner[closed, :, 0])
    return corner


def find_bulges(pool: PatchPool, patch: IntIndex, parameters: Float64, triangles: Float64, limit: Float64) -> Mask:
    """Return over which triangles (m,) a point of a patch is farther from all triangles than the limit.

    Args:
        pool: Patches.
        patch: (m,) patch of each triangle.
        parameters: (m, 3, 2) of the corners, from `locate_triangles`.
        triangles: (m, 3, 3) their positions, mm.
        limit: (m,) mm.
    """
    points = _place_points(pool, patch, parameters)
    own = _distances_to_own(points, triangles)
    row, column = np.nonzero(own > limit)
    exact = _distances_to_all(points[row, column], own[row, column], triangles)
    result: Mask = np.bincount(column[exact > limit[column]], minlength=len(patch)) > 0
    return result


def _place_points(pool: PatchPool, patch: IntIndex, parameters: Float64) -> Float64:
    """Return the points (15, m, 3) of patches over triangles."""
    closed, points = pool.is_closed[patch], np.empty((len(_GRID), len(patch), 3))
    for number, weights in enumerate(_GRID):
        inside = np.einsum("ijk,j->ik", parameters, weights)
        inside[closed, 0] %= 1.0
        (points[number],) = pool.derive(patch, inside, 0)
    return points


def _distances_to_own(points: Float64, triangles: Float64) -> Float64:
    """Return the distances (15, m) of points from the triangles whose parameters they have."""
    return np.stack([lengths(row - closest_points(row, triangles)) for row in points])


def _distances_to_all(points: Float64, own: Float64, triangles: Float64) -> Float64:
    """Return the distances (q,) of points from any triangle.

    The parameters of a patch may be sheared, so that a point lies over another triangle than its own.
    """
    if len(points) == 0:
        return own
    flat = triangles.reshape(-1, 3)
    spacing = float(np.median(lengths(triangles[:, 1] - triangles[:, 0]))) * _SPACING_RATIO
    surface = SurfaceDistance(flat, np.arange(len(flat), dtype=np.int32).reshape(-1, 3), max(spacing, MIN_SPACING_MM))
    result: Float64 = np.minimum(own, surface.measure(points))
    return result


def find_deviating(skin: Skin, region: NDArray[np.int32], surfaces: SurfaceArray, limit: Float64) -> IntIndex:
    """Find the curved regions whose triangles are not chords of their surface.

    The middles of a triangle and of its edges may lie off the surface by the sagitta of its longest edge for a turn of
    50°; a few triangles of a region by that for a turn of 85°.

    Args:
        skin: Mesh.
        region: (m,) region of each face.
        surfaces: (r,) surfaces of the regions.
        limit: (r,) millimeters that a point may lie off its surface.
    Returns:
        Ascending region indices.
    """
    curved = np.flatnonzero(~traits.IS_PLANE[surfaces.kind[region]])
    if len(curved) == 0:
        return np.empty(0, np.intp)
    corner = skin.points[skin.faces[curved]]
    longest = np.max([lengths(corner[:, k] - corner[:, k - 1]) for k in range(3)], axis=0)
    face_surface = surfaces.take(region[curved])
    off = np.zeros(len(curved))
    for weights in ((0.5, 0.5, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (1 / 3, 1 / 3, 1 / 3)):
        point = np.einsum("ijk,j->ik", corner, np.array(weights))
        np.maximum(off, np.abs(distances(face_surface, point)), out=off)
    off -= limit[region[curved]]
    count = len(surfaces)
    coarse = sum_by_label(region[curved], off > SAGITTA_RATIO * longest, count)
    is_deviating = coarse > MAX_COARSE_RATIO * np.bincount(region[curved], minlength=count)
    is_deviating[region[curved[off > MAX_SAGITTA_RATIO * longest]]] = True
    return np.flatnonzero(is_deviating)


def find_misshapen(skin: Skin, region: NDArray[np.int32], surfaces: SurfaceArray, outline: Outline) -> IntIndex:
    """Find the cylinders and cones whose outlines do not bound the area of their triangles, and tori closed by a lid.

    The outline, unrolled onto the surface, encloses the area that a CAD program trims, by Green's theorem. The
    triangles are chords with turns up to 30.5°, and have nearly the same area. Rims around the axis come in pairs,
    except around the tip of a cone.

    Args:
        skin: Mesh.
        region: (m,) region of each face.
        surfaces: (r,) surfaces of the regions.
        outline: Outlines of the regions.
    Returns:
        Ascending region indices.
    """
    count = len(surfaces)
    is_revolved = traits.IS_RULED[surfaces.kind] | traits.HAS_TUBE[surfaces.kind]
    half = outline.half[is_revolved[region[outline.half // 3]]]
    owner = region[half // 3]
    half_surface = surfaces.take(owner)
    low, low_reach, low_away = cylindrical(half_surface, skin.points[skin.begin[half]])
    high, high_reach, high_away = cylindrical(half_surface, skin.points[skin.end[half]])
    sine = np.einsum("ij,ij->i", np.cross(low_away, high_away), half_surface.axis)
    turn = np.arctan2(sine, np.einsum("ij,ij->i", low_away, high_away))
    is_cone = traits.HAS_SLOPE[half_surface.kind]
    # area per radian of turn: of a cone between its tip and the half-edge, of a cylinder between the origin and it
    slope = np.where(is_cone, half_surface.second, 1.0)
    from_tip = np.sqrt(1 + slope**2) / (2 * slope) * (low_reach**2 + low_reach * high_reach + high_reach**2) / 3
    below = np.where(is_cone, from_tip, half_surface.radius * (low + high) / 2)
    enclosed = np.abs(sum_by_label(owner, below * turn, count))
    covered = sum_by_label(region, lengths(skin.cross), count) / 2
    around = np.abs(sum_by_label(owner, turn, count))
    is_unrolled = traits.IS_RULED[surfaces.kind]
    has_pairs_of_rims = np.isin(surfaces.kind, (SurfaceKind.CYLINDER, SurfaceKind.TORUS))
    allowed: Float64 = MAX_AREA_CHANGE_RATIO * covered + _rim_segments(skin, half, owner, half_surface, count)
    is_misshapen = is_unrolled & (np.abs(enclosed - covered) > allowed)
    # turns add up to zero for paired rims, and to ±2π for a single rim; 1 rad separates them
    is_misshapen |= has_pairs_of_rims & (around > 1)
    return np.flatnonzero(is_misshapen)


def _rim_segments(skin: Skin, half: IntIndex, owner: NDArray[np.int32], surfaces: SurfaceArray, count: int) -> Float64:
    """Compute the area between the rims of each cone and their chords, which is much of a narrow cone.

    Args:
        skin: Mesh.
        half: (n,) half-edges of outlines.
        owner: (n,) region of each half-edge.
        surfaces: (n,) surface of each half-edge.
        count: Number of regions.
    Returns:
        (count,) mm², measured along the cones; zero for other surfaces.
    """
    begin, end = skin.points[skin.begin[half]], skin.points[skin.end[half]]
    depth = np.abs(distances(surfaces, (begin + end) / 2))
    slope = np.where(traits.HAS_SLOPE[surfaces.kind], np.abs(surfaces.second), 0.0)
    return sum_by_label(owner, 2 / 3 * lengths(end - begin) * depth * slope, count)


def chord_volumes(skin: Skin, region: NDArray[np.int32], surfaces: SurfaceArray) -> Float64:
    """Compute the volume between the triangles of each shell and the surfaces of their regions.

    Args:
        skin: Mesh.
        region: (m,) region of each face.
        surfaces: (r,) surfaces of the regions.
    Returns:
        (s,) mm³; positive where the surfaces enclose more than the triangles.
    """
    curved = np.flatnonzero(~traits.IS_PLANE[surfaces.kind[region]])
    gains = measure_gains(skin, curved, surfaces.take(region[curved]))
    return sum_by_label(skin.shell[curved], gains, len(skin.closed))


def measure_gains(skin: Skin, triangles: IntIndex, surfaces: SurfaceArray) -> Float64:
    """Compute the volume between triangles and their surfaces.

    Each point of a triangle moves along the normal of its surface, and the patch around it grows with the curvatures.

    Args:
        skin: Mesh.
        triangles: (n,) faces.
        surfaces: (n,) surface of each.
    Returns:
        (n,) mm³; positive where the surfaces enclose more than the triangles.
    Source:
        Volume of parallel surfaces: Steiner's formula. Seven points per triangle: Radon, "Zur mechanischen Kubatur",
        Monatshefte für Mathematik 52, 1948.
    """
    corner, cross = skin.points[skin.faces[triangles]], skin.cross[triangles]
    total = np.zeros(len(triangles))
    for weights, share in RADON_POINTS:
        point = np.einsum("ijk,j->ik", corner, weights)
        gap, normal = gradients(surfaces, point)
        first, second = curvatures(surfaces, point)
        swept = gap * (1 - gap * (first + second) / 2 + gap**2 * first * second / 3)
        total -= share * swept * np.einsum("ij,ij->i", normal, cross) / 2
    return total
