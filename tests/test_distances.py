"""Distances to a surface whose nearest samples are all on other faces."""

from __future__ import annotations

import numpy as np
import pytest

from meshhub.toolkit.distances import SurfaceDistance


def test_the_exact_distance_finds_a_large_face_below_many_small_ones() -> None:
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
    assert surface.measure_exactly(points, limits) == pytest.approx([0.05, 5.0])
