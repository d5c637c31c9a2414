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
from meshhub.toolkit.geometry import IntIndex, distinct

ERROR_RATIOS = (0.5, 1.0, 3.0, 8.0)
"""Errors to which the queue reduces, in this order, as multiples of the limit; errors of a smooth surface add up."""

ATTEMPTS = 7
"""Attempts for each error; each fixes a larger region around the points that moved too far, the last but one all of
their bodies."""

SAFETY_RATIO = 0.95
"""Share of the limit that measured distances may reach; distances between the samples are somewhat larger."""

MIN_TIME_RATIO = 4.0
"""Time left until the deadline, per time of the longest attempt, from which there is another one; the rest of the
conversion also needs some."""

MAX_SPACING = 0.5
"""Maximum distance of samples, where the diagonal of the mesh is 100."""

EDGE_SHARES = (0.25, 0.5)
"""Places of samples on the edges of a face, as shares of their length; neighboring faces add those from the other end.
"""

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
    """Points (q, 3) on the faces of a surface, and the face (q,) of each."""

    points: Float64
    faces: IntIndex

    @classmethod
    def take(cls, points: Float64, faces: Int32, spacing: float) -> _Samples:
        """Take the corners of faces (m, 3), and points on their edges and inside; a corner belongs to one face."""
        corners, rows = points[faces], np.arange(len(faces))
        used, first = np.unique(faces, return_index=True)
        on_edges = [(1 - share) * corners + share * np.roll(corners, -1, axis=1) for share in EDGE_SHARES]
        inside, face_inside = sample_surface(corners, spacing)
        return cls(
            np.concatenate([points[used], *(part.reshape(-1, 3) for part in on_edges), inside]),
            np.concatenate([first // 3, *(np.repeat(rows, 3) for _ in on_edges), face_inside]),
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
        """Return the largest distance in millimeters, and samples (k, 3) that are farther than the limit."""
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
        values, _ = _measure(self._original, samples.points, limit)
        far.append(samples.points[values > limit])
        back[changed] = 0
        np.maximum.at(back, changed[samples.faces], values)

        self._points, self._faces, self._there, self._back = points, faces, there, back
        largest = max(float(there.values.max(initial=0)), float(back.max(initial=0)))
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
    """Return the points of a surface near samples, and more rings of points around them for each attempt."""
    near = np.zeros(len(points), np.bool_)
    near[faces[SurfaceDistance(points, faces, MAX_SPACING).nearest(far)[1]]] = True
    for _ in range(2**attempt - 1):
        near[faces[near[faces].any(axis=1)]] = True
    return np.flatnonzero(near)
