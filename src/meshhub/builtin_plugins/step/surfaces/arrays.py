"""Array helpers of STEP recognition and writing: vectors, sums by label, distinct integers and pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

TINY = 1e-300
"""Least divisor, so that degenerate triangles, edges and systems do not divide by zero."""


def lengths(vectors: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """Return the (n,) lengths of (n, 3) vectors."""
    result: NDArray[Any] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return result


def normalize(vectors: Float64) -> Float64:
    """Scale (n, 3) vectors to length one; a zero vector stays zero."""
    size = lengths(vectors)[:, None]
    result: Float64 = vectors / np.where(size > 0, size, 1)
    return result


def sum_by_label(labels: NDArray[np.integer[Any]], weights: NDArray[Any], count: int) -> Float64:
    """Sum the weights of each label.

    Args:
        labels: (n,) labels 0…count-1.
        weights: (n,) numbers or booleans.
        count: Number of labels.
    Returns:
        (count,) sums.
    """
    return np.asarray(np.bincount(labels, weights, count), np.float64)


def sort_unique(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct integers in ascending order.

    `np.unique` hashes before it sorts, and takes six times as long.
    """
    numbers = np.sort(numbers)
    is_first = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:])
    result: NDArray[Any] = numbers[is_first]
    return result


def distinct_pairs(
    first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], limit: int
) -> tuple[IntIndex, IntIndex]:
    """Return the distinct pairs of two columns, in ascending order.

    Args:
        first: (n,) integers, zero or greater.
        second: (n,) integers from zero to below `limit`.
        limit: Upper bound of `second`.
    Returns:
        Both columns of the distinct pairs.
    """
    bits = limit.bit_length()
    key: NDArray[np.integer[Any]] = (first.astype(np.int64) << bits) | second
    if (int(first.max(initial=0)) + 1) << bits < 2**31:
        key = key.astype(np.int32)
    key = sort_unique(key)
    return (key >> bits).astype(np.intp), (key & ((1 << bits) - 1)).astype(np.intp)


def expand_ranges(begin: IntIndex, size: IntIndex) -> tuple[IntIndex, IntIndex]:
    """List the members of (n,) ranges `begin`…`begin + size - 1`.

    Returns:
        For each member the index of its range, and the member.
    """
    owner = np.repeat(np.arange(len(size)), size)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
    return owner, begin[owner] + place


def select_separate(rows: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return the mask (n,) of rows (n, k) that have no number in common with the rows before them."""
    _, first = np.unique(rows, return_index=True)
    is_first = np.zeros(rows.size, np.bool_)
    is_first[first] = True
    result: NDArray[np.bool_] = np.logical_and.reduce(is_first.reshape(rows.shape), axis=1)
    return result


def perpendicular(axis: Float64) -> Float64:
    """Return (s, 3) unit vectors perpendicular to (s, 3) axes; equal for an axis and its opposite."""
    helper = np.eye(3)[np.argmin(np.abs(axis), axis=1)]
    return normalize(helper - axis * np.einsum("ij,ij->i", helper, axis)[:, None])
