"""Which shells lie inside which: asked only of shells whose boxes do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.surface import Surface
from meshhub.containment import TURN, inside
from meshhub.scene import Float64

OUTER_SHELLS = 2000
"""At most so many shells are taken for containers, the largest; bounds the work on a cloud of shells."""

MOST_TESTS = 300_000_000
"""And so many points are held against faces; what is not asked by then counts as not nested."""

_WITNESSES = 12


def depths(surface: Surface, whole: NDArray[np.bool_], volume: Float64) -> NDArray[np.int64]:
    """How many closed shells contain each shell.

    whole, volume: (shells,) which are closed, and how large they are. A shell is inside another of larger
    volume when its box is, and a dozen of its points are, by the parity of the faces that a ray meets.
    """
    count, label = surface.shells, surface.shell
    depth = np.zeros(count, np.int64)
    if count < 2:
        return depth
    order = np.argsort(label, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=count))])
    corner = (surface.points @ TURN)[surface.faces[order]]
    face_low = np.minimum(np.minimum(corner[:, 0], corner[:, 1]), corner[:, 2])
    face_high = np.maximum(np.maximum(corner[:, 0], corner[:, 1]), corner[:, 2])
    low, high = np.minimum.reduceat(face_low, begin[:-1]), np.maximum.reduceat(face_high, begin[:-1])
    by_x = np.argsort(low[:, 0], kind="stable")
    sorted_x = low[by_x, 0]
    containers = np.flatnonzero(whole & (volume > 0))
    containers = containers[np.argsort(-volume[containers], kind="stable")][:OUTER_SHELLS]
    tests = 0
    for outer in containers:
        near = by_x[np.searchsorted(sorted_x, low[outer, 0], "right") : np.searchsorted(sorted_x, high[outer, 0])]
        for axis in range(3):
            near = near[(low[near, axis] > low[outer, axis]) & (high[near, axis] < high[outer, axis])]
        near = near[volume[near] < volume[outer]]
        faces = slice(begin[outer], begin[outer + 1])
        tests += len(near) * (faces.stop - faces.start)
        if tests > MOST_TESTS:
            break
        for witness in range(_WITNESSES):
            if len(near) == 0:
                break
            last = begin[near + 1] - begin[near] - 1
            asked = corner[begin[near] + last * witness // (_WITNESSES - 1), 0]
            near = near[inside(corner[faces], face_low[faces], face_high[faces], asked)]
        depth[near] += 1
    return depth
