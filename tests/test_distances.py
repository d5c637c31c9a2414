"""Distances to all faces of a surface, also where the nearest samples are on other faces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub.toolkit.distances import SurfaceDistance, closest_points


def test_all_faces_include_a_large_one_below_many_small_ones() -> None:
    large = np.array([[[-10.0, -10, 0], [10, -10, 0], [0, 10, 0]]])
    # 120 slivers 0.3 above it, near a point at which the large triangle has no sample
    angles = np.linspace(0, 2 * np.pi, 121)
    rim = np.stack([0.4 * np.cos(angles), 0.4 * np.sin(angles), np.full(121, 0.3)], axis=1) + [1.3, -3.1, 0]
    center = np.broadcast_to([1.3, -3.1, 0.3], (120, 3))
    corners = np.concatenate([large, np.stack([center, rim[:-1], rim[1:]], axis=1)])
    surface = SurfaceDistance(corners.reshape(-1, 3), np.arange(3 * len(corners), dtype=np.int32).reshape(-1, 3), 5.0)
    points = np.array([[1.3, -3.1, 0.05], [1.3, -3.1, 5.3]])
    limits = surface.measure(points, 48)
    assert limits == pytest.approx([0.25, 5.0])
    distances, faces = surface.find_nearer(points, limits)
    assert distances == pytest.approx([0.05, 5.0])
    assert faces[0] == 0


@given(seed=st.integers(0, 10_000), count=st.integers(1, 80), far=st.sampled_from([0.0, 1e4]))
@settings(max_examples=60, deadline=None)
def test_nearest_faces_are_those_of_a_comparison_with_each(seed: int, count: int, far: float) -> None:
    random = np.random.default_rng(seed)
    corners = random.normal(0, 1, (count, 3, 3)) * random.choice([0.01, 1.0], (count, 1, 3)) + far
    surface = SurfaceDistance(corners.reshape(-1, 3), np.arange(3 * count, dtype=np.int32).reshape(-1, 3), 1.0)
    points = random.normal(0, 2, (50, 3)) + far
    gaps = [points - closest_points(points, np.broadcast_to(corner, (50, 3, 3))) for corner in corners]
    all_distances = np.linalg.norm(gaps, axis=2)
    limits = random.uniform(0, 4, 50)
    distances, faces = surface.find_nearer(points, limits)
    nearest = all_distances.min(axis=0)
    assert distances == pytest.approx(np.minimum(nearest, limits), rel=1e-9, abs=1e-9)
    assert ((faces >= 0) == (nearest < limits)).all()
    found = np.flatnonzero(faces >= 0)
    assert all_distances[faces[found], found] == pytest.approx(nearest[found])
