"""Find the walls that an offset removes, and the gaps that it closes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.distances import SurfaceDistance
from meshhub.toolkit.geometry import face_normals, unit_vectors
from meshhub.toolkit.rays import RayTree
from meshhub.toolkit.thickness import group_nearby, sample_evenly
from meshhub.toolkit.topology import shells

LOST_RATIO = 1.85
"""Distance of the new surface, per offset, from which a place is lost; it is 1.73 in the corner of a box."""

OPPOSITE_COSINE = -0.85
"""Cosine between the normals of both sides of a wall or gap; sharp edges and grooves of over 32° have neither."""

MIN_AREA_RATIO = 1.0
"""Area of a place, per square of the offset, that is worth a note."""

_START_RATIO = 1e-3
"""Distance of the start of a ray from the surface, per offset."""


class Change(NamedTuple):
    """Place that an offset removes or closes.

    place: (3,) middle of the place
    width: distance of both sides, in millimeters
    joins: whether the sides belong to different shells
    """

    place: Float64
    width: float
    joins: bool


def find_changes(before: tuple[Float64, Int32], after: tuple[Float64, Int32], distance: float) -> Iterator[Change]:
    """Yield walls that are gone where a surface shrank, and gaps that are closed where it grew, large ones first.

    Args:
        before: Vertices and faces of the closed surface.
        after: The surface at the distance, not empty.
        distance: Millimeters, positive to grow.
    """
    points, faces = before
    size = abs(distance)
    samples = sample_evenly(points, faces, size)
    spacing = max(samples.spacing, size / 2)
    rows = np.flatnonzero(SurfaceDistance(*after, spacing).measure(samples.points) > LOST_RATIO * size)
    if len(rows) == 0:
        return
    direction = np.sign(distance) * samples.normals[rows]
    starts = samples.points[rows] + _START_RATIO * size * direction
    widths = RayTree(points[faces]).measure(starts, direction, np.full(len(rows), 2 * size), enters=distance > 0)
    is_hit = np.isfinite(widths)
    rows, widths, direction, starts = rows[is_hit], widths[is_hit], direction[is_hit], starts[is_hit]
    if len(rows) == 0:
        return
    ends = starts + widths[:, None] * direction
    opposite = SurfaceDistance(points, faces, spacing).nearest(ends)[1]
    normals = unit_vectors(face_normals(points, faces))
    faced = np.einsum("ij,ij->i", normals[opposite], samples.normals[rows]) < OPPOSITE_COSINE
    rows, widths, ends, opposite = rows[faced], widths[faced], ends[faced], opposite[faced]
    if len(rows) == 0:
        return
    shell = shells(faces)[1]
    joins = shell[opposite] != shell[samples.faces[rows]]
    middles = (samples.points[rows] + ends) / 2
    count, group = group_nearby(middles, 2 * spacing)
    areas = np.bincount(group, samples.areas[rows], count)
    for number in np.argsort(-areas):
        if areas[number] < MIN_AREA_RATIO * size**2:
            break
        own = np.flatnonzero(group == number)
        # the middle of a ring is beside it, so the nearest place is named
        nearest = own[np.linalg.norm(middles[own] - middles[own].mean(axis=0), axis=1).argmin()]
        yield Change(middles[nearest], float(np.median(widths[own])) + _START_RATIO * size, bool(joins[own].any()))
