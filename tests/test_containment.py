"""Shells and points inside a closed surface."""

from __future__ import annotations

import numpy as np
import pytest

from meshhub.toolkit.containment import TURN, group_by_shell
from models import brick, sphere

pytestmark = pytest.mark.once


def test_a_shell_contains_the_points_inside_it() -> None:
    inner, outer = sphere(segments=12), brick()
    inner_vertices = inner.vertices - inner.vertices.mean(axis=0)
    inner_vertices /= np.abs(inner_vertices).max()
    outer_vertices = outer.vertices - outer.vertices.mean(axis=0)
    outer_vertices *= 3 / np.ptp(outer_vertices, axis=0)
    points = np.concatenate([inner_vertices, outer_vertices])
    faces = np.concatenate([inner.faces, outer.faces + np.int32(len(inner_vertices))])
    # interleaved, so that the grouping has to sort
    order = np.random.default_rng(3).permutation(len(faces))
    shell = np.repeat(np.array([0, 1], np.int32), [len(inner.faces), len(outer.faces)])[order]
    shells = group_by_shell(points, faces[order], shell, 2)

    assert np.diff(shells.begin).tolist() == [len(inner.faces), len(outer.faces)]
    for number, mine in enumerate((inner_vertices, outer_vertices)):
        np.testing.assert_allclose(shells.low[number], (mine @ TURN).min(axis=0))
        np.testing.assert_allclose(shells.high[number], (mine @ TURN).max(axis=0))
    queries = np.array([[0.1, 0.2, 0.3], [1.4, 1.4, 1.4], [1.6, 0.1, 0.2]]) @ TURN
    assert shells.contains(0, queries).tolist() == [True, False, False]
    assert shells.contains(1, queries).tolist() == [True, True, False]
