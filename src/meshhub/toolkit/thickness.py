"""Thickness of walls and width of gaps: rays through the center of the largest ball that fits at a point."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.distances import closest_points
from meshhub.toolkit.geometry import IntIndex, face_normals, unit_vectors
from meshhub.toolkit.rays import RayTree
from meshhub.toolkit.topology import components

MIN_SAMPLES, MAX_SAMPLES = 20_000, 200_000
"""Points at which the surface is measured; 200,000 take some seconds."""

SPACING_RATIO = 0.4
"""Distance between neighboring points, per limit, unless that needs more than MAX_SAMPLES points."""

SMALL_FACE_COUNT = 8
"""Points on a face below which the face is small, because so few points miss the other side of a wall."""

MAX_SMALL_SAMPLES = 100_000
"""Points on small faces."""

MAX_SMALL_RATIO = 0.25
"""Area that a point on a small face stands for, per area of the other points, from which more points would find little
more."""

DETAIL_RATIO = 3.0
"""Size of a detail, per distance between points, from which its sides get as many points as the smallest large face."""

MAX_TURN_DEG = 45.0
"""Degrees by which the sides of a wall may be inclined to each other: a sharper wedge is a wall, a blunter one an edge.
"""

MIN_CHORD_COSINE = np.cos(np.deg2rad(MAX_TURN_DEG / 2 + 7.5))
"""Minimum cosine of the angle between the normal and the line through both contacts of a ball. Between two planes, this
angle is half of the turn; a point farther to the side belongs to something beside the wall."""

MIN_SHRINKING_COSINE = 0.3
"""The same while a ball shrinks. It is lower, because the ball is still larger than the wall, and points inside it may
be farther to the side."""

MAX_ROUNDS = 20
"""Rounds in which balls shrink; most need three."""

NEAREST = 4
"""Samples whose triangles are measured exactly for each ball."""

TOLERANCE = 1e-6
"""Relative change of a ball up to which the change is rounding."""

MAX_RAY_RATIO = 7.0
"""Length of a ray beyond the center of its ball, per radius; the sides of a wedge are at most this far apart."""

_BATCH = 50_000
"""Balls that are measured together; bounds the memory."""


class Samples(NamedTuple):
    """Points on a surface.

    points:  (k, 3)
    normals: (k, 3) outward unit vectors
    faces:   (k,) face of each point
    areas:   (k,) area that each point stands for: the same for all points, but less for some on small faces
    detail:  size of the smallest details that have points on each side; 0 where no face is small
    """

    points: Float64
    normals: Float64
    faces: IntIndex
    areas: Float64
    detail: float

    @property
    def spacing(self) -> float:
        """Approximate distance between neighboring points."""
        return float(np.sqrt(self.areas.max(initial=0.0)))


def sample_evenly(vertices: Float64, faces: Int32, limit: float) -> Samples:
    """Return points that are spread evenly over a surface, always the same for the same mesh.

    Small faces get more points where the rest has too few: a pin on a large block would have none.

    Args:
        vertices: (n, 3) positions.
        faces: (m, 3) oriented outward.
        limit: Length of the details to find, in the unit of the positions.
    """
    normals = face_normals(vertices, faces)
    areas = np.linalg.norm(normals, axis=1) / 2
    total = float(areas.sum())
    if total == 0:
        return Samples(np.empty((0, 3)), np.empty((0, 3)), np.empty(0, np.intp), np.empty(0), 0.0)
    ideal = (SPACING_RATIO * limit) ** 2
    each = np.full(len(faces), total / np.clip(total / ideal, MIN_SAMPLES, MAX_SAMPLES))
    is_small = areas < SMALL_FACE_COUNT * each
    least = max(ideal, float(areas[is_small].sum()) / MAX_SMALL_SAMPLES)
    if least < MAX_SMALL_RATIO * each[0]:
        each[is_small] = least
    ends = np.cumsum(areas / each)
    face = np.minimum(np.searchsorted(ends, np.arange(0.5, ends[-1])), len(faces) - 1)
    number = np.arange(len(face))
    # a sequence of low discrepancy (R2 of Roberts), folded into the triangle
    u, v = (number * 0.7548776662466927) % 1, (number * 0.5698402909980532) % 1
    folded = u + v > 1
    u, v = np.where(folded, 1 - u, u), np.where(folded, 1 - v, v)
    a, b, c = (vertices[faces[face, corner]] for corner in range(3))
    points = a + u[:, None] * (b - a) + v[:, None] * (c - a)
    detail = DETAIL_RATIO * float(np.sqrt(each[is_small].max(initial=0.0)))
    return Samples(points, unit_vectors(normals[face]), face, each[face], detail)


def group_nearby(points: Float64, distance: float) -> tuple[int, Int32]:
    """Group points (k, 3) that steps of about a distance connect; return the number of groups, and each group (k,)."""
    cells, label = np.unique(np.floor(points / distance).astype(np.int64), axis=0, return_inverse=True)
    pairs = cKDTree(cells).query_pairs(np.sqrt(3) + 0.1, output_type="ndarray")
    count, group = components(len(cells), pairs[:, 0], pairs[:, 1])
    return count, group[label.reshape(-1)].astype(np.int32)


class _Tree(NamedTuple):
    """Samples of one density.

    samples: (k,) numbers of the samples in the tree
    spacing: approximate distance between neighboring ones
    """

    tree: cKDTree
    samples: IntIndex
    spacing: float

    def find_near(self, points: Float64, reach: Float64 | float) -> tuple[IntIndex, IntIndex]:
        """Return pairs of points (q, 3) and their nearest samples; `reach` is the maximum distance of each or all."""
        bound = float(np.max(reach, initial=0.0))
        distance, near = self.tree.query(points, k=np.arange(1, NEAREST + 1), distance_upper_bound=bound)
        row, column = np.nonzero(distance < np.reshape(reach, (-1, 1)))
        return row, self.samples[near[row, column]]


class OppositeSides:
    """Finds the other side of walls, or of gaps, of one surface."""

    def __init__(self, vertices: Float64, faces: Int32, samples: Samples) -> None:
        """Prepare a tree of samples for each direction in which they can be the other side.

        Args:
            vertices: (n, 3) positions.
            faces: (m, 3) oriented outward.
            samples: Points on the surface.
        """
        self._corners = vertices[faces]
        self._samples = samples
        steps = np.array([-1.0, 0.0, 1.0])
        grid = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3)
        self._axes = unit_vectors(grid[np.abs(grid).sum(axis=1) > 0])
        self._trees: dict[int, list[_Tree]] = {}

    @cached_property
    def _rays(self) -> RayTree:
        return RayTree(self._corners)

    def measure(self, chosen: IntIndex, limit: float, *, gaps: bool = False) -> Float64:
        """Return the lengths (q,) of rays through the wall behind samples, or the gap in front of them.

        They are infinite where the largest ball that touches the point and the other side exceeds the limit.

        Args:
            chosen: (q,) indices of samples.
            limit: Largest ball to measure.
            gaps: Whether to measure gaps.
        """
        result = np.full(len(chosen), np.inf)
        points = self._samples.points[chosen]
        inward = self._samples.normals[chosen] * (1.0 if gaps else -1.0)
        bins = (inward @ self._axes.T).argmax(axis=1)
        for number in np.unique(bins):
            rows = np.flatnonzero(bins == number)
            trees = self._trees_of(int(number), gaps=gaps)
            for start in range(0, len(rows), _BATCH):
                part = rows[start : start + _BATCH]
                result[part] = self._measure(trees, points[part], inward[part], limit, gaps=gaps)
        return result

    def find_foils(self, distance: float) -> NDArray[np.bool_]:
        """Return the mask of samples on walls without thickness, whose other side is within a distance.

        Bodies that touch also have such places, but with material on both sides.
        """
        is_close = np.zeros(len(self._samples.points), np.bool_)
        inward = -self._samples.normals
        bins = (inward @ self._axes.T).argmax(axis=1)
        for number in np.unique(bins):
            rows = np.flatnonzero(bins == number)
            points = self._samples.points[rows]
            for tree in self._trees_of(int(number), gaps=False):
                row, sample = tree.find_near(points, 2 * tree.spacing)
                faces = self._samples.faces[sample]
                gap = np.linalg.norm(closest_points(points[row], self._corners[faces]) - points[row], axis=1)
                is_close[rows[row[gap <= distance]]] = True
        close = np.flatnonzero(is_close)
        aside = 2 * distance * self._samples.normals[close]
        sides = np.concatenate([self._samples.points[close] + aside, self._samples.points[close] - aside])
        is_empty = (self._rays.count_windings(sides) <= 0).reshape(2, -1).all(axis=0) if len(close) else is_close[close]
        is_close[close] = is_empty
        return is_close

    def _trees_of(self, number: int, *, gaps: bool) -> list[_Tree]:
        """Return samples that may be the other side: with normals along a direction for walls, against it for gaps.

        Samples on small faces have a separate tree, because they would hide the others.
        """
        key = 2 * number + gaps
        if key not in self._trees:
            cosine = self._samples.normals @ (self._axes[number] * (-1.0 if gaps else 1.0))
            is_other = cosine > np.cos(np.deg2rad(MAX_TURN_DEG))
            is_small = self._samples.areas < self._samples.areas.max(initial=0.0)
            self._trees[key] = [
                _Tree(cKDTree(self._samples.points[chosen]), chosen, float(np.sqrt(self._samples.areas[chosen[0]])))
                for chosen in (np.flatnonzero(is_other & ~is_small), np.flatnonzero(is_other & is_small))
                if len(chosen)
            ]
        return self._trees[key]

    def _measure(self, trees: list[_Tree], points: Float64, inward: Float64, limit: float, *, gaps: bool) -> Float64:
        """Shrink balls until no point of the other side is inside; then follow the rays through their centers."""
        radius = np.full(len(points), limit / 2)
        cosine = np.zeros(len(points))
        active = np.arange(len(points))
        for _ in range(MAX_ROUNDS):
            centers = points[active] + radius[active, None] * inward[active]
            smaller, cosines = self._shrink(trees, centers, points[active], inward[active], radius[active], gaps)
            shrinks = smaller < radius[active] * (1 - TOLERANCE)
            active = active[shrinks]
            if len(active) == 0:
                break
            radius[active], cosine[active] = smaller[shrinks], cosines[shrinks]
        found = np.flatnonzero(cosine > MIN_CHORD_COSINE)
        result = np.full(len(points), np.inf)
        if len(found) == 0:
            # most models are thick everywhere, and need no tree of their faces
            return result
        # a ray is as long as the ball at least, so one that begins in the ball misses what touches the point
        begin = radius[found]
        starts = points[found] + begin[:, None] * inward[found]
        length = begin + self._rays.measure(starts, inward[found], MAX_RAY_RATIO * begin, enters=gaps)
        result[found] = np.where(np.isfinite(length), length, 2 * begin)
        return result

    def _shrink(
        self,
        trees: list[_Tree],
        centers: Float64,
        points: Float64,
        inward: Float64,
        radius: Float64,
        gaps: bool,
    ) -> tuple[Float64, Float64]:
        """Return the radii of balls that touch the nearest other side, and the cosines of their chords."""
        result, cosine = radius.copy(), np.zeros(len(centers))
        if not trees:
            return result, cosine
        near = [tree.find_near(centers, radius + tree.spacing) for tree in trees]
        row, sample = (np.concatenate(columns) for columns in zip(*near, strict=True))
        if len(row) == 0:
            return result, cosine
        touching = closest_points(centers[row], self._corners[self._samples.faces[sample]])
        chord = touching - points[row]
        square = np.einsum("ij,ij->i", chord, chord)
        depth = np.einsum("ij,ij->i", chord, inward[row])
        normals = self._samples.normals[sample]
        facing = np.einsum("ij,ij->i", normals, inward[row]) * (-1.0 if gaps else 1.0)
        valid = (depth > MIN_SHRINKING_COSINE * np.sqrt(square)) & (facing > np.cos(np.deg2rad(MAX_TURN_DEG)))
        row, smaller = row[valid], square[valid] / (2 * depth[valid])
        cosines = depth[valid] / np.sqrt(square[valid])
        # the smallest of each ball is written last
        order = np.argsort(-smaller, kind="stable")
        order = order[smaller[order] < result[row[order]]]
        result[row[order]], cosine[row[order]] = smaller[order], cosines[order]
        return result, cosine
