"""Triangulation of polygons: exact cover, each side used once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.polygons import triangulate, triangulate_corners

pytestmark = pytest.mark.once


def lift(flat: Float64, tilt: float = 0.0) -> Float64:
    """Return flat points as a polygon in space, tilted about X."""
    flat = np.asarray(flat, float)
    return np.stack([flat[:, 0], flat[:, 1] * np.cos(tilt), flat[:, 1] * np.sin(tilt)], axis=1)


def signed_areas(vertices: Float64, faces: Int32) -> Float64:
    """Return the areas of triangles, positive along the normal of the polygon."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    crossed = np.cross(b - a, c - a) / 2
    total = crossed.sum(axis=0)
    length = np.linalg.norm(total)
    return crossed @ (total / length if length else total)


def triangulate_one(points: Float64) -> tuple[Float64, Int32]:
    faces, _ = triangulate(points, np.array([len(points)]), np.arange(len(points)))
    return points, faces


def find_open_edges(faces: Int32) -> set[tuple[int, int]]:
    """Return the directed edges without an opposite one."""
    edges = [(int(f[k]), int(f[(k + 1) % 3])) for f in faces for k in range(3)]
    assert len(edges) == len(set(edges))
    return {(a, b) for a, b in edges if (b, a) not in edges}


def assert_exact(points: Float64) -> None:
    vertices, faces = triangulate_one(points)
    n = len(points)
    areas = signed_areas(vertices, faces)
    assert len(faces) == n - 2
    assert (areas >= -1e-12 * areas.sum()).all()
    assert find_open_edges(faces) == {(k, (k + 1) % n) for k in range(n)}


def build_star(size: int, seed: int) -> Float64:
    """Return a simple star-shaped polygon with random radii, usually concave."""
    rng = np.random.default_rng(seed)
    angle = np.linspace(0, 2 * np.pi, size, endpoint=False)
    radius = 0.2 + rng.random(size)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


L_SHAPE = np.array([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]], float)


@pytest.mark.parametrize("turn", range(6))
@pytest.mark.parametrize("tilt", [0.0, 1.0, 2.0, 3.1])
def test_an_l_shape_is_covered_exactly_from_any_first_corner(turn: int, tilt: float) -> None:
    assert_exact(lift(np.roll(L_SHAPE, turn, axis=0), tilt))


@pytest.mark.parametrize("turn", range(4))
def test_a_concave_quad_is_cut_at_its_reflex_corner(turn: int) -> None:
    arrow = np.roll(np.array([[0, 0], [2, -2], [1, 0], [2, 2]], float), turn, axis=0)
    points, faces = triangulate_one(lift(arrow))
    assert (signed_areas(points, faces) > 0.5).all()


def test_a_convex_quad_keeps_the_usual_diagonal() -> None:
    _, faces = triangulate_one(lift(np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)))
    assert faces.tolist() == [[0, 1, 2], [0, 2, 3]]


@settings(max_examples=60)
@given(st.integers(5, 40), st.integers(0, 2**32 - 1), st.floats(0, 6.2))
def test_star_shapes_are_covered_exactly(size: int, seed: int, tilt: float) -> None:
    assert_exact(lift(build_star(size, seed), tilt))


@pytest.mark.parametrize("size", [7, 12, 13, 40])
def test_combs_are_covered_exactly(size: int) -> None:
    top = [[x, 1.0 + 3 * (x % 2)] for x in range(size, -1, -1)]
    assert_exact(lift(np.array([[0, 0], [size, 0], *top])))


@pytest.mark.parametrize("turn", range(5))
def test_a_corner_in_the_middle_of_a_side_is_used(turn: int) -> None:
    house = np.array([[0, 0], [1, 0], [2, 0], [2, 2], [0, 2]], float)
    points, faces = triangulate_one(lift(np.roll(house, turn, axis=0)))
    assert (signed_areas(points, faces) > 1e-3).all()
    assert_exact(points)


def test_a_hole_reached_by_a_bridge_stays_open() -> None:
    outer = [[0, 0], [4, 0], [4, 4], [0, 4]]
    hole = [[1, 1], [1, 3], [3, 3], [3, 1]]
    ring = np.array([*outer, outer[0], hole[0], *hole[1:], hole[0]], float)
    vertices = lift(np.array([*outer, *hole], float))
    indices = np.array([0, 1, 2, 3, 0, 4, 5, 6, 7, 4])
    faces, _ = triangulate(vertices, np.array([10]), indices)
    assert len(faces) == 8
    assert signed_areas(lift(ring), triangulate_corners(vertices, np.array([10]), indices)[0]).min() >= -1e-12
    assert signed_areas(vertices, faces).sum() == pytest.approx(12)
    centers = vertices[faces].mean(axis=1)
    assert not ((centers > 1) & (centers < 3))[:, :2].all(axis=1).any()


def test_mixed_polygons_keep_their_order_and_map_faces_to_polygons() -> None:
    square = lift(np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float))
    vertices = np.concatenate([square, square + [2, 0, 0], lift(L_SHAPE) + [4, 0, 0]])
    counts = np.array([3, 4, 2, 0, 6, 3])
    indices = np.array([0, 1, 2, 4, 5, 6, 7, 0, 1, 8, 9, 10, 11, 12, 13, 0, 2, 3])
    faces, owner = triangulate(vertices, counts, indices)
    assert owner.tolist() == [0, 1, 1, 4, 4, 4, 4, 5]
    assert faces.dtype == np.int32
    assert faces[0].tolist() == [0, 1, 2]
    assert faces[-1].tolist() == [0, 2, 3]
    assert set(faces[3:7].ravel().tolist()) == set(range(8, 14))
    corners, again = triangulate_corners(vertices, counts, indices)
    assert np.array_equal(indices[corners], faces)
    assert np.array_equal(owner, again)


@pytest.mark.parametrize("size", [4, 5, 9, 30])
def test_polygons_without_a_plane_still_give_their_triangles(size: int) -> None:
    for points in (np.zeros((size, 3)), np.linspace([0, 0, 0], [1, 2, 3], size), np.full((size, 3), np.nan)):
        _, faces = triangulate_one(points)
        assert len(faces) == size - 2
        assert set(faces.ravel().tolist()) == set(range(size))


def test_repeated_indices_lose_no_area() -> None:
    vertices = lift(L_SHAPE)
    faces, _ = triangulate(vertices, np.array([9]), np.array([0, 0, 1, 2, 3, 3, 3, 4, 5]))
    assert len(faces) == 7
    areas = signed_areas(vertices, faces)
    assert areas.sum() == pytest.approx(3)
    assert areas.min() >= 0


def test_polygons_that_cross_themselves_give_their_triangles() -> None:
    rng = np.random.default_rng(5)
    for size in (4, 6, 12, 20, 50):
        _, faces = triangulate_one(lift(rng.random((size, 2))))
        assert len(faces) == size - 2


def test_many_polygons_of_many_sizes_close_a_surface() -> None:
    """A prism over each of many stars is closed after triangulation."""
    pieces, counts, indices, offset, expected = [], [], [], 0, 0.0
    for seed in range(60):
        size = 4 + seed % 17
        flat = build_star(size, seed) + [4 * seed, 0]
        low, high = np.column_stack([flat, np.zeros(size)]), np.column_stack([flat, np.ones(size)])
        pieces += [low, high]
        ring = np.arange(size)
        after = (ring + 1) % size
        walls = np.stack([ring, after, after + size, ring + size], axis=1).ravel()
        counts += [size, size, *([4] * size)]
        indices += [ring[::-1] + offset, ring + size + offset, walls + offset]
        offset += 2 * size
        x, y = flat.T
        expected += (x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2
    vertices = np.concatenate(pieces)
    faces, _ = triangulate(vertices, np.array(counts), np.concatenate(indices))
    assert find_open_edges(faces) == set()
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    assert np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6 == pytest.approx(expected)


@pytest.mark.parametrize(
    ("counts", "indices"), [([3], [0, 1, 4]), ([3], [0, 1, -1]), ([4], [0, 1, 2]), ([-1, 4], [0, 1, 2])]
)
def test_invalid_indices_and_counts_are_rejected(counts: list[int], indices: list[int]) -> None:
    with pytest.raises(ValueError, match=r"polygon"):
        triangulate(np.eye(4)[:, :3], np.array(counts), np.array(indices))


def test_no_polygons_give_no_faces() -> None:
    faces, owner = triangulate(np.empty((0, 3)), np.empty(0, np.int64), np.empty(0, np.int64))
    assert faces.shape == (0, 3)
    assert owner.shape == (0,)
