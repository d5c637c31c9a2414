"""Poses of a model on the bed: the sides on which it stands, its center of mass, and the turn onto a side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import extremes, face_extremes, face_normals, unit_vectors
from meshhub.toolkit.supports import cross_columns
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


MIN_TILT_DEG = 6.0
"""Tilt in degrees up to which a model must fall back onto its side; on a side with less, it rolls: a facet of a ball of
32 segments has 5.6."""

_FLATNESS_RATIO = 1e-4
"""Distance from the plane of a side, per longest side of the model, within which a face lies in it."""

_EQUAL_RATIO = 1e-6
"""Share of an area by which rounding makes equal sides differ."""

_GAP_RATIO = 0.1
"""Height above the bed, per height of the model, from which a side is open: the foot of a cup may have a recess."""

_MAX_OPEN_RATIO = 0.5
"""Share of what is above a side that a closed side may leave in the air."""

_COLUMNS_COUNT = 96
"""Columns along the model that measure whether a side is open."""


class Sides(NamedTuple):
    """Flat sides of a convex hull, the largest first, at most MAX_SIDES.

    normals: (k, 3) outward unit vectors
    areas:   (k,) mm² of the hull; the model may touch less of it
    stable:  (k,) whether the model does not tip over on the side
    tilts:   (k,) degrees by which the model may be tilted on a stable side and falls back
    """

    normals: Float64
    areas: Float64
    stable: NDArray[np.bool_]
    tilts: Float64


class Side(NamedTuple):
    """The side on which a model lies.

    normal:      (3,) outward unit vector
    contact_mm2: area of the faces that touch the bed
    is_steady:   whether the model does not roll
    """

    normal: Float64
    contact_mm2: float
    is_steady: bool


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
    rise = height.max(axis=0) - normals @ center
    foot = center + rise[:, None] * normals
    depth = foot @ outward.T + distance
    outside = depth.max(axis=1)
    stable = outside <= np.maximum(_TOLERANCE, outside.min())
    # the distance from the foot to each border of the side, in its plane
    sine = np.sqrt(np.maximum(1 - (normals @ outward.T) ** 2, 0))
    border = np.where(sine > _MAX_FACET_TURN_RAD, -depth / np.maximum(sine, _MAX_FACET_TURN_RAD), np.inf).min(axis=1)
    tilts = np.rad2deg(np.arctan2(np.maximum(border, 0), np.maximum(rise, _TOLERANCE)))
    return Sides(normals, total[largest], stable, tilts)


def choose_side(vertices: Float64, faces: Int32, center: Float64) -> Side | None:
    """Choose the side on which a model lies: the closed one with the largest area of faces that touch the bed.

    An open side, such as the rim of a tray or the legs of a table, is chosen only if the model rolls on all others. Of
    equal sides, the one that needs the smallest turn wins.

    Args:
        vertices: (n, 3) mm.
        faces: (m, 3) of any orientation.
        center: (3,) center of mass.
    Returns:
        The side; None if the model has no volume.
    """
    is_used = np.zeros(len(vertices), np.bool_)
    is_used[faces] = True
    vertices, faces = vertices[is_used], (np.cumsum(is_used, dtype=np.int32) - 1)[faces]
    sides = find_sides(vertices, center)
    if sides is None:
        return None
    size = float(np.ptp(vertices, axis=0).max())
    doubled = face_normals(vertices, faces)
    surface = _Surface(vertices, faces, unit_vectors(doubled), np.linalg.norm(doubled, axis=1) / 2, size)
    is_steady = sides.stable & (sides.tilts >= MIN_TILT_DEG)
    contacts: dict[int, float] = {}
    best = _choose(sides, is_steady, surface, contacts, may_be_open=False)
    if best is None:
        best = _choose(sides, is_steady if is_steady.any() else sides.stable, surface, contacts, may_be_open=True)
    return None if best is None else Side(sides.normals[best], contacts[best], bool(is_steady[best]))


class _Surface(NamedTuple):
    """What touches the bed.

    vertices: (n, 3) mm
    faces:    (m, 3)
    normals:  (m, 3) unit vectors
    areas:    (m,) mm²
    size:     mm, longest side of the bounding box
    """

    vertices: Float64
    faces: Int32
    normals: Float64
    areas: Float64
    size: float

    def contact(self, normal: Float64) -> float:
        """Return the area of the faces in the outermost plane with a normal; the orientation may be inverted."""
        own = np.flatnonzero(np.abs(self.normals @ normal) > np.cos(_MAX_FACET_TURN_RAD))
        height = self.vertices @ normal
        lowest, _ = face_extremes(height, self.faces[own])
        return float(self.areas[own[lowest >= height.max() - _FLATNESS_RATIO * self.size]].sum())

    def is_open(self, normal: Float64) -> bool:
        """Return whether most of what is above a side hangs in the air, seen from inside the outline of the side."""
        points = self.vertices @ rotation_to_bed(normal).T
        low, high = extremes(points)
        try:
            outline = ConvexHull(points[points[:, 2] <= low[2] + _FLATNESS_RATIO * self.size][:, :2])
        except (QhullError, ValueError):
            return True
        cell = float((high - low)[:2].max()) / _COLUMNS_COUNT
        key, _, z = cross_columns(points, self.faces, low, cell)
        order = np.lexsort((z, key))
        column, lowest = np.unique(key[order], return_index=True)
        gap = z[order][lowest] - low[2]
        centers = low[:2] + (np.stack([column & ((1 << 20) - 1), column >> 20], axis=1) + 0.5) * cell
        inside = (centers @ outline.equations[:, :2].T + outline.equations[:, 2]).max(axis=1) <= 0
        return bool((gap[inside] > _GAP_RATIO * (high - low)[2]).mean() > _MAX_OPEN_RATIO) if inside.any() else False


def _choose(
    sides: Sides, candidates: NDArray[np.bool_], surface: _Surface, contacts: dict[int, float], *, may_be_open: bool
) -> int | None:
    """Return the candidate with the largest contact, which is added to `contacts`; None without one.

    The hull of a side bounds its contact, so the smaller sides need not be measured.
    """
    best: int | None = None
    for side in np.flatnonzero(candidates).tolist():
        least = -1.0 if best is None else contacts[best] * (1 - _EQUAL_RATIO)
        if sides.areas[side] < least:
            break
        normal = sides.normals[side]
        if side not in contacts:
            contacts[side] = min(surface.contact(normal), float(sides.areas[side]))
        is_equal = best is not None and contacts[side] <= contacts[best] * (1 + _EQUAL_RATIO)
        if contacts[side] < least or (is_equal and normal[2] >= sides.normals[best, 2]):
            continue
        if may_be_open or not surface.is_open(normal):
            best = side
    return best


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
