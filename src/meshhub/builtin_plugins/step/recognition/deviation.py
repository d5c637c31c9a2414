"""What was merged, dissolved or recognised must not have moved the surface: by volume, and by distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.outline import Outline
from meshhub.builtin_plugins.step.recognition.skin import Skin, lengths, sum_by_label
from meshhub.builtin_plugins.step.recognition.surfaces import (
    SurfaceArray,
    SurfaceKind,
    curvatures,
    cylindrical,
    distances,
    gradients,
)
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


def find_deviating(skin: Skin, region: NDArray[np.int32], surfaces: SurfaceArray) -> NDArray[np.intp]:
    """The curved regions whose triangles are not chords of their surface.

    A triangle may lie off by the sagitta of its longest edge for a turn of fifty degrees; a few of a region, for one
    of eighty-five: tessellators bound the turn along the edges of a face better than that within it.
    """
    curved = np.flatnonzero(surfaces.kind[region] != SurfaceKind.PLANE)
    if len(curved) == 0:
        return np.empty(0, np.intp)
    corner = skin.points[skin.faces[curved]]
    longest = np.max([lengths(corner[:, k] - corner[:, k - 1]) for k in range(3)], axis=0)
    each = surfaces.take(region[curved])
    off = np.zeros(len(curved))
    for weights in ((0.5, 0.5, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (1 / 3, 1 / 3, 1 / 3)):
        np.maximum(off, np.abs(distances(each, np.einsum("ijk,j->ik", corner, np.array(weights)))), out=off)
    count = len(surfaces)
    many = sum_by_label(region[curved], off > _SAGITTA * longest, count) > _FEW * np.bincount(
        region[curved], minlength=count
    )
    many[region[curved[off > _LARGEST_SAGITTA * longest]]] = True
    return np.flatnonzero(many)


def find_misshapen(skin: Skin, region: NDArray[np.int32], surfaces: SurfaceArray, outline: Outline) -> NDArray[np.intp]:
    """The cylinders and cones whose outlines do not bound what their triangles cover, and tori closed by a lid.

    The outline, unrolled on to the surface, encloses the area that a CAD program trims (by Green's theorem); the
    triangles are chords of it, by at most thirty degrees, and have nearly the same. Rims around an axis come in pairs,
    but for that around the tip of a cone.
    """
    count = len(surfaces)
    half = outline.half[
        np.isin(surfaces.kind[region[outline.half // 3]], (SurfaceKind.CYLINDER, SurfaceKind.CONE, SurfaceKind.TORUS))
    ]
    owner = region[half // 3]
    each = surfaces.take(owner)
    low, low_reach, low_away = cylindrical(each, skin.points[skin.begin[half]])
    high, high_reach, high_away = cylindrical(each, skin.points[skin.end[half]])
    turn = np.arctan2(
        np.einsum("ij,ij->i", np.cross(low_away, high_away), each.axis), np.einsum("ij,ij->i", low_away, high_away)
    )
    slope = np.where(each.kind == SurfaceKind.CONE, each.second, 1.0)
    from_tip = np.sqrt(1 + slope**2) / (2 * slope) * (low_reach**2 + low_reach * high_reach + high_reach**2) / 3
    below = np.where(each.kind == SurfaceKind.CONE, from_tip, each.radius * (low + high) / 2)
    enclosed = np.abs(sum_by_label(owner, below * turn, count))
    covered = sum_by_label(region, lengths(skin.cross), count) / 2
    around = np.abs(sum_by_label(owner, turn, count))
    bad = (np.abs(enclosed - covered) > _STRETCHED * covered) & np.isin(
        surfaces.kind, (SurfaceKind.CYLINDER, SurfaceKind.CONE)
    )
    bad |= np.isin(surfaces.kind, (SurfaceKind.CYLINDER, SurfaceKind.TORUS)) & (around > 1)
    return np.flatnonzero(bad)


def chord_volumes(skin: Skin, region: NDArray[np.int32], surfaces: SurfaceArray) -> Float64:
    """(s,) the volume between the triangles of each shell and their surfaces; positive where those enclose more.

    Each point of a triangle moves to its surface along the normal there; the patch about it grows on the way as the
    curvatures tell (Steiner's formula). Seven points a triangle (Radon, 1948).
    """
    curved = np.flatnonzero(surfaces.kind[region] != SurfaceKind.PLANE)
    corner, cross, each = skin.points[skin.faces[curved]], skin.cross[curved], surfaces.take(region[curved])
    total = np.zeros(len(curved))
    for weights, share in _RADON:
        point = np.einsum("ijk,j->ik", corner, weights)
        gap, normal = gradients(each, point)
        one, other = curvatures(each, point)
        swept = gap * (1 - gap * (one + other) / 2 + gap**2 * one * other / 3)
        total -= share * swept * np.einsum("ij,ij->i", normal, cross) / 2
    return sum_by_label(skin.shell[curved], total, len(skin.closed))
