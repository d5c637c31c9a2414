"""Reduction as far as the measured distance to the original surface stays within a limit."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.optimize.mesh_reduction import MeshReduction, ReducedSurface
from meshhub.builtin_plugins.optimize.scene_queue import SceneQueue
from meshhub.model.deadline import seconds_left
from meshhub.model.progress import track
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.distances import SurfaceDistance, sample_surface
from meshhub.toolkit.geometry import IntIndex, distinct, weld

ERROR_RATIOS = (0.5, 1.0, 3.0, 8.0)
"""Errors to which the queue reduces, in this order, as multiples of the limit; errors of a smooth surface add up."""

ATTEMPTS = 10
"""Attempts for each error; every second one fixes a larger region around the points that moved too far, the last but
one all of their bodies."""

SAFETY_RATIO = 0.92
"""Share of the limit that measured distances may reach; distances between the samples are somewhat larger."""

MIN_TIME_RATIO = 4.0
"""Time left until the deadline, per time of the longest attempt, from which there is another one; the rest of the
conversion also needs some."""

MAX_SPACING = 0.5
"""Maximum distance of samples, where the diagonal of the mesh is 100."""

MAX_SPLITS = 16
"""Maximum number of times that a side is split to find its farthest point."""

ROUNDING = 1e-9
"""Distance within which coordinates are equal, where the diagonal of the mesh is 100."""


class Bounded(NamedTuple):
    """Result of a reduction with a limit.

    surfaces: reduced surface of each mesh; None if it stays unchanged
    error_mm: largest measured distance, in millimeters
    is_limited: whether the limit stopped the reduction before the goal
    is_out_of_time: whether the deadline did
    """

    surfaces: list[ReducedSurface | None]
    error_mm: float
    is_limited: bool
    is_out_of_time: bool


class _Samples(NamedTuple):
    """Points on the faces of a surface: its vertices, and points inside of large faces.

    points: (q, 3)
    faces: (q,) a face of each
    corners: (m, 3) the points that are the corners of each face
    """

    points: Float64
    faces: IntIndex
    corners: IntIndex

    @classmethod
    def take(cls, points: Float64, faces: Int32, spacing: float) -> _Samples:
        """Take the used points in their order, then points inside of large faces, about one spacing apart."""
        used, first, corners = np.unique(faces, return_index=True, return_inverse=True)
        inside, face_inside = sample_surface(points[faces], spacing)
        return cls(
            np.concatenate([points[used], inside]),
            np.concatenate([first // 3, face_inside]),
            corners.reshape(-1, 3),
        )


class _Measure:
    """Distance between one mesh before and after the reduction, both ways, in millimeters.

    It measures again only what changed since the last time: samples whose nearest face is gone, and new faces.
    """

    def __init__(self, reduction: MeshReduction) -> None:
        self.reduction = reduction
        points, faces = reduction.welded.points, reduction.welded.faces
        lengths = np.linalg.norm(points[faces] - points[np.roll(faces, 1, axis=1)], axis=2)
        self._spacing = min(float(lengths.mean()) / 2, MAX_SPACING)
        self._original = SurfaceDistance(points, faces, self._spacing)
        self._samples = _Samples.take(points, faces, self._spacing)
        # at first, the reduced surface is the original one
        self._points, self._faces = points, faces
        self._there = _Distances(np.zeros(len(self._samples.points)), self._samples.faces.copy())
        self._back = np.zeros(len(faces))

    def find_far(self, points: Float64, faces: Int32, limit_mm: float) -> tuple[float, Float64]:
        """Return the largest distance in millimeters, and points (k, 3) that are farther than the limit."""
        limit = limit_mm / self.reduction.scale
        number, before = _match(self._points, self._faces, points, faces)
        there = _Distances(self._there.values, np.where(self._there.faces < 0, -1, number[self._there.faces]))
        is_new = (there.faces < 0) | (there.values > limit)
        reduced = SurfaceDistance(points, faces, self._spacing)
        found = _measure(reduced, self._samples.points[is_new], limit)
        there.values[is_new], there.faces[is_new] = found
        far = [self._samples.points[is_new][found.values > limit]]

        back = np.where(before < 0, np.inf, self._back[before])
        changed = np.flatnonzero(back > limit)
        samples = _Samples.take(points, faces[changed], self._spacing)
        values, near = _measure(self._original, samples.points, limit)
        far.append(samples.points[values > limit])
        back[changed] = 0
        np.maximum.at(back, changed[samples.faces], values)

        gone = np.flatnonzero(_match(self.reduction.welded.points, self.reduction.welded.faces, points, faces)[0] < 0)
        on_sides, far_there = _measure_sides(self._samples, gone, there.faces, reduced, limit)
        sides, far_back = _measure_sides(samples, np.arange(len(changed)), near, self._original, limit)
        np.maximum.at(back, changed, sides)
        far += [far_there, far_back]

        self._points, self._faces, self._there, self._back = points, faces, there, back
        largest = max(float(part.max(initial=0)) for part in (there.values, back, on_sides))
        return largest * self.reduction.scale, np.concatenate(far)


class _Distances(NamedTuple):
    """Upper bounds (q,) of distances from a surface, and the faces (q,) that are as near; -1 if none is known."""

    values: Float64
    faces: IntIndex


def _match(points: Float64, faces: Int32, others: Float64, other_faces: Int32) -> tuple[IntIndex, IntIndex]:
    """Return the face of another surface that is the same triangle for each face (m,), and conversely (k,); or -1."""
    corner = distinct(np.rint(np.concatenate([points, others]) / ROUNDING))[1]
    triangles = np.sort(corner[np.concatenate([faces, other_faces + np.int32(len(points))])], axis=1)
    count, label = len(faces), distinct(triangles)[1]
    place = np.full((2, len(label)), -1)
    place[0, label[:count]] = np.arange(count)
    place[1, label[count:]] = np.arange(len(other_faces))
    return place[1, label[:count]], place[0, label[count:]]


def _measure(surface: SurfaceDistance, points: Float64, limit: float) -> _Distances:
    """Return the distances of points (q, 3) from a surface; those within the limit are upper bounds."""
    distance, near = surface.measure_faces(points, 1)
    far = np.flatnonzero(distance > limit)
    distance[far], nearer = surface.find_nearer(points[far], distance[far])
    near[far] = np.where(nearer < 0, near[far], nearer)
    return _Distances(distance, near)


class _Intervals(NamedTuple):
    """Parts of sides of faces, whose ends are within the limit of faces of another surface.

    side: (k,) number of the side
    start, end: (k, 3)
    start_face, end_face: (k,) a face within the limit of the start, and of the end
    """

    side: IntIndex
    start: Float64
    end: Float64
    start_face: IntIndex
    end_face: IntIndex

    def choose_uncertain(self, surface: SurfaceDistance, limit: float) -> _Intervals:
        """Return those that may have a point beyond the limit.

        The distance from one face is convex along an interval: if both ends are within the limit of it, all points are.
        No point is farther than the mean of the distances of the ends and of the length.
        """
        start_first, end_first = (surface.measure_from(self.start_face, point) for point in (self.start, self.end))
        start_last, end_last = (surface.measure_from(self.end_face, point) for point in (self.start, self.end))
        largest = (start_first + end_last + np.linalg.norm(self.end - self.start, axis=1)) / 2
        is_uncertain = (end_first > limit) & (start_last > limit) & (largest > limit)
        # an end beyond the limit is known, and its side is not searched for others
        is_uncertain &= (start_first <= limit) & (end_last <= limit)
        return _Intervals(*(values[is_uncertain] for values in self))

    def split(self, middle: Float64, face: IntIndex) -> _Intervals:
        """Return both parts of each, where `middle` (k, 3) is within the limit of `face` (k,)."""
        first = self._replace(end=middle, end_face=face)
        return _Intervals(
            *(np.concatenate(pair) for pair in zip(first, self._replace(start=middle, start_face=face), strict=True))
        )


def _measure_sides(
    samples: _Samples, rows: IntIndex, near: IntIndex, surface: SurfaceDistance, limit: float
) -> tuple[Float64, Float64]:
    """Measure the distance of the sides of faces from another surface, and find points beyond the limit.

    Args:
        samples: Points of the surface.
        rows: (m,) faces whose sides are measured.
        near: (q,) a face of the other surface near each sample.
        surface: The other surface.
        limit: Distance that is searched for.
    Returns:
        Largest measured distance on the sides of each face (m,), and points (k, 3) beyond the limit.
    """
    corners = samples.corners[rows]
    pairs = np.sort(np.stack([corners, np.roll(corners, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    kept, side = weld(pairs)
    first, last = pairs[kept].T
    values, far = np.zeros(len(kept)), [np.empty((0, 3))]
    rest = _Intervals(np.arange(len(kept)), samples.points[first], samples.points[last], near[first], near[last])
    for _ in range(MAX_SPLITS):
        rest = rest.choose_uncertain(surface, limit)
        if len(rest.side) == 0:
            break
        middle = (rest.start + rest.end) / 2
        from_first, from_last = (surface.measure_from(face, middle) for face in (rest.start_face, rest.end_face))
        value = np.minimum(from_first, from_last)
        face = np.where(from_first < from_last, rest.start_face, rest.end_face)
        is_far = value > limit
        value[is_far], face[is_far] = _measure(surface, middle[is_far], limit)
        np.maximum.at(values, rest.side, value)
        far.append(middle[value > limit])
        rest = rest.split(middle, face)
    return values[side].reshape(-1, 3).max(axis=1, initial=0), np.concatenate(far)


def reduce_within(scene: SceneQueue, goal: int, limit_mm: float) -> Bounded:
    """Reduce meshes as far as every measured distance stays within the limit.

    Each step reduces a copy of the queue. Where a distance exceeds the limit, the points nearby are fixed, and the step
    is repeated. Shortly before the deadline, the last step that stayed within the limit is the result.

    Args:
        scene: Queue of the meshes before the reduction.
        goal: Number of faces at which to stop, in all instances.
        limit_mm: Largest distance in millimeters.
    """
    reductions, queue = scene.reductions, scene.edges
    limit_mm *= SAFETY_RATIO
    measures = [_Measure(reduction) if len(reduction.welded.faces) else None for reduction in reductions]
    results: list[ReducedSurface | None] = [None] * len(reductions)
    errors = np.zeros(len(reductions))
    is_reached = is_out_of_time = False
    longest = 0.0
    for ratio in track(ERROR_RATIOS):
        if is_reached or is_out_of_time:
            break
        current = scene.split(queue)
        for attempt in range(ATTEMPTS):
            left, started = seconds_left(), time.monotonic()
            if left is not None and left < MIN_TIME_RATIO * longest:
                is_out_of_time, is_reached = True, False
                break
            trial = queue.copy()
            is_reached = trial.reduce_gently(goal, ratio * limit_mm)
            finished: dict[int, tuple[ReducedSurface, float]] = {}
            fixed: list[IntIndex] = []
            start = 0
            for place, (points, faces) in enumerate(scene.split(trial)):
                measure, before = measures[place], current[place]
                if measure is not None and len(faces) < len(before[1]):
                    reduced = reductions[place].finish(scene.surfaces[place], points, faces)
                    error, far = measure.find_far(*reductions[place].normalize(reduced), limit_mm)
                    if len(far):
                        fixed.append(start + _find_points(*before, far, attempt))
                    finished[place] = reduced, error
                start += len(points)
            longest = max(longest, time.monotonic() - started)
            if not fixed:
                queue = trial
                for place, (reduced, error) in finished.items():
                    results[place], errors[place] = reduced, error
                break
            is_reached = False
            queue.fix(np.concatenate(fixed), whole_bodies=attempt == ATTEMPTS - 2)
    return Bounded(results, float(errors.max(initial=0)), not (is_reached or is_out_of_time), is_out_of_time)


def _find_points(points: Float64, faces: Int32, far: Float64, attempt: int) -> IntIndex:
    """Return the points of a surface near far ones, and a ring around them more for every second attempt."""
    near = np.zeros(len(points), np.bool_)
    near[faces[SurfaceDistance(points, faces, MAX_SPACING).nearest(far)[1]]] = True
    for _ in range(attempt // 2):
        near[faces[near[faces].any(axis=1)]] = True
    return np.flatnonzero(near)
