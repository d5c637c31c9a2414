"""Regions of triangles with equal labels."""

from __future__ import annotations

import numpy as np
import pytest

from meshhub.model.scene import Float64, UInt8
from meshhub.toolkit.geometry import face_normals
from meshhub.toolkit.regions import Neighbors, find_neighbors, find_regions, remove_labels, remove_narrow_regions

pytestmark = pytest.mark.once

SIZE = 12


def measure_sheet() -> tuple[Float64, Neighbors]:
    """Return the areas and neighbors of a sheet of SIZE × SIZE unit squares, two triangles each."""
    grid = np.arange((SIZE + 1) ** 2, dtype=np.int32).reshape(SIZE + 1, SIZE + 1)
    a, b, c, d = (corner.ravel() for corner in (grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]))
    faces = np.stack([a, b, c, a, c, d], axis=1).reshape(-1, 3)
    y, x = np.divmod(np.arange(grid.size), SIZE + 1)
    points = np.stack([x, y, 0 * x], axis=1).astype(np.float64)
    sides = np.linalg.norm(points[faces[:, [1, 2, 0]]] - points[faces], axis=2)
    return np.linalg.norm(face_normals(points, faces), axis=1) / 2, find_neighbors(faces, sides)


def draw(squares: UInt8) -> UInt8:
    """Return the labels of the triangles of a sheet."""
    return squares.ravel().repeat(2)


AREA, NEIGHBORS = measure_sheet()


def test_regions_are_connected_by_sides() -> None:
    squares = np.zeros((SIZE, SIZE), np.uint8)
    squares[:, 5] = 1
    squares[:3, :3] = 1
    count, region = find_regions(draw(squares), NEIGHBORS)
    assert count == 4
    assert len(np.unique(region[draw(squares) == 1])) == 2


@pytest.mark.parametrize(("min_width", "is_kept"), [(0.8, True), (1.2, False)])
def test_strips_narrower_than_the_width_disappear(min_width: float, is_kept: bool) -> None:
    squares = np.zeros((SIZE, SIZE), np.uint8)
    squares[:, 5] = 1
    squares[:, 8:] = 2
    before = draw(squares)
    after = remove_narrow_regions(before, AREA, NEIGHBORS, 3, min_width)
    assert (1 in after) is is_kept
    assert np.array_equal(after[before != 1], before[before != 1])


def test_speckles_side_by_side_become_few_regions() -> None:
    squares = (np.indices((SIZE, SIZE)).sum(axis=0) % 2).astype(np.uint8)
    after = remove_narrow_regions(draw(squares), AREA, NEIGHBORS, 2, 1.5)
    count, region = find_regions(after, NEIGHBORS)
    assert count < 5
    assert np.bincount(region, AREA).min() >= 9


def test_removed_labels_become_those_beside_them() -> None:
    """The label 2 is between both others, and 3 only beside 2."""
    squares = np.zeros((SIZE, SIZE), np.uint8)
    squares[:, 4:7], squares[5, 5], squares[:, 7:] = 2, 3, 1
    before = draw(squares)
    after = remove_labels(before, NEIGHBORS, np.array([False, False, True, True]))
    assert set(after.tolist()) == {0, 1}
    assert np.array_equal(after[before < 2], before[before < 2])


def test_labels_without_others_stay() -> None:
    squares = np.zeros((SIZE, SIZE), np.uint8)
    squares[:, 4:] = 1
    after = remove_labels(draw(squares), NEIGHBORS, np.array([True, True]))
    assert np.array_equal(after, draw(squares))
