"""Thin walls of solids: where they are, and the layers that make them thicker."""

from __future__ import annotations

import manifold3d
import numpy as np
from numpy.typing import NDArray

from meshhub.model.progress import portion, track
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.geometry import IntIndex, face_normals, unit_vectors
from meshhub.toolkit.topology import components, edges, fans, half_edges

RAYS_COUNT = 4_096
"""Rays after which the progress is reported; they take less than 0.1 s."""

MAX_ANGLE_DEG = 45.0
"""Degrees between the two sides of a wall; the sides of sharper wedges are walls, those of other edges are not."""

MIN_SINE_RATIO = 0.05
"""Least eigenvalue, relative to the largest, of the directions in which a vertex moves: creases of 25° and more."""

SIDE_COSINE = 0.8
"""Largest cosine of a layer and a neighboring face along whose plane its border moves."""

MAX_MOVE_RATIO = 3.0
"""Largest move of a vertex, per move of its faces; bounds the points at sharp edges."""

DEPTH_RATIO = 0.4
"""Depth to which a layer reaches into its wall, per thickness; less than half, so that two layers do not meet."""

MEASURED_RATIO = 1.5
"""Largest thickness measured, per thickness to reach: beside a thin place, a wall up to this gets thick slowly."""

MAX_STEP_RATIO = 0.15
"""Move of the faces at a border, per thickness to reach, up to which a layer ends without a step beside such a wall."""

MIN_MOVE_RATIO = 0.005
"""Least move of a face, per thickness to reach; less is a wall that is thick enough."""

ROUNDING_RATIO = 1e-12
"""Moves, per largest coordinate, that are rounding."""

FLATNESS_RATIO = 1e-7
"""Distance by which a layer may be simplified, per largest coordinate: that of vertices inside of flat places."""

MAX_STRIP_RATIO = 0.75
"""Width, per thickness to reach, up to which strips beside thin places count as thin: behind the edge of a box, a ray
runs along the other wall."""

FLAT_COSINE = 0.9
"""Minimum cosine between the normals of adjacent triangles without a sharp edge between them."""

START_RATIO = 1e-6
"""Depth below a triangle where its ray starts, per thickness to measure: the ray must not meet the triangle itself."""


def measure_walls(solid: manifold3d.Manifold, points: Float64, faces: Int32, limit: float) -> Float64:
    """Measure how thick the wall is behind each triangle.

    A loop of rays in manifold3d takes 5 to 19 µs for each triangle, half as long as numpy with a k-d tree of triangles.

    Args:
        solid: The body.
        points: (n, 3) positions, any length unit.
        faces: (m, 3) surface of the solid, divided into small triangles.
        limit: Largest thickness to measure.
    Returns:
        (m,) distance from the center of each triangle straight inward to the other side of the wall; infinite if that
        is farther than the limit, or not about parallel.
    """
    centers = points[faces].mean(axis=1)
    normals = unit_vectors(face_normals(points, faces))
    starts, stops = centers - START_RATIO * limit * normals, centers - limit * normals
    hits = []
    with portion(0.0, 0.5):
        for begin in track(range(0, len(starts), RAYS_COUNT)):
            own = slice(begin, begin + RAYS_COUNT)
            hits += [solid.ray_cast(*ends) for ends in zip(starts[own].tolist(), stops[own].tolist(), strict=True)]
    has_hit = np.array([bool(hit) for hit in hits])
    first = [hit[0] for hit in hits if hit]
    thickness = np.full(len(faces), np.inf)
    if first:
        other = np.array([hit.normal for hit in first])
        opposite = np.einsum("ij,ij->i", normals[has_hit], other) < -np.cos(np.deg2rad(MAX_ANGLE_DEG))
        distance = np.linalg.norm(np.array([hit.position for hit in first]) - centers[has_hit], axis=1)
        thickness[has_hit] = np.where(opposite, distance, np.inf)
    return thickness


def fill_strips(points: Float64, faces: Int32, thickness: Float64, target: float) -> Float64:
    """Return the thickness (m,) of walls, where narrow strips beside thin places have that of their neighbors."""
    doubled = face_normals(points, faces)
    normals = unit_vectors(doubled)
    half_a, half_b = edges(faces).pairs()
    first, second = half_a // 3, half_b // 3
    is_smooth = np.einsum("ij,ij->i", normals[first], normals[second]) > FLAT_COSINE
    is_thin = thickness < (1 - MIN_MOVE_RATIO) * target
    linked = is_smooth & (is_thin[first] == is_thin[second])
    count, label = components(len(faces), first[linked], second[linked])
    begin, end = half_edges(faces)
    length = np.linalg.norm(points[end[half_a]] - points[begin[half_a]], axis=1)
    is_border = ~linked
    border = np.bincount(label[first[is_border]], length[is_border], count)
    border += np.bincount(label[second[is_border]], length[is_border], count)
    area = np.bincount(label, np.linalg.norm(doubled, axis=1) / 2, count)
    # the neighbors of each region that are thin and beside it without an edge
    beside = is_smooth & (is_thin[first] != is_thin[second])
    thick = np.where(is_thin[first], second, first)[beside]
    thin = np.where(is_thin[first], first, second)[beside]
    weight = np.bincount(label[thick], length[beside], count)
    with np.errstate(all="ignore"):
        mean = np.bincount(label[thick], length[beside] * thickness[thin], count) / weight
        is_strip = (weight > 0) & (2 * area < MAX_STRIP_RATIO * target * border)
    return np.where(is_strip[label] & ~is_thin, mean[label], thickness)


def make_layers(points: Float64, faces: Int32, thickness: Float64, target: float) -> list[manifold3d.Manifold]:
    """Return the solids that make thin walls as thick as a target, from both sides.

    Args:
        points: (n, 3) positions.
        faces: (m, 3) closed and outward.
        thickness: (m,) result of `measure_walls`.
        target: Thickness to reach.
    Returns:
        A solid for each connected region of thin triangles, from inside the wall to its new surface.
    """
    move = (target - thickness) / 2
    is_thin = _separate_regions(faces, move > MIN_MOVE_RATIO * target)
    if not is_thin.any():
        return []
    patch = _Patch(points, faces, is_thin)
    outer = patch.move(move[is_thin])
    is_thick = np.zeros(len(points), np.bool_)
    is_thick[faces[~np.isfinite(thickness)]] = True
    is_held = patch.find_gradual_border(move[is_thin] > MAX_STEP_RATIO * target, is_thick)
    outer[is_held] = patch.vertices[is_held]
    return patch.close(outer, patch.move(-DEPTH_RATIO * thickness[is_thin]))


def _separate_regions(faces: Int32, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Drop chosen faces (m,) that meet others only at a point, because their layers would share an edge."""
    chosen = chosen.copy()
    while True:
        rows = np.flatnonzero(chosen)
        own = faces[rows]
        count, corner = fans(own, *edges(own).pairs())
        point = np.empty(count, np.intp)
        point[corner] = own.ravel()
        # the largest fan at each point stays
        order = np.lexsort((-np.bincount(corner, minlength=count), point))
        is_dropped = np.zeros(count, np.bool_)
        is_dropped[order[1:]] = point[order[1:]] == point[order[:-1]]
        if not is_dropped.any():
            return chosen
        chosen[rows[is_dropped[corner].reshape(-1, 3).any(axis=1)]] = False


class _Patch:
    """Regions of a closed surface, with a vertex for each fan of their triangles around a point.

    Regions that meet at a point or twice around it do not share a vertex, so that solids on them are manifold.
    """

    def __init__(self, points: Float64, faces: Int32, chosen: NDArray[np.bool_]) -> None:
        """Cut the chosen (m,) faces out of a surface."""
        own = faces[chosen]
        half_a, half_b = edges(own).pairs()
        self.is_border = np.ones(own.size, np.bool_)
        self.is_border[half_a] = self.is_border[half_b] = False
        count, corner = fans(own, half_a, half_b)
        self.faces = corner.reshape(-1, 3)
        point = np.empty(count, np.intp)
        point[corner] = own.ravel()
        self.point = point
        self.vertices = points[point]
        self.region = components(len(own), half_a // 3, half_b // 3)[1]
        self.vertex_face = np.empty(count, np.intp)
        self.vertex_face[corner] = np.repeat(np.arange(len(own)), 3)
        normals = unit_vectors(face_normals(points, faces))
        self.normals = np.repeat(normals[chosen], 3, axis=0)
        self.sides, self.side_normals = _find_sides(point, faces[~chosen], normals[~chosen])
        mean = unit_vectors(np.stack([np.bincount(corner, axis, count) for axis in self.normals.T], axis=1))
        # faces that go on straight do not hold the border
        is_side = np.abs(np.einsum("ij,ij->i", mean[self.sides], self.side_normals)) < SIDE_COSINE
        self.sides, self.side_normals = self.sides[is_side], self.side_normals[is_side]

    def move(self, distance: Float64) -> Float64:
        """Return the vertices, moved so that the planes of the faces move by distances (k,); those beside them stay."""
        place = np.concatenate([self.faces.ravel(), self.sides])
        normal = np.concatenate([self.normals, self.side_normals])
        moves = np.concatenate([np.repeat(distance, 3), np.zeros(len(self.sides))])
        matrix, right = np.zeros((len(self.vertices), 3, 3)), np.zeros((len(self.vertices), 3))
        largest = np.zeros(len(self.vertices))
        np.add.at(matrix, place, normal[:, :, None] * normal[:, None])
        np.add.at(right, place, normal * moves[:, None])
        np.maximum.at(largest, place, np.abs(moves))
        values, axes = np.linalg.eigh(matrix)
        # a direction to which all planes are about parallel does not count
        inverse = np.where(values > MIN_SINE_RATIO * values[:, -1:], 1 / np.maximum(values, 1e-12), 0)
        shift = np.einsum("nij,nj,nkj,nk->ni", axes, inverse, axes, right)
        length = np.linalg.norm(shift, axis=1)
        shift *= np.minimum(1, MAX_MOVE_RATIO * largest / np.maximum(length, 1e-12))[:, None]
        # borders of faces along the axes stay exactly in their planes
        shift[np.abs(shift) < ROUNDING_RATIO * np.abs(self.vertices).max()] = 0
        moved: Float64 = self.vertices + shift
        return moved

    def find_gradual_border(self, moves_far: NDArray[np.bool_], is_thick: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the (v,) border vertices where the wall gets thick slowly; a step there would follow the triangles.

        Args:
            moves_far: (k,) faces that move by more than a small step.
            is_thick: (n,) points of the surface beside places of unknown thickness.
        """
        begin, end = (side[self.is_border] for side in half_edges(self.faces))
        is_gradual = np.zeros(len(self.vertices), np.bool_)
        is_gradual[begin] = is_gradual[end] = True
        is_gradual[self.faces[moves_far]] = False
        is_gradual[self.sides] = False
        return is_gradual & ~is_thick[self.point]

    def close(self, outer: Float64, inner: Float64) -> list[manifold3d.Manifold]:
        """Return the solid between two copies of each region, with walls along its border, unless it has no volume."""
        begin, end = (side[self.is_border] for side in half_edges(self.faces))
        below = len(outer)
        rim = np.concatenate(
            [np.stack([end, begin, begin + below], axis=1), np.stack([end, begin + below, end + below], axis=1)]
        )
        vertices = np.concatenate([outer, inner])
        triangles = np.concatenate([self.faces, self.faces[:, ::-1] + below, rim])
        # both copies of a region without a border are one solid: the room between two closed surfaces
        region = self.region[self.vertex_face[triangles[:, 0] % below]]
        order = np.argsort(region, kind="stable")
        layers = []
        for chosen in np.split(order, np.flatnonzero(np.diff(region[order])) + 1):
            used, corners = np.unique(triangles[chosen], return_inverse=True)
            layer = manifold3d.Manifold(manifold3d.Mesh64(vertices[used], corners.reshape(-1, 3).astype(np.uint64)))
            if layer.status() == manifold3d.Error.NoError and layer.volume() > 0:
                layers.append(layer.simplify(FLATNESS_RATIO * float(np.abs(vertices).max())))
        return layers


def _find_sides(point: IntIndex, faces: Int32, normals: Float64) -> tuple[IntIndex, Float64]:
    """Return the vertices, at points (v,), that faces (k, 3) touch, and the normal of the face for each."""
    order = np.argsort(point, kind="stable")
    corner = faces.ravel()
    first, last = (np.searchsorted(point[order], corner, side=side) for side in ("left", "right"))
    counts = last - first
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    vertex = order[np.repeat(first, counts) + number]
    return vertex, np.repeat(np.repeat(normals, 3, axis=0), counts, axis=0)
