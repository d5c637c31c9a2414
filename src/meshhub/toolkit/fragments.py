"""Stray fragments: tiny shells beside the body, which repair removes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import extremes
from meshhub.toolkit.topology import Index

MAX_CLOSED_FRAGMENT_FACES = 4
"""Faces; a larger closed shell is a deliberate body, however small."""

MAX_FRAGMENT_DIAGONAL_RATIO = 0.01
"""Diagonal of a fragment per diagonal of its part; larger shells may be deliberate."""

MAX_FRAGMENT_VOLUME_RATIO = 0.0001
"""Volume of a fragment per volume of its part; larger shells may be deliberate."""


def find_small_shells(
    points: Float64, faces: Index, label: Index, is_open: NDArray[np.bool_], measure: Callable[[], Float64]
) -> NDArray[np.bool_]:
    """Find the stray fragments among the shells of one mesh.

    A fragment is open or has at most four faces. Its diagonal is under 1 % and its volume at most 0.01 % of its part.

    Args:
        points: (n, 3) positions, any length unit.
        faces: (m, 3) indices into `points`.
        label: (m,) shell of each face.
        is_open: (s,) mask of shells with a border.
        measure: Returns the (s,) signed volumes of the shells; called only if a shell may be a fragment.
    Returns:
        (s,) mask of shells; never all of them.
    """
    count = len(is_open)
    is_fragment = np.zeros(count, np.bool_)
    if count < 2:
        return is_fragment
    candidate = is_open | (np.bincount(label, minlength=count) <= MAX_CLOSED_FRAGMENT_FACES)
    if not candidate.any():
        return is_fragment
    face = np.flatnonzero(candidate[label])
    order = face[np.argsort(label[face], kind="stable")]
    begin = np.concatenate([[0], np.cumsum(np.bincount(label[face], minlength=count)[candidate])[:-1]])
    a, b, c = points[faces[order].T]
    low, high = np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)
    size = np.maximum.reduceat(high, begin) - np.minimum.reduceat(low, begin)
    is_used = np.zeros(len(points), np.bool_)
    is_used[faces] = True
    lowest, highest = extremes(points[is_used])
    diagonal = float(np.linalg.norm(highest - lowest))
    volume = np.abs(measure())
    is_fragment[candidate] = (np.linalg.norm(size, axis=1) < MAX_FRAGMENT_DIAGONAL_RATIO * diagonal) & (
        volume[candidate] <= MAX_FRAGMENT_VOLUME_RATIO * volume.sum()
    )
    return np.zeros(count, np.bool_) if is_fragment.all() else is_fragment
