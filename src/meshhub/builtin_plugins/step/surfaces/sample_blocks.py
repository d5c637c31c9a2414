"""Samples that surfaces are fitted to: points and facets by group, and blocks of groups with vectorized arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.surfaces.arrays import TINY, lengths, perpendicular
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray
from meshhub.model.scene import Float64

_MAX_SAMPLE_COUNT = 4000
"""Points, and facets, of a group that a fit uses; more do not change the surface."""

_MAX_SIZE_RATIO = 1.5
"""Largest over smallest group of a block; bounds the padding."""

_MIN_BLOCK_POINTS = 1 << 13
"""Points of a block up to which padding costs less than another block."""

_MAX_BLOCK_POINTS = 1 << 15
"""Points of a block; bounds the temporary columns to 256 KB each."""

_RIDGE_RATIO = 1e-13
"""Part of the trace that is added to a diagonal, so that singular systems have a solution."""

Groups = NDArray[np.intp]


class Samples(NamedTuple):
    """Points and facets by group; millimeters, in the frame of the mesh.

    groups:       number of groups
    group, point: (n,) and (n, 3) points, those of one group adjacent
    normal_group: (f,) group of each facet, ascending
    center:       (f, 3) centers of the facets
    normal:       (f, 3) unit normals of the facets
    weight:       (f,) areas of the facets
    """

    groups: int
    group: Groups
    point: Float64
    normal_group: Groups
    center: Float64
    normal: Float64
    weight: Float64


def select_groups(samples: Samples, groups: Groups) -> Samples:
    """Return the samples of some groups, renumbered in the order of `groups`."""
    number = np.full(samples.groups, -1, np.intp)
    number[groups] = np.arange(len(groups))
    points, facets = number[samples.group] >= 0, number[samples.normal_group] >= 0
    return Samples(
        len(groups), number[samples.group[points]], samples.point[points], number[samples.normal_group[facets]],
        samples.center[facets], samples.normal[facets], samples.weight[facets],
    )  # fmt: skip


def group_extents(samples: Samples) -> Float64:
    """Return the (g,) diagonal of the bounding box of each group in millimeters."""
    low, high = group_boxes(samples)
    return lengths(high - low)


def group_boxes(samples: Samples) -> tuple[Float64, Float64]:
    """Return the (g, 3) lowest and the (g, 3) highest corner of the bounding box of each group."""
    begin = group_starts(samples)
    return np.minimum.reduceat(samples.point, begin), np.maximum.reduceat(samples.point, begin)


def group_starts(samples: Samples) -> Groups:
    """Return the (g,) position of the first point of each group."""
    return np.searchsorted(samples.group, np.arange(samples.groups))


class Block(NamedTuple):
    """Groups of similar size in columns, so that one array operation handles all of them.

    Shorter columns are padded with their first sample. Each group is centered, and scaled to size one.

    point:  (3, p, g) x, y and z of points
    mask:   (p, g) 1.0, and 0.0 for padding
    center: (3, f, g) centers of facets
    normal: (3, f, g) unit normals of facets
    weight: (f, g) areas of facets, and 0.0 for padding
    """

    point: Float64
    mask: Float64
    center: Float64
    normal: Float64
    weight: Float64

    def take(self, groups: Groups) -> Block:
        """Return some of the groups."""
        return Block(*(column[..., groups] for column in self))


def iterate_blocks(samples: Samples, middle: Float64, size: Float64) -> Iterator[tuple[Groups, Block]]:
    """Iterate over the groups in blocks; of large groups, take every n-th point and facet.

    Args:
        samples: Points and facets.
        middle: (g, 3) becomes the origin of each group.
        size: (g,) becomes the length unit of each group.
    Yields:
        The groups of a block, ascending, and the block.
    """
    begin, facet_begin = group_starts(samples), np.searchsorted(samples.normal_group, np.arange(samples.groups))
    length = np.diff(begin, append=len(samples.group))
    facet_length = np.diff(facet_begin, append=len(samples.normal_group))
    stride, facet_stride = -(-length // _MAX_SAMPLE_COUNT), -(-facet_length // _MAX_SAMPLE_COUNT)
    order = np.argsort(length, kind="stable")
    rising = length[order]
    start = 0
    while start < len(order):
        count = _block_size(rising[start:])
        groups = np.sort(order[start : start + count])
        start += count
        index, is_point = _columns(begin[groups], length[groups], stride[groups])
        facet, is_facet = _columns(facet_begin[groups], facet_length[groups], facet_stride[groups])
        shift, scale = middle[groups].T[:, None, :], size[groups]
        yield (
            groups,
            Block(
                (samples.point.T[:, index] - shift) / scale,
                is_point.astype(np.float64),
                (samples.center.T[:, facet] - shift) / scale,
                samples.normal.T[:, facet],
                samples.weight[facet] * is_facet,
            ),
        )


def _block_size(length: Groups) -> int:
    """Return how many groups go into the next block; `length` is the ascending number of points of each group."""
    alike = int(np.searchsorted(length, _MAX_SIZE_RATIO * length[0], "right"))
    small = int(np.searchsorted(length * np.arange(1, len(length) + 1), _MIN_BLOCK_POINTS, "right"))
    count = max(alike, small)
    return max(1, min(count, _MAX_BLOCK_POINTS // int(min(length[count - 1], _MAX_SAMPLE_COUNT))))


def _columns(begin: Groups, length: Groups, stride: Groups) -> tuple[Groups, NDArray[np.bool_]]:
    """Return (n, g) positions of the members of groups, with a stride, and which of them are not padding."""
    count = -(-length // stride)
    place = np.arange(int(count.max()))[:, None]
    mask = place < count
    return begin + np.where(mask, place * stride, 0), mask


def axis_frames(surfaces: SurfaceArray) -> tuple[Float64, Float64, Float64]:
    """Return (3, g) unit vectors: two perpendicular to each axis and to each other, and the axis."""
    u = perpendicular(surfaces.axis)
    v = np.cross(surfaces.axis, u)
    return np.ascontiguousarray(u.T), np.ascontiguousarray(v.T), np.ascontiguousarray(surfaces.axis.T)


def dot_products(points: Float64, direction: Float64) -> Float64:
    """Return the (n, g) dot products of (3, n, g) points with the (3, g) direction of each group."""
    result: Float64 = points[0] * direction[0] + points[1] * direction[1] + points[2] * direction[2]
    return result


def hypotenuses(u: Float64, v: Float64) -> Float64:
    """Return the square roots of u² + v²; `np.hypot` takes several times as long."""
    result: Float64 = np.sqrt(u * u + v * v)
    return result


def axis_coordinates(points: Float64, surfaces: SurfaceArray) -> tuple[Float64, Float64]:
    """Return the (n, g) heights of (3, n, g) points along the axes of their groups, and the distances from the axes."""
    u, v, axis = axis_frames(surfaces)
    offset = points - surfaces.origin.T[:, None, :]
    return dot_products(offset, axis), hypotenuses(dot_products(offset, u), dot_products(offset, v))


def sum_products(columns: list[Float64]) -> Float64:
    """Sum the products of all pairs of k columns, for each group.

    Args:
        columns: k arrays (n, g).
    Returns:
        (k, k, g) symmetric matrices.
    """
    size = len(columns)
    result = np.empty((size, size, columns[0].shape[1]))
    for row in range(size):
        for column in range(row, size):
            result[row, column] = result[column, row] = np.einsum("ij,ij->j", columns[row], columns[column])
    return result


def solve_symmetric(matrix: Float64, right: Float64) -> Float64:
    """Solve small positive semidefinite systems, with a ridge for the singular ones.

    Eliminates in all systems at once; one LAPACK call for each system takes three times as long.

    Args:
        matrix: (k, k, g) symmetric matrices.
        right: (k, g) right-hand sides.
    Returns:
        (k, g) solutions.
    """
    size = len(matrix)
    trace = np.einsum("iij->j", matrix)
    ridge = np.where(trace > 0, _RIDGE_RATIO * trace, 1.0) + TINY
    matrix, right = matrix.copy(), right.copy()
    for row in range(size):
        matrix[row, row] = np.maximum(matrix[row, row] + ridge, ridge)
        for below in range(row + 1, size):
            share = matrix[row, below] / matrix[row, row]
            matrix[below, below:] -= share * matrix[row, below:]
            right[below] -= share * right[row]
    for row in range(size - 1, -1, -1):
        for column in range(row + 1, size):
            right[row] -= matrix[row, column] * right[column]
        right[row] /= matrix[row, row]
    return right
