"""Creases of a noisy mesh: edges where two surfaces meet at an angle that noise does not cause."""

# why this way: docs/decisions/0061-limits-of-noisy-meshes.md
from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.noisy_points import QUANTILE
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize
from meshhub.toolkit.topology import components, first_members

_MIN_TURN_RAD = np.radians(35.0)
"""Radians; smallest turn of a crease. Facets of fillets turn by less."""

_QUANTILE_DEVIATIONS = 2 * NormalDist().inv_cdf((1 + QUANTILE) / 2)
"""`QUANTILE` of the distances between neighboring triangles, in deviations of the noise: a point and its shadow on the
plane of a triangle have two of them."""

_TILT_DEVIATIONS = 2.0
"""Deviations of the noise that turn a triangle, over its height."""


def split_at_creases(skin: Skin, noise_mm: float = np.inf) -> Skin:
    """Return the mesh with a point for each side of a crease, so that no neighborhood reaches across it.

    A wall that is narrower than four edges has no point that is two edges away from its border, but within its own
    side, each point has a neighborhood. Single edges that noise turned do not separate the triangles around a point.

    Args:
        skin: Mesh.
        noise_mm: Deviation of its noise; without it, distances between neighbors count, which round faces have, too.
    """
    normal = normalize(skin.cross)
    half = np.flatnonzero(skin.twin >= 0)
    twin = skin.twin[half]
    length = np.maximum(lengths(skin.points[skin.end] - skin.points[skin.begin])[half], 1e-300)
    height = lengths(skin.cross[half // 3]) / length
    apex = skin.points[skin.begin[twin - twin % 3 + (twin + 2) % 3]]
    away = np.abs(np.einsum("ij,ij->i", apex - skin.points[skin.begin[half]], normal[half // 3]))
    sigma = min(float(np.quantile(away, QUANTILE)) / _QUANTILE_DEVIATIONS, noise_mm) if len(half) else 0.0
    tilt = np.zeros(len(skin.twin))
    tilt[half] = np.arctan(_TILT_DEVIATIONS * sigma / np.maximum(height, 1e-300))
    cosine = np.einsum("ij,ij->i", normal[half // 3], normal[twin // 3])
    is_smooth = np.arccos(np.clip(cosine, -1, 1)) < _MIN_TURN_RAD + tilt[half] + tilt[twin]
    half, twin = half[is_smooth], twin[is_smooth]
    following = twin - twin % 3 + (twin + 1) % 3
    count, label = components(len(skin.begin), half, following)
    first = first_members(label, count)
    links = np.full(len(skin.twin), -1, np.intp)
    links[half] = twin
    faces = label.reshape(-1, 3).astype(np.int32)
    return replace(skin, points=skin.points[skin.begin[first]], faces=faces, twin=links)
