"""Points of the mesh along edges, and the surfaces on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.facets.outline import Outline
from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.surfaces.arrays import lengths
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray
from meshhub.builtin_plugins.step.surfaces.surfaces import distances
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

Mask = NDArray[np.bool_]


class Sides(NamedTuple):
    """(n,) surfaces on the left and on the right of edges."""

    left: SurfaceArray
    right: SurfaceArray

    def distances(self, points: Float64, path: IntIndex | None = None) -> Float64:
        """Return the larger distance (mm) of each point (k, 3) from both surfaces of its path (k,)."""
        left, right = self if path is None else (self.left.take(path), self.right.take(path))
        return np.maximum(np.abs(distances(left, points)), np.abs(distances(right, points)))


@dataclass(frozen=True, eq=False)
class Paths:
    """Points along edges; a closed edge repeats its first point.

    begin: (n + 1,) index in `point` at which each path begins
    path:  (p,) the path of each point
    point: (p, 3) mm
    """

    begin: IntIndex
    path: IntIndex
    point: Float64

    @property
    def count(self) -> int:
        """Number of paths."""
        return len(self.begin) - 1

    def select(self, selected: Mask) -> Paths:
        """Return the paths of an (n,) mask; the others are empty."""
        is_kept = selected[self.path]
        path = self.path[is_kept]
        return Paths(np.searchsorted(path, np.arange(self.count + 1)), path, self.point[is_kept])

    def segments(self) -> tuple[IntIndex, Float64, Float64]:
        """Return the straight segments of all paths: their path (s,), begin and end (s, 3)."""
        at = np.flatnonzero(self.path[1:] == self.path[:-1])
        return self.path[at], self.point[at], self.point[at + 1]


def collect_paths(skin: Skin, outline: Outline, chain: IntIndex) -> Paths:
    """Return the points of the mesh along chains."""
    size = outline.chain_begin[chain + 1] - outline.chain_begin[chain] + 1
    begin = np.concatenate([[0], np.cumsum(size)])
    path = np.repeat(np.arange(len(chain)), size)
    place = np.arange(len(path)) - begin[path]
    last = place == size[path] - 1
    half = outline.half[outline.chain_begin[chain][path] + place - last]
    return Paths(begin, path, skin.points[np.where(last, skin.end[half], skin.begin[half])])


def drop_near_points(paths: Paths, limit: Float64) -> Paths:
    """Return the paths without inner points closer to the next than `limit`: their direction is rounding noise."""
    path, start, stop = paths.segments()
    short = np.zeros(len(paths.path) + 1, np.bool_)
    short[1:-1][paths.path[1:] == paths.path[:-1]] = lengths(stop - start) <= limit[path]
    first, last = paths.begin[:-1], paths.begin[1:] - 1
    dropped = short[:-1]
    dropped[last - 1] |= short[last]
    dropped[first] = dropped[last] = False
    size = np.bincount(paths.path[~dropped], minlength=paths.count)
    return Paths(np.concatenate([[0], np.cumsum(size)]), paths.path[~dropped], paths.point[~dropped])


def merge_paths(one: Paths, other: Paths) -> Paths:
    """Return the paths of both; each is empty in one of them."""
    owner, point = np.concatenate([one.path, other.path]), np.concatenate([one.point, other.point])
    order = np.argsort(owner, kind="stable")
    return Paths(np.searchsorted(owner[order], np.arange(one.count + 1)), owner[order], point[order])
