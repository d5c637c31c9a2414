"""Flat regions of a side of a solid, and the places in them where a rectangle fits."""

from __future__ import annotations

from typing import NamedTuple

import manifold3d
import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import face_normals, unit_vectors
from meshhub.toolkit.topology import boundary_loops, components, edges, fans

MAX_TURN_RAD = 1e-3
"""Radians between neighboring triangles of one flat region: above the rounding of float32 files."""

MAX_TILT_DEG = 45.0
"""Degrees between a region and the direction of its side; beyond, it belongs to another side."""

FLATNESS_RATIO = 1e-3
"""Distance of a region from its plane, per square root of its area; more is a curved surface."""

MAX_REGIONS = 5
"""Largest regions that are tried."""

GRID_SIZE = 256
"""Cells along the longer side of a region, among which places are sought."""

AXES = {
    "top": ((0, 0, 1), (0, 1, 0)),
    "bottom": ((0, 0, -1), (0, 1, 0)),
    "front": ((0, -1, 0), (0, 0, 1)),
    "back": ((0, 1, 0), (0, 0, 1)),
    "left": ((-1, 0, 0), (0, 0, 1)),
    "right": ((1, 0, 0), (0, 0, 1)),
}
"""Direction of each side, and the one that is up in a text on it."""


class Region(NamedTuple):
    """Flat region of a surface.

    outline: its area in the coordinates right and up
    frame:   (4, 4) matrix from right, up and outward to the place of the region
    area:    mm²
    """

    outline: manifold3d.CrossSection
    frame: Float64
    area: float


def find_regions(points: Float64, faces: Int32, side: str) -> list[Region]:
    """Return the largest flat regions of a closed surface that face a side, the largest first."""
    direction, up = (np.array(axis, np.float64) for axis in AXES[side])
    doubled = face_normals(points, faces)
    normals = unit_vectors(doubled)
    half_a, half_b = edges(faces).pairs()
    is_flat = np.einsum("ij,ij->i", normals[half_a // 3], normals[half_b // 3]) > np.cos(MAX_TURN_RAD)
    half_a, half_b = half_a[is_flat], half_b[is_flat]
    count, label = components(len(faces), half_a // 3, half_b // 3)
    total = np.stack([np.bincount(label, doubled[:, axis], count) for axis in range(3)], axis=1) / 2
    areas = np.linalg.norm(total, axis=1)
    facing = total @ direction > np.cos(np.deg2rad(MAX_TILT_DEG)) * areas
    # the same part gives the same regions in the same order, in spite of rounding
    largest = np.argsort(-np.round(areas, 6), kind="stable")
    regions = [
        _measure(points, faces[label == number], total[number] / areas[number], up)
        for number in largest[facing[largest]][:MAX_REGIONS]
    ]
    return [region for region in regions if region is not None]


def _measure(points: Float64, faces: Int32, normal: Float64, up: Float64) -> Region | None:
    """Return connected faces as a region; None if they are curved."""
    corners = points[np.unique(faces)]
    center = (corners.min(axis=0) + corners.max(axis=0)) / 2
    up = up - (up @ normal) * normal
    up /= np.linalg.norm(up)
    frame = np.eye(4)
    frame[:3, :3] = np.stack([np.cross(up, normal), up, normal], axis=1)
    frame[:3, 3] = center + normal * ((corners.mean(axis=0) - center) @ normal)
    half_a, half_b = edges(faces).pairs()
    is_border = np.ones(3 * len(faces), np.bool_)
    is_border[half_a] = is_border[half_b] = False
    border, begin = boundary_loops(np.flatnonzero(is_border), fans(faces, half_a, half_b)[1])
    local = (points - frame[:3, 3]) @ frame[:3, :3]
    loops = np.split(local[faces.ravel()[border]][:, :2], begin[1:-1])
    outline = manifold3d.CrossSection(loops, manifold3d.FillRule.EvenOdd)
    area = outline.area()
    if area == 0 or np.ptp(local[np.unique(faces), 2]) > FLATNESS_RATIO * np.sqrt(area):
        return None
    return Region(outline, frame, area)


class Places:
    """Places in an area where a rectangle fits, on a grid."""

    def __init__(self, area: manifold3d.CrossSection) -> None:
        """Prepare the grid of an area that is not empty."""
        left, low, right, high = area.bounds()
        self.origin = np.array([left, low])
        self.cell = max(right - left, high - low) / GRID_SIZE
        self.shape = tuple(max(1, int(np.ceil(side / self.cell))) for side in (right - left, high - low))
        filled = self._fill(area.to_polygons())
        # sums of all cells to the lower left, from which those of any rectangle follow
        self.sums = np.pad(filled.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def _fill(self, loops: list[NDArray[np.float64]]) -> NDArray[np.int64]:
        """Return which cells (columns, rows) have their centers in the area, as 0 and 1."""
        begin = (np.concatenate(loops) - self.origin) / self.cell
        end = (np.concatenate([np.roll(loop, -1, axis=0) for loop in loops]) - self.origin) / self.cell
        rows = np.arange(self.shape[1]) + 0.5
        row, edge = np.nonzero((begin[None, :, 1] <= rows[:, None]) != (end[None, :, 1] <= rows[:, None]))
        share = (rows[row] - begin[edge, 1]) / (end[edge, 1] - begin[edge, 1])
        x = begin[edge, 0] + share * (end[edge, 0] - begin[edge, 0])
        column = np.clip(np.ceil(x - 0.5), 0, self.shape[0]).astype(np.intp)
        toggles = np.zeros((self.shape[0] + 1, self.shape[1]), np.int64)
        np.add.at(toggles, (column, row), 1)
        filled: NDArray[np.int64] = toggles.cumsum(axis=0)[:-1] % 2
        return filled

    def find(self, width: float, height: float) -> Float64 | None:
        """Return the center of a rectangle in the area that is nearest to its middle; None if none fits."""
        columns, rows = (int(np.ceil(side / self.cell)) for side in (width, height))
        if columns > self.shape[0] or rows > self.shape[1]:
            return None
        sums = self.sums
        counts = sums[columns:, rows:] - sums[:-columns, rows:] - sums[columns:, :-rows] + sums[:-columns, :-rows]
        fits = np.argwhere(counts == columns * rows)
        if len(fits) == 0:
            return None
        centers = fits + np.array([columns, rows]) / 2
        best = np.linalg.norm(centers - np.array(self.shape) / 2, axis=1).argmin()
        center: Float64 = self.origin + centers[best] * self.cell
        return center
