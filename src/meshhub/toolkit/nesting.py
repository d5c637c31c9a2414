"""Nesting of shells: the number of closed shells around each one, and the cavities that follow from it."""

# why this way: docs/decisions/0012-sheets-and-cavities.md
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.containment import group_by_shell

MAX_CONTAINER_COUNT = 2000
"""Largest shells that are tested as containers; bounds the work on a cloud of shells."""

MAX_TEST_COUNT = 300_000_000
"""Point-face pairs tested; shells that remain then count as not nested. Bounds the time."""

WITNESS_COUNT = 12
"""Points of a shell that must all be inside the container; shells that intersect are not nested."""


def measure_depths(
    points: Float64, faces: Int32, shell: Int32, is_closed: NDArray[np.bool_], volume: Float64
) -> NDArray[np.int64]:
    """Count the closed shells that contain each shell.

    A shell is inside another one of larger volume if its bounding box is and several of its points are.

    Args:
        points: (n, 3) positions, any length unit.
        faces: (m, 3) indices into `points`.
        shell: (m,) shell of each face, 0…s-1; each shell has at least one face.
        is_closed: (s,) whether each shell is closed.
        volume: (s,) absolute volume of each shell.
    Returns:
        (s,) depth; 0 for an outer shell.
    """
    count = len(volume)
    depth = np.zeros(count, np.int64)
    if count < 2:
        return depth
    shells = group_by_shell(points, faces, shell, count)
    begin, low, high = shells.begin, shells.low, shells.high
    by_x = np.argsort(low[:, 0], kind="stable")
    sorted_x = low[by_x, 0]
    containers = np.flatnonzero(is_closed & (volume > 0))
    containers = containers[np.argsort(-volume[containers], kind="stable")][:MAX_CONTAINER_COUNT]
    tests = 0
    for outer in containers.tolist():
        near = by_x[np.searchsorted(sorted_x, low[outer, 0], "right") : np.searchsorted(sorted_x, high[outer, 0])]
        for axis in range(3):
            near = near[(low[near, axis] > low[outer, axis]) & (high[near, axis] < high[outer, axis])]
        near = near[volume[near] < volume[outer]]
        tests += len(near) * (begin[outer + 1] - begin[outer])
        if tests > MAX_TEST_COUNT:
            break
        for witness in range(WITNESS_COUNT):
            if len(near) == 0:
                break
            last = begin[near + 1] - begin[near] - 1
            points = shells.corner[begin[near] + last * witness // (WITNESS_COUNT - 1), 0]
            near = near[shells.contains(outer, points)]
        depth[near] += 1
    return depth


def find_cavities(
    points: Float64, faces: Int32, shell: Int32, is_closed: NDArray[np.bool_], volume: Float64
) -> NDArray[np.bool_]:
    """Find the cavities regardless of orientations: shells in bodies; shells in cavities are bodies again.

    Args:
        As of `measure_depths`.
    Returns:
        (s,) mask; all False if the cavities would outweigh the bodies, because shells that intersect are not nested.
    """
    is_cavity: NDArray[np.bool_] = measure_depths(points, faces, shell, is_closed, volume) % 2 == 1
    return is_cavity & bool(volume[is_cavity].sum() < volume[~is_cavity].sum())
