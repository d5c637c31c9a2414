"""Operation copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from meshhub import InvalidOption, ModelTooComplex, Registry
from meshhub.builtin_plugins.copies import CopiesOptions, operation
from meshhub.model.scene import Scene
from meshhub.toolkit.geometry import bounds, soup
from models import brick, move_mesh, scene_of, volume

pytestmark = pytest.mark.once


def copy(scene: Scene, count: int, gap: float = 5) -> Scene:
    return operation.run(scene, CopiesOptions(copies=count, copies_gap_mm=gap))


@pytest.mark.parametrize("count", [2, 3, 4, 7, 100])
def test_copies_stand_apart_and_share_their_mesh(count: int) -> None:
    scene = scene_of(move_mesh(brick(), 3, 4, 5))
    result = copy(scene, count)
    assert len(result.meshes) == 1 and len(result.parts) == count
    assert volume(*soup(result)) == pytest.approx(count * 6000)
    boxes = [bounds(replace(result, parts=(part,))) for part in result.parts]
    for first in range(count):
        for second in range(first):
            between = np.maximum(boxes[first][0] - boxes[second][1], boxes[second][0] - boxes[first][1])
            assert between.max() >= 5 - 1e-9
    # about a square
    width, depth, _ = np.ptp(bounds(result), axis=0)
    assert count < 4 or 0.4 < width / depth < 2.5


def test_the_first_one_stays_in_place() -> None:
    scene = scene_of(move_mesh(brick(), 3, 4, 5))
    assert np.array_equal(copy(scene, 3).parts[0].transform, scene.parts[0].transform)
    assert copy(scene, 1) is scene


def test_the_parts_of_a_copy_stay_together() -> None:
    scene = scene_of(brick(), move_mesh(brick(), 10, 0, 0))
    result = copy(replace(scene, parts=tuple(replace(part, path=("a", "b")) for part in scene.parts)), 2)
    assert [part.path for part in result.parts] == [("a", "b"), ("a", "b"), ("a", "b-2"), ("a", "b-2")]


def test_copies_find_places_on_a_bed() -> None:
    registry = Registry(entry_points=False)
    scene = registry.read(scene_of(brick(40, 40, 5)), copies=6, arrange_bed="140x95")
    assert np.ptp(bounds(scene), axis=0)[:2] == pytest.approx([130, 85], abs=1.5)


def test_too_many_copies_are_refused() -> None:
    with pytest.raises(ModelTooComplex, match="at most 10,000"):
        copy(scene_of(*[brick()] * 11), 1000)


def test_a_gap_needs_copies() -> None:
    with pytest.raises(InvalidOption, match="a gap needs copies"):
        Registry(entry_points=False).convert_bytes(scene_of(brick()), "stl", copies_gap_mm=3)
