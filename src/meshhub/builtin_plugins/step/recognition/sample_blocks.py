"""What surfaces are fitted to: points and facets by group, and groups in columns with the arithmetic on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.recognition.skin import lengths
from meshhub.builtin_plugins.step.recognition.surfaces import SurfaceArray, perpendicular
from meshhub.model.scene import Float64

_ENOUGH = 4000
"""Points, and facets, of a group; more tell no more."""

_ALIKE = 1.5
_SMALL_BLOCK = 1 << 13
_BLOCK = 1 << 15
_RIDGE = 1e-13

Groups = NDArray[np.intp]


class Samples(NamedTuple):
    """What surfaces are fitted to, by group.

    groups:       how many groups
    group, point: (n,) and (n, 3) points, those of one group side by side
    normal_group: (f,) the group of each facet
    centre:       (f, 3) facet centres
    normal:       (f, 3) facet normals
    weight:       (f,) facet areas
    """

    groups: int
    group: Groups
    point: Float64
    normal_group: Groups
    centre: Float64
    normal: Float64
    weight: Float64


def chosen(samples: Samples, groups: Groups) -> Samples:
    """The samples of some groups, renumbered."""
    number = np.full(samples.groups, -1, np.intp)
    number[groups] = np.arange(len(groups))
    points, facets = number[samples.group] >= 0, number[samples.normal_group] >= 0
    made = _selected(samples, points, facets)
    return made._replace(groups=len(groups), group=number[made.group], normal_group=number[made.normal_group])


def extents(samples: Samples) -> Float64:
    """(g,) how far the points of each group reach: the diagonals of their boxes."""
    low, high = boxes(samples)
    return lengths(high - low)


def boxes(samples: Samples) -> tuple[Float64, Float64]:
    """The lower and the upper corners of the boxes around the points of each group."""
    begin = begins(samples)
    return np.minimum.reduceat(samples.point, begin), np.maximum.reduceat(samples.point, begin)


def begins(samples: Samples) -> Groups:
    """Return the index of the first point of each group."""
    return np.searchsorted(samples.group, np.arange(samples.groups))


def _selected(samples: Samples, points: NDArray[np.bool_], facets: NDArray[np.bool_]) -> Samples:
    return Samples(
        samples.groups, samples.group[points], samples.point[points], samples.normal_group[facets],
        samples.centre[facets], samples.normal[facets], samples.weight[facets],
    )  # fmt: skip


class Block(NamedTuple):
    """Groups of much the same size in columns: one array operation does something for all of them.

    Shorter columns are filled up with what they begin with.

    point:   (3, p, g) x, y and z of points
    there:   (p, g) 1, and 0 for what fills up
    centre:  (3, f, g) of facets
    normal:  (3, f, g)
    weight:  (f, g) facet areas, and 0 for what fills up
    """

    point: Float64
    there: Float64
    centre: Float64
    normal: Float64
    weight: Float64

    def take(self, groups: Groups) -> Block:
        """Some of the groups."""
        return Block(*(column[..., groups] for column in self))


def blocks(samples: Samples, middle: Float64, size: Float64) -> Iterator[tuple[Groups, Block]]:
    """The groups in blocks, each moved from its middle and scaled to its size; of large ones, some of their points."""
    begin, facet_begin = begins(samples), np.searchsorted(samples.normal_group, np.arange(samples.groups))
    length = np.diff(begin, append=len(samples.group))
    facet_length = np.diff(facet_begin, append=len(samples.normal_group))
    stride, facet_stride = -(-length // _ENOUGH), -(-facet_length // _ENOUGH)
    order = np.argsort(length, kind="stable")
    rising = length[order]
    start = 0
    while start < len(order):
        alike = int(np.searchsorted(rising, _ALIKE * rising[start], "right")) - start
        small = int(np.searchsorted(rising[start:] * np.arange(1, len(order) - start + 1), _SMALL_BLOCK, "right"))
        count = max(alike, small)
        count = max(1, min(count, _BLOCK // int(min(rising[start + count - 1], _ENOUGH))))
        groups = np.sort(order[start : start + count])
        start += count
        index, there = _columns(begin[groups], length[groups], stride[groups])
        facet, known = _columns(facet_begin[groups], facet_length[groups], facet_stride[groups])
        shift, scale = middle[groups].T[:, None, :], size[groups]
        yield (
            groups,
            Block(
                (samples.point.T[:, index] - shift) / scale,
                there.astype(np.float64),
                (samples.centre.T[:, facet] - shift) / scale,
                samples.normal.T[:, facet],
                samples.weight[facet] * known,
            ),
        )


def _columns(begin: Groups, length: Groups, stride: Groups) -> tuple[Groups, NDArray[np.bool_]]:
    """(n, g) where the members of groups are, with a stride, and whether there are so many."""
    many = -(-length // stride)
    place = np.arange(int(many.max()))[:, None]
    there = place < many
    return begin + np.where(there, place * stride, 0), there


def frame(made: SurfaceArray) -> tuple[Float64, Float64, Float64]:
    """(3, g) two directions across each axis, and the axis."""
    u = perpendicular(made.axis)
    v = np.cross(made.axis, u)
    return np.ascontiguousarray(u.T), np.ascontiguousarray(v.T), np.ascontiguousarray(made.axis.T)


def along(points: Float64, direction: Float64) -> Float64:
    """(n, g) the scalar products of (3, n, g) points and the (3, g) directions of their groups."""
    made: Float64 = points[0] * direction[0] + points[1] * direction[1] + points[2] * direction[2]
    return made


def across(u: Float64, v: Float64) -> Float64:
    """Distances from the axis; `np.hypot` takes several times as long."""
    made: Float64 = np.sqrt(u * u + v * v)
    return made


def about(points: Float64, made: SurfaceArray) -> tuple[Float64, Float64]:
    """(n, g) the heights of (3, n, g) points along the axes of their groups, and the distances from them."""
    u, v, axis = frame(made)
    offset = points - made.origin.T[:, None, :]
    return along(offset, axis), across(along(offset, u), along(offset, v))


def products(columns: list[Float64]) -> Float64:
    """(k, k, g): for each group the sum of the products of all pairs of (n, g) columns."""
    size = len(columns)
    made = np.empty((size, size, columns[0].shape[1]))
    for row in range(size):
        for column in range(row, size):
            made[row, column] = made[column, row] = np.einsum("ij,ij->j", columns[row], columns[column])
    return made


def solved(matrix: Float64, right: Float64) -> Float64:
    """(k, g) solutions of small symmetric systems, (k, k, g) and (k, g), with a ridge that singular ones survive.

    Elimination for all systems at once: one call of LAPACK for each takes three times as long.
    """
    size = len(matrix)
    trace = np.einsum("iij->j", matrix)
    least = np.where(trace > 0, _RIDGE * trace, 1.0) + 1e-300
    matrix, right = matrix.copy(), right.copy()
    for row in range(size):
        matrix[row, row] = np.maximum(matrix[row, row] + least, least)
        for below in range(row + 1, size):
            share = matrix[row, below] / matrix[row, row]
            matrix[below, below:] -= share * matrix[row, below:]
            right[below] -= share * right[row]
    for row in range(size - 1, -1, -1):
        for column in range(row + 1, size):
            right[row] -= matrix[row, column] * right[column]
        right[row] /= matrix[row, row]
    return right
