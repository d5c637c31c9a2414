"""Other methods of reducing colors, for `benchmarks/colors.py`: one k-means, and the dithered cells of ditherforge.

ditherforge (https://github.com/rtwfroody/ditherforge) is a program with windows, which could not be installed. What its
README describes is done here on the plates: cells of 1.05 nozzles get the color of the texture at their middle; colors
within ΔE 5 of a filament take it; the errors of the others are diffused with the weights of Floyd and Steinberg. It
chooses from filaments of a list. Here, it gets the palette of the k-means, which fits the model better than a list.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.spatial import cKDTree

from meshhub.model.scene import Float64, UInt8
from meshhub.toolkit.colors import LINEAR_OF_BYTE, convert_to_lab, encode_srgb, measure_delta_e

CELL_MM = 0.42
"""Millimeters; 1.05 times a nozzle of 0.4 mm."""

SNAP_DELTA_E = 5.0
"""Color difference up to which a cell takes a filament without dithering."""

SEEN_RADIUS_MM = 1.0
"""Millimeters in which the eye mixes colors; details of 2 mm are seen apart from half a meter away."""


def find_plain_palette(colors: UInt8, count: int) -> UInt8:
    """Return the palette of one k-means in sRGB."""
    centers, _ = kmeans2(colors[::4].astype(np.float64), count, minit="++", seed=0, iter=30, missing="warn")
    return np.rint(centers).astype(np.uint8)


def choose_nearest(colors: UInt8, palette: UInt8) -> UInt8:
    """Return the nearest colors (k, 3) of a palette, in sRGB."""
    return palette[cKDTree(palette.astype(np.float64)).query(colors.astype(np.float64))[1]]


def dither_cells(places: Float64, side_mm: float, colorist: Callable[[Float64], UInt8], palette: UInt8) -> UInt8:
    """Return the colors (k, 3) that points of a square plate have after dithering in cells.

    Args:
        places: (k, 2) positions in millimeters, each coordinate 0 to `side_mm`.
        side_mm: Side of the plate.
        colorist: Colors of positions that range from 0 to 1.
        palette: (n, 3) filaments.
    """
    count = int(np.ceil(side_mm / CELL_MM))
    middles = (np.stack(np.meshgrid(*[np.arange(count)] * 2, indexing="ij"), axis=-1) + 0.5) * CELL_MM / side_mm
    colors = colorist(np.minimum(middles, 1).reshape(-1, 2))
    difference = measure_delta_e(convert_to_lab(colors)[:, None], convert_to_lab(palette))
    nearest = difference.argmin(axis=1)
    is_near = difference.min(axis=1) <= SNAP_DELTA_E
    wanted = np.where(is_near[:, None], palette[nearest], colors).astype(np.float64).reshape(count, count, 3)
    cells = np.floor(places / CELL_MM).astype(int).clip(0, count - 1)
    return palette[_diffuse(wanted, palette.astype(np.float64))[cells[:, 0], cells[:, 1]]]


def _diffuse(wanted: Float64, palette: Float64) -> np.ndarray:
    """Return the filament of each cell; the errors of a cell move to its next neighbors."""
    rest = np.pad(wanted, ((0, 1), (1, 1), (0, 0)))
    chosen = np.zeros(wanted.shape[:2], int)
    for row, column in np.ndindex(chosen.shape):
        color = rest[row, column + 1]
        number = int(np.square(palette - color).sum(axis=1).argmin())
        chosen[row, column] = number
        error = (color - palette[number]) / 16
        rest[row, column + 2] += 7 * error
        rest[row + 1, column : column + 3] += np.outer((3, 5, 1), error)
    return chosen


def measure_seen(points: Float64, source: UInt8, result: UInt8) -> float:
    """Return the mean color difference of the light that comes from the surroundings of each point."""
    pairs = cKDTree(points).query_ball_point(points[::10], SEEN_RADIUS_MM)
    counts = np.array([len(pair) for pair in pairs])
    members, owner = np.concatenate(pairs).astype(int), np.repeat(np.arange(len(pairs)), counts)
    means = []
    for colors in (source, result):
        sums = np.stack([np.bincount(owner, channel) for channel in LINEAR_OF_BYTE[colors[members]].T], axis=1)
        means.append(convert_to_lab(np.rint(encode_srgb(sums / counts[:, None]) * 255).astype(np.uint8)))
    return float(measure_delta_e(*means).mean())
