"""Poses of a model on the bed: the sides on which it stands, its center of mass, and the turn onto a side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import extremes, face_normals, unit_vectors
from meshhub.toolkit.topology import components, is_closed

_MAX_FACET_TURN_RAD = 1e-3
"""Radians between neighboring triangles of one flat side: above the rounding of float32 files, far below the turn
between the facets of a fine sphere."""

MAX_SIDES = 200
"""Maximum number of sides to try; a body with more is round, and its other sides are not better than the largest."""

_TOLERANCE = 1e-7
"""Distance, for a hull of size 1, by which rounding may move the projected center of mass off the hull."""


def rotation_to_bed(normal: Float64) -> Float64:
    """Return the smallest (3, 3) rotation that turns a unit vector down, to -Z."""
    axis = np.array([-normal[1], normal[0], 0.0])
    cosine, sine = float(-normal[2]), float(np.hypot(normal[0], normal[1]))
    if sine < 1e-12:
        return np.eye(3) if cosine > 0 else np.diag([1.0, -1.0, -1.0])
    x, y, z = axis / sine
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    # Rodrigues' formula
    rotation: Float64 = np.eye(3) + sine * cross + (1 - cosine) * cross @ cross
    return rotation


class Sides(NamedTuple):
    """Flat sides of a convex hull, the largest first, at most MAX_SIDES.

    normals: (k, 3) outward unit vectors
    areas:   (k,) mm²
    stable:  (k,) whether the model does not tip over on the side
    hull_area: mm² of all sides
    """

    normals: Float64
    areas: Float64
    stable: NDArray[np.bool_]
    hull_area: float

    @property
    def best(self) -> int:
        """Position of the largest stable side; of equal ones, that which needs the smallest turn to the bed."""
        # sides that differ only by rounding count as equal
        equal = np.flatnonzero(self.stable & (self.areas >= self.areas[self.stable].max() * (1 - 1e-6)))
        return int(equal[np.argmin(self.normals[equal, 2])])


def find_sides(points: Float64, center: Float64) -> Sides | None:
    """Find the flat sides of the convex hull of points (n, 3) with a center of mass; None if they have no volume."""
    low, high = extremes(points)
    size = float((high - low).max())
    try:
        hull = ConvexHull((points - low) / size)
    except (QhullError, ValueError):
        return None
    outward, distance = hull.equations[:, :3], hull.equations[:, 3]
    areas = np.linalg.norm(face_normals(points, hull.simplices.astype(np.int32)), axis=1) / 2
    # neighbors that hardly turn are one side
    face, other = np.repeat(np.arange(len(outward)), 3), hull.neighbors.reshape(-1)
    is_flat = np.einsum("ij,ij->i", outward[face], outward[other]) > np.cos(_MAX_FACET_TURN_RAD)
    count, side = components(len(outward), face[is_flat], other[is_flat])
    total: Float64 = np.bincount(side, areas, count).astype(np.float64)
    normals = unit_vectors(np.stack([np.bincount(side, outward[:, axis] * areas, count) for axis in range(3)], axis=1))
    largest = np.argsort(-total, kind="stable")[:MAX_SIDES]
    normals = normals[largest]
    # a model stands on a side if its center of mass projects onto the hull, and so into the side
    center = (center - low) / size
    height = (points - low)[hull.vertices] / size @ normals.T
    foot = center + (height.max(axis=0) - normals @ center)[:, None] * normals
    outside = (foot @ outward.T + distance).max(axis=1)
    stable = outside <= np.maximum(_TOLERANCE, outside.min())
    return Sides(normals, total[largest], stable, float(total.sum()))


def center_of_mass(vertices: Float64, faces: Int32) -> Float64:
    """Return the center of the volume; for an open surface, whose volume is uncertain, that of the area."""
    corners = vertices[faces] - vertices[faces[0, 0]]
    volumes = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    weights = volumes if is_closed(vertices, faces) else np.linalg.norm(face_normals(vertices, faces), axis=1)
    # a tetrahedron from the first corner, or a triangle
    share = 4 if weights is volumes else 3
    if abs(weights.sum()) <= 1e-12 * np.abs(weights).sum():
        weights, share = np.ones(len(faces)), 3
    center: Float64 = vertices[faces[0, 0]] + weights @ corners.sum(axis=1) / (share * weights.sum())
    return center
