"""What was merged, dissolved or recognised must not have moved the surface: by volume, and by distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.bodies import shell_sizes, shell_volumes
from meshhub.builtin_plugins.step.recognition.outline import Outline, outline_of, signed_areas
from meshhub.builtin_plugins.step.recognition.overlaps import overlapping
from meshhub.builtin_plugins.step.recognition.planar import (
    ROUNDING,
    Planes,
    flat_regions,
    parted,
    planes_of,
    tolerance_for,
)
from meshhub.builtin_plugins.step.recognition.quadrics import (
    Kind,
    Surfaces,
    curvatures,
    cylindrical,
    distances,
    gradients,
)
from meshhub.builtin_plugins.step.recognition.skin import Skin, lengths, summed
from meshhub.model.scene import Float64

VOLUME = 3e-7
"""By this part of a shell's volume, or of the cube of its size where it has next to none, planar faces may differ."""

_ATTEMPTS = 5
_HALF_UNIT = 2.0**-24
_FINER = 0.1
_SAGITTA = 0.11
_LARGEST_SAGITTA = 0.2
_FEW = 1 / 8
_STRETCHED = 0.05
_RADON = [(np.full(3, 1 / 3), 9 / 40)] + [
    (np.where(np.arange(3) == corner, 1 - 2 * beside, beside), share)
    for beside, share in (((6 - 15**0.5) / 21, (155 - 15**0.5) / 1200), ((6 + 15**0.5) / 21, (155 + 15**0.5) / 1200))
    for corner in range(3)
]
"""Barycentric coordinates and weights."""


class Facets(NamedTuple):
    """A skin as planar faces: regions, planes and outlines, and the tolerance they were made with."""

    region: NDArray[np.int32]
    faces: int
    planes: Planes
    outline: Outline
    tolerance: float


def facet(skin: Skin) -> Facets:
    """The planar faces of a skin, whose polyhedra have the volumes of the mesh.

    Where the coordinates are finer than the rounding of 32-bit numbers lets expect, merging by that
    rounding can move a face too far: then it is done again, finer.
    """
    tolerance = tolerance_for(skin.points)
    volume, size = shell_volumes(skin), shell_sizes(skin)
    allowed = VOLUME * np.maximum(np.abs(volume), VOLUME * size)
    if np.array_equal(skin.points, skin.points.astype(np.float32)):
        # then the mesh's own volume is no better than its rounded coordinates
        allowed = np.maximum(allowed, tolerance / ROUNDING * _HALF_UNIT * size ** (2 / 3))
    for attempt in range(_ATTEMPTS):
        region, count = flat_regions(skin, tolerance)
        planes = planes_of(skin, region, count)
        outline = outline_of(skin, region, np.zeros(count, np.bool_), tolerance)
        if attempt == _ATTEMPTS - 1:
            break
        off = np.abs(_polyhedra(skin, region, planes, outline) - volume)
        if (off <= allowed)[skin.closed].all():
            break
        tolerance *= _FINER
    folded = overlapping(skin, planes, outline, tolerance)
    if len(folded):
        region, count = parted(skin, region, folded, tolerance)
        planes = planes_of(skin, region, count)
        outline = outline_of(skin, region, np.zeros(count, np.bool_), tolerance)
    return Facets(region, count, planes, outline, tolerance)


def _polyhedra(skin: Skin, region: NDArray[np.int32], planes: Planes, outline: Outline) -> Float64:
    """(s,) the volume within the faces' planes, from the areas of their loops."""
    count = len(skin.closed)
    first = np.empty(count, np.intp)
    first[skin.shell[::-1]] = skin.faces[::-1, 0]
    shell = np.empty(len(planes.normal), np.intp)
    shell[region] = skin.shell
    height = np.einsum("ij,ij->i", planes.centre - skin.points[first[shell]], planes.normal)
    loop_region = outline.loop_region
    pyramids = signed_areas(skin, outline, planes.normal) * height[loop_region] / 6
    return summed(shell[loop_region], pyramids, count)


def deviating(skin: Skin, region: NDArray[np.int32], surfaces: Surfaces) -> NDArray[np.intp]:
    """The curved regions whose triangles are not chords of their surface.

    A triangle may lie off by the sagitta of its longest edge for a turn of fifty degrees; a few of a region, for one
    of eighty-five: tessellators bound the turn along the edges of a face better than that within it.
    """
    curved = np.flatnonzero(surfaces.kind[region] != Kind.PLANE)
    if len(curved) == 0:
        return np.empty(0, np.intp)
    corner = skin.points[skin.faces[curved]]
    longest = np.max([lengths(corner[:, k] - corner[:, k - 1]) for k in range(3)], axis=0)
    each = surfaces.take(region[curved])
    off = np.zeros(len(curved))
    for weights in ((0.5, 0.5, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (1 / 3, 1 / 3, 1 / 3)):
        np.maximum(off, np.abs(distances(each, np.einsum("ijk,j->ik", corner, np.array(weights)))), out=off)
    count = len(surfaces)
    many = summed(region[curved], off > _SAGITTA * longest, count) > _FEW * np.bincount(region[curved], minlength=count)
    many[region[curved[off > _LARGEST_SAGITTA * longest]]] = True
    return np.flatnonzero(many)


def misshapen(skin: Skin, region: NDArray[np.int32], surfaces: Surfaces, outline: Outline) -> NDArray[np.intp]:
    """The cylinders and cones whose outlines do not bound what their triangles cover, and tori closed by a lid.

    The outline, unrolled on to the surface, encloses the area that a CAD program trims (by Green's theorem); the
    triangles are chords of it, by at most thirty degrees, and have nearly the same. Rims around an axis come in pairs,
    but for that around the tip of a cone.
    """
    count = len(surfaces)
    half = outline.half[np.isin(surfaces.kind[region[outline.half // 3]], (Kind.CYLINDER, Kind.CONE, Kind.TORUS))]
    owner = region[half // 3]
    each = surfaces.take(owner)
    low, low_reach, low_away = cylindrical(each, skin.points[skin.begin[half]])
    high, high_reach, high_away = cylindrical(each, skin.points[skin.end[half]])
    turn = np.arctan2(
        np.einsum("ij,ij->i", np.cross(low_away, high_away), each.axis), np.einsum("ij,ij->i", low_away, high_away)
    )
    slope = np.where(each.kind == Kind.CONE, each.second, 1.0)
    from_tip = np.sqrt(1 + slope**2) / (2 * slope) * (low_reach**2 + low_reach * high_reach + high_reach**2) / 3
    below = np.where(each.kind == Kind.CONE, from_tip, each.radius * (low + high) / 2)
    enclosed = np.abs(summed(owner, below * turn, count))
    covered = summed(region, lengths(skin.cross), count) / 2
    around = np.abs(summed(owner, turn, count))
    bad = (np.abs(enclosed - covered) > _STRETCHED * covered) & np.isin(surfaces.kind, (Kind.CYLINDER, Kind.CONE))
    bad |= np.isin(surfaces.kind, (Kind.CYLINDER, Kind.TORUS)) & (around > 1)
    return np.flatnonzero(bad)


def chord_volumes(skin: Skin, region: NDArray[np.int32], surfaces: Surfaces) -> Float64:
    """(s,) the volume between the triangles of each shell and their surfaces; positive where those enclose more.

    Each point of a triangle moves to its surface along the normal there; the patch about it grows on the way as the
    curvatures tell (Steiner's formula). Seven points a triangle (Radon, 1948).
    """
    curved = np.flatnonzero(surfaces.kind[region] != Kind.PLANE)
    corner, cross, each = skin.points[skin.faces[curved]], skin.cross[curved], surfaces.take(region[curved])
    total = np.zeros(len(curved))
    for weights, share in _RADON:
        point = np.einsum("ijk,j->ik", corner, weights)
        gap, normal = gradients(each, point)
        one, other = curvatures(each, point)
        swept = gap * (1 - gap * (one + other) / 2 + gap**2 * one * other / 3)
        total -= share * swept * np.einsum("ij,ij->i", normal, cross) / 2
    return summed(skin.shell[curved], total, len(skin.closed))
