"""Triangles from the drawing modes of glTF."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

TRIANGLES, STRIP, FAN = 4, 5, 6

Indices = NDArray[Any]


def triangles(mode: int, indices: Indices, restart: int | None) -> Indices:
    """The triangles (m, 3) of a row of indices (glTF 2.0 §3.7.2.1).

    mode:    TRIANGLES, STRIP or FAN
    restart: the index that begins a strip or fan anew, the largest of its type; None where there is none

    Odd triangles of a strip are turned, so that all of them look to the same side. The triangles without area by
    which strips are sewn together are left out.
    """
    if mode == TRIANGLES:
        return indices[: len(indices) // 3 * 3].reshape(-1, 3)
    count = len(indices) - 2
    if count <= 0:
        return indices[:0].reshape(0, 3)
    first, second, third = indices[:-2], indices[1:-1], indices[2:]
    position = np.arange(count)
    began = np.zeros(count, np.intp)
    kept = np.ones(count, np.bool_)
    if restart is not None:
        ends = indices == restart
        began = np.maximum.accumulate(np.where(ends, np.arange(1, len(indices) + 1), 0))[:count]
        kept = ~(ends[:-2] | ends[1:-1] | ends[2:])
    if mode == FAN:
        made = np.stack([second, third, indices[np.minimum(began, count + 1)]], axis=1)
    else:
        odd = (position - began) % 2 == 1
        made = np.stack([first, np.where(odd, third, second), np.where(odd, second, third)], axis=1)
    kept &= (made[:, 0] != made[:, 1]) & (made[:, 1] != made[:, 2]) & (made[:, 0] != made[:, 2])
    return made if kept.all() else made[kept]
