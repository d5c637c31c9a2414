"""Height fields and extrusions (ISO/IEC 19775-1, 13.3.4 and 13.3.5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub import UnreadableFile
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import unit_vectors
from meshhub_x3d.attributes import Corners, add_attributes
from meshhub_x3d.fields import read_flag, read_float, read_floats, read_integer
from meshhub_x3d.nodes import Node
from meshhub_x3d.surfaces import Surface, join, make_grid
from meshhub_x3d.transforms import rotations

_SECTION = np.array([[1.0, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
"""Default of `crossSection`."""

_PARALLEL_RATIO = 1e-9
"""Sine of the angle below which neighboring segments of a spine count as collinear."""


def read_elevation_grid(node: Node) -> Surface | None:
    """Return a height field. Raises UnreadableFile."""
    heights = read_floats(node, "height")[:, 0]
    columns, rows = (read_integer(node, name, 0) for name in ("xDimension", "zDimension"))
    if columns < 2 or rows < 2:
        return None
    if columns * rows > len(heights):
        raise UnreadableFile(
            f"an ElevationGrid has {len(heights)} heights for {columns} × {rows} points; is it cut off?"
        )
    x = np.arange(columns) * read_float(node, "xSpacing", 1)
    z = np.arange(rows) * read_float(node, "zSpacing", 1)
    # rows from the far end, so that the upper side is the front
    grid = np.empty((rows, columns, 3))
    grid[..., 0], grid[..., 1], grid[..., 2] = x, heights[: rows * columns].reshape(rows, columns), z[:, None]
    uv = np.stack(np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, 1, rows)), axis=-1)
    surface = make_grid(grid[:, ::-1], uv[:, ::-1])
    index = np.arange(rows * columns).reshape(rows, columns)[:, ::-1].ravel()
    vertices = index[surface.corners]
    quads = np.arange((rows - 1) * (columns - 1)).reshape(rows - 1, columns - 1)[:, ::-1].ravel().repeat(6)
    surface = Surface(surface.points, surface.counts, surface.corners, surface.attributes)
    return add_attributes(surface, node, Corners(vertices, quads))


def read_extrusion(node: Node) -> Surface | None:
    """Return an extrusion: its side, and its caps. Raises UnreadableFile."""
    section = read_floats(node, "crossSection", 2)
    section = section if len(section) else _SECTION
    spine = read_floats(node, "spine", 3)
    spine = spine if len(spine) else np.array([[0.0, 0, 0], [0, 1, 0]])
    if len(spine) < 2 or len(section) < 2:
        return None
    scale = _spread(read_floats(node, "scale", 2), np.ones((1, 2)), len(spine))
    orientation = _spread(read_floats(node, "orientation", 4), np.array([[0.0, 0, 1, 0]]), len(spine))
    flat = section[None] * scale[:, None]
    local = np.stack([flat[..., 0], np.zeros(flat.shape[:2]), flat[..., 1]], axis=-1)
    turns = _frames(spine) @ rotations(orientation)
    rings = np.einsum("nij,nmj->nmi", turns, local) + spine[:, None]
    if not np.isfinite(rings).all():
        raise UnreadableFile("an Extrusion has numbers that are not finite, or too large; export the model again")
    is_ring = bool(np.allclose(rings[0], rings[-1], rtol=0, atol=max(1e-9 * float(np.abs(rings).max()), 1e-30)))
    if is_ring:
        rings[-1] = rings[0]
    is_closed = bool((section[0] == section[-1]).all())
    v = _lengths(spine)
    uv = np.stack(np.broadcast_arrays(_lengths(section)[None], v[:, None]), axis=-1)
    surfaces = [make_grid(rings, uv)]
    ends = [read_flag(node, "beginCap", True) and not is_ring, read_flag(node, "endCap", True) and not is_ring]
    span = max(float(np.ptp(section, axis=0).max()), 1e-30)
    cap_uv = (section - section.min(axis=0)) / span
    for ring, is_shown, step in zip((rings[0], rings[-1]), ends, (-1, 1), strict=True):
        count = len(section) - is_closed
        if is_shown and count > 2:
            corners = np.arange(count)[::step]
            surfaces.append(Surface(ring[:count], np.array([count]), corners, {"uv": (cap_uv[:count], corners)}))
    return join(surfaces, is_solid=is_closed and (is_ring or all(ends)))


def _spread(values: Float64, default: Float64, count: int) -> Float64:
    """Return a value for each point of the spine; the last one holds for those that lack one."""
    values = values if len(values) else default
    return values[np.minimum(np.arange(count), len(values) - 1)]


def _lengths(points: Float64) -> Float64:
    """Return the share of the length of a polyline at each point."""
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    share: Float64 = lengths / max(float(lengths[-1]), 1e-30)
    return share


def _frames(spine: Float64) -> Float64:
    """Return (n, 3, 3) axes of the planes of the cross sections, as columns (ISO/IEC 19775-1, 13.3.5.4)."""
    is_closed = bool((spine[0] == spine[-1]).all()) and len(spine) > 2
    steps = np.diff(spine, axis=0)
    if is_closed:
        before, after = np.concatenate([steps[-1:], steps]), np.concatenate([steps, steps[:1]])
        y, z = before + after, np.cross(after, -before)
    else:
        y = np.concatenate([steps[:1], steps[:-1] + steps[1:], steps[-1:]])
        z = np.zeros_like(spine)
        z[1:-1] = np.cross(steps[1:], -steps[:-1])
        before, after = np.concatenate([steps[:1], steps]), np.concatenate([steps, steps[-1:]])
    size = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    is_bent = np.linalg.norm(z, axis=1) > _PARALLEL_RATIO * size
    y = _fill(unit_vectors(y), np.linalg.norm(y, axis=1) > 0)
    if not is_bent.any():
        return np.broadcast_to(_turn_up_to(y[0]), (len(spine), 3, 3))
    z = _fill(unit_vectors(z), is_bent)
    flips = np.where(np.einsum("ij,ij->i", z[1:], z[:-1]) < 0, -1.0, 1.0)
    z *= np.cumprod(np.concatenate([[1.0], flips]))[:, None]
    x = unit_vectors(np.cross(y, z))
    return np.stack([x, y, np.cross(x, y)], axis=-1)


def _fill(vectors: Float64, is_known: NDArray[np.bool_]) -> Float64:
    """Return vectors with the one before in place of unknown ones; at the start, the first known one."""
    known = np.flatnonzero(is_known)
    if len(known) == 0:
        return vectors
    last = np.searchsorted(known, np.arange(len(vectors)), side="right") - 1
    return vectors[known[np.maximum(last, 0)]]


def _turn_up_to(direction: Float64) -> Float64:
    """Return the rotation from the Y axis to a direction."""
    up = np.array([0.0, 1, 0])
    axis = np.cross(up, direction)
    if not np.linalg.norm(axis) > 0:
        axis = np.array([1.0, 0, 0])
    angle = np.arctan2(np.linalg.norm(np.cross(up, direction)), direction[1])
    turn: Float64 = rotations(np.array([[*axis, angle]]))[0]
    return turn
