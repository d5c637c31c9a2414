"""Blue noise on a surface: thresholds whose pattern has no visible structure."""

# why no layers of two filaments: docs/decisions/0047-mixed-filaments.md
from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64

TILE_SIZE = 64
"""Cells per side of the tile; with this many, its repetition is invisible."""

FILTER_ROUNDS = 24
"""Rounds that remove low frequencies from the noise."""


@cache
def make_tile() -> Float64:
    """Return a (TILE_SIZE, TILE_SIZE) tile of evenly distributed numbers from 0 to 1 without low frequencies.

    White noise is filtered and ranked repeatedly; void-and-cluster is slightly better, but needs 4096 steps.
    """
    frequency = np.fft.fftfreq(TILE_SIZE)
    keep = 1 - np.exp(-(frequency[:, None] ** 2 + frequency**2) / (2 * 0.18**2))
    tile = np.random.default_rng(0).random((TILE_SIZE, TILE_SIZE))
    for _ in range(FILTER_ROUNDS):
        filtered = np.fft.ifft2(np.fft.fft2(tile - 0.5) * keep).real
        rank = np.empty(filtered.size)
        rank[filtered.ravel().argsort(kind="stable")] = np.arange(filtered.size)
        tile = ((rank + 0.5) / filtered.size).reshape(tile.shape)
    return tile


def find_thresholds(points: Float64, axis: NDArray[np.intp], cell: float) -> Float64:
    """Return the threshold (k,) of each point, constant within a cell.

    Args:
        points: (k, 3) positions.
        axis: (k,) axis along which the tile is projected: the one that the surface faces.
        cell: Side of a cell, in the unit of the points.
    """
    cells = np.floor(points / cell).astype(np.int64) % TILE_SIZE
    rows = np.arange(len(points))
    result: Float64 = make_tile()[cells[rows, (axis + 1) % 3], cells[rows, (axis + 2) % 3]]
    return result
