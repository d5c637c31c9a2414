"""Triangles from the drawing modes of glTF."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

TRIANGLES, STRIP, FAN = 4, 5, 6

Indices = NDArray[Any]


def decode_triangles(mode: int, indices: Indices, restart: int | None) -> Indices:
    """Return the triangles of a sequence of indices.

    Every second triangle of a strip is reversed, so that all have the same orientation. The triangles without area
    that join strips are left out.

    Args:
        mode: TRIANGLES, STRIP or FAN.
        indices: (n,) vertex indices.
        restart: Index that restarts a strip or fan: the largest of its type. None if the primitive has no indices.
    Returns:
        (m, 3) vertex indices.
    Source:
        glTF 2.0 §3.7.2.1.
    """
    if mode == TRIANGLES:
        return indices[: len(indices) // 3 * 3].reshape(-1, 3)
    count = len(indices) - 2
    if count <= 0:
        return indices[:0].reshape(0, 3)
    first, second, third = indices[:-2], indices[1:-1], indices[2:]
    position = np.arange(count)
    start = np.zeros(count, np.intp)
    keep = np.ones(count, np.bool_)
    if restart is not None:
        is_restart = indices == restart
        start = np.maximum.accumulate(np.where(is_restart, np.arange(1, len(indices) + 1), 0))[:count]
        keep = ~(is_restart[:-2] | is_restart[1:-1] | is_restart[2:])
    if mode == FAN:
        triangles = np.stack([second, third, indices[np.minimum(start, count + 1)]], axis=1)
    else:
        is_odd = (position - start) % 2 == 1
        triangles = np.stack([first, np.where(is_odd, third, second), np.where(is_odd, second, third)], axis=1)
    a, b, c = triangles.T
    keep &= (a != b) & (b != c) & (a != c)
    return triangles if keep.all() else triangles[keep]
