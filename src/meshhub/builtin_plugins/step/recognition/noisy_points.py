"""Noise of the vertices of a mesh, estimated from the mesh itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, normalize, perpendicular, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_UNKNOWNS_COUNT = 6
"""Coefficients of a quadric over a plane."""

_RIDGE_RATIO = 1e-9
"""Part of the diagonal that is added to it, so that points on one line have a solution."""

QUANTILE = 0.35
"""Quantile of residuals, and of distances between triangles, that counts as noise; more than a third of the points of a
part are not beside an edge."""


class Roughness(NamedTuple):
    """Residuals of the points of a mesh from quadrics through their surroundings.

    local:  (p,) mm, root mean square of the residuals around each point; large at edges
    flat:   (p,) mm, the same for planes instead of quadrics
    normal: (p, 3) unit normals of the quadrics
    """

    local: Float64
    flat: Float64
    normal: Float64


def measure_roughness(skin: Skin) -> Roughness:
    """Fit a quadric to the points at most two edges away from each point."""
    owner, point = _surroundings(skin)
    count = len(skin.points)
    size = np.bincount(owner, minlength=count)
    columns = [sum_by_label(skin.begin, np.repeat(skin.cross[:, k], 3), count) for k in range(3)]
    normal = normalize(np.stack(columns, axis=1))
    u = perpendicular(normal)
    v = np.cross(normal, u)
    offset = skin.points[point] - skin.points[owner]
    reach = np.sqrt(np.bincount(owner, lengths(offset) ** 2, count) / np.maximum(size, 1))
    scale = np.maximum(reach, 1e-300)[owner]
    x, y, z = (np.einsum("ij,ij->i", offset, axis[owner]) / scale for axis in (u, v, normal))
    columns = [np.ones_like(x), x, y, x * x, x * y, y * y, z]
    begin = np.searchsorted(owner, np.arange(count))
    sums = np.empty((count, 7, 7))
    for i in range(7):
        for j in range(i, 7):
            sums[:, i, j] = sums[:, j, i] = np.add.reduceat(columns[i] * columns[j], begin)
    full, slope = _residuals(sums, _UNKNOWNS_COUNT)
    flat, _ = _residuals(sums, 3)
    local = reach * np.sqrt(full / np.maximum(size - _UNKNOWNS_COUNT, 1))
    local[size <= _UNKNOWNS_COUNT + 1] = np.inf
    flat_rms = reach * np.sqrt(flat / np.maximum(size - 3, 1))
    tilted = normalize(normal - slope[:, :1] * u - slope[:, 1:] * v)
    return Roughness(local, flat_rms, tilted)


def estimate_noise(local: Float64) -> float:
    """Return the deviation of the noise (mm) from the residuals around points."""
    finite = local[np.isfinite(local)]
    return float(np.quantile(finite, QUANTILE)) if len(finite) else 0.0


def _residuals(sums: Float64, unknowns: int) -> tuple[Float64, Float64]:
    """Return the sum of squared residuals (p,) of the equations in the first unknowns, and the slopes (p, 2)."""
    matrix = sums[:, :unknowns, :unknowns]
    ridge = _RIDGE_RATIO * np.maximum(np.einsum("ijj->ij", matrix), 1e-12)
    solution = np.linalg.solve(matrix + ridge[:, None, :] * np.eye(unknowns), sums[:, :unknowns, 6:])[:, :, 0]
    square = sums[:, 6, 6] - np.einsum("ij,ij->i", solution, sums[:, :unknowns, 6])
    return np.maximum(square, 0), solution[:, 1:3]


def _surroundings(skin: Skin) -> tuple[IntIndex, IntIndex]:
    """Return pairs of a point and each point at most two edges away, with itself, by the first one."""
    count = len(skin.points)
    link = csr_array((np.ones(len(skin.begin), np.int8), (skin.begin, skin.end)), shape=(count, count)) != 0
    link = (link + link.T).astype(np.float32)
    near = (link @ link + link).tocsr()
    near.sort_indices()
    return np.repeat(np.arange(count), np.diff(near.indptr)), near.indices.astype(np.intp)
