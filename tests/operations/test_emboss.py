"""Text on flat sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import CrossSection, Manifold

from meshhub import ConversionFailed, InvalidOption, Registry
from meshhub.builtin_plugins.emboss import EmbossOptions
from meshhub.model.notes import collecting
from meshhub.model.scene import Part, Scene
from meshhub.toolkit.geometry import bounds, soup
from models import assert_valid, brick, move_mesh, scene_of, sphere, volume
from solids import mesh_of

pytest.importorskip("font_lato", reason="text needs the extra text")
pytest.importorskip("fontTools", reason="text needs the extra text")

from meshhub.builtin_plugins.emboss.operation import run

pytestmark = pytest.mark.once

SIDES = {
    "top": ((0, 0, 1), (0, 1, 0)),
    "bottom": ((0, 0, -1), (0, 1, 0)),
    "front": ((0, -1, 0), (0, 0, 1)),
    "back": ((0, 1, 0), (0, 0, 1)),
    "left": ((-1, 0, 0), (0, 0, 1)),
    "right": ((1, 0, 0), (0, 0, 1)),
}
"""Outward direction of each side, and up for a reader in front of it."""


def emboss(scene: Scene, text: str, **options: Any) -> Scene:
    return run(scene, EmbossOptions(emboss_text=text, **{f"emboss_{name}": value for name, value in options.items()}))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("height", [0.8, -0.8])
def test_a_reader_in_front_of_the_side_sees_an_l(side: str, height: float) -> None:
    scene = scene_of(brick(40, 50, 60))
    result = emboss(scene, "L", side=side, height_mm=height, size_mm=10)
    assert_valid(result)
    normal, up = (np.array(axis, float) for axis in SIDES[side])
    right = np.cross(up, normal)
    vertices = soup(result)[0]
    surface = np.array([40, 50, 60]) @ np.maximum(normal, 0)
    letter = vertices[np.isclose(vertices @ normal, surface + height)]
    across, along = letter @ right, letter @ up
    assert np.ptp(along) == pytest.approx(10, rel=0.01)
    # the stem is on the left, the arm at the bottom, so the upper right corner is empty
    corners = {
        (x, y): np.hypot(across - x, along - y).min()
        for x in (across.min(), across.max())
        for y in (along.min(), along.max())
    }
    assert max(corners, key=lambda corner: corners[corner]) == (across.max(), along.max())


def test_the_volume_is_that_of_the_letters() -> None:
    scene = scene_of(brick(60, 30, 5))
    raised = volume(*soup(emboss(scene, "H8", height_mm=1, size_mm=10))) - 9000
    engraved = 9000 - volume(*soup(emboss(scene, "H8", height_mm=-1, size_mm=10)))
    assert raised == pytest.approx(engraved, rel=1e-6)
    assert 40 < raised < 100


@settings(max_examples=8)
@given(text=st.text("ABCXYZabcäöüÄß0123456789-_/.#", min_size=1, max_size=6), size=st.floats(1, 30))
def test_any_text_stays_on_its_side(text: str, size: float) -> None:
    scene = scene_of(brick(30, 20, 10))
    result = emboss(scene, text, size_mm=size)
    assert_valid(result)
    assert bounds(result).ravel().tolist() == pytest.approx([0, 0, 0, 30, 20, 10.6])


def test_text_that_does_not_fit_shrinks_and_then_is_rejected() -> None:
    with collecting("emboss") as remarks:
        emboss(scene_of(brick(30, 20, 10)), "ABC-123", size_mm=20)
    assert [note.code for note in remarks.notes] == ["text_shrunk"]
    assert 3 < float(remarks.figures["text_size_mm"]) < 6  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match=r"only capitals of 0\.\d+ mm"):
        emboss(scene_of(brick(4, 4, 4)), "ABC-123-DEF-456")


def test_text_avoids_holes_and_turns_along_the_longer_side() -> None:
    plate = Manifold.cube((20, 60, 4)) - Manifold.cylinder(20, 4, 4, 64, True).translate((10, 30, 0))
    result = emboss(scene_of(mesh_of(plate)), "ABC-12", size_mm=6)
    assert_valid(result)
    vertices = soup(result)[0]
    letters = vertices[vertices[:, 2] > 4.3][:, :2]
    assert np.ptp(letters[:, 1]) > np.ptp(letters[:, 0])
    assert np.hypot(*(letters - [10, 30]).T).min() > 4
    assert letters.min() > 0 and (letters.max(axis=0) < [20, 60]).all()


def test_the_floor_of_a_cavity_is_not_the_top() -> None:
    shell = Manifold.cube((40, 40, 40)) - Manifold.cube((36, 36, 36)).translate((2, 2, 2))
    roof = Manifold.extrude(CrossSection.square((40, 40), True), 5, scale_top=(0.5, 0.5)).translate((20, 20, 40))
    result = emboss(scene_of(mesh_of(shell + roof)), "A", size_mm=4)
    letters = soup(result)[0][:, 2]
    assert np.isclose(letters, 45.6).any() and not np.isclose(letters, 2.6).any()


def test_a_text_deeper_than_the_wall_is_rejected() -> None:
    with pytest.raises(InvalidOption, match=r"0\.6 mm thick"):
        emboss(scene_of(brick(40, 40, 0.6)), "A", height_mm=-0.5)
    assert_valid(emboss(scene_of(brick(40, 40, 0.6)), "A", height_mm=-0.4))


def test_the_largest_part_gets_the_text_in_all_instances() -> None:
    beside = np.eye(4)
    beside[0, 3] = 100
    colors = np.tile(np.uint8([9, 80, 200, 255]), (8, 1))
    scene = Scene(
        (brick(10, 10, 10), replace(brick(30, 30, 5), colors=colors)), (Part(0, name="a"), Part(1), Part(1, beside))
    )
    result = emboss(scene, "7")
    assert len(result.meshes) == 2 and result.parts[0].name == "a"
    assert np.array_equal(result.meshes[0].vertices, scene.meshes[0].vertices)
    assert volume(*soup(result)) > volume(*soup(scene)) + 1
    assert result.meshes[1].colors is not None
    assert np.array_equal(np.unique(result.meshes[1].colors, axis=0), colors[:1])


def test_what_has_no_text_is_said() -> None:
    with pytest.raises(InvalidOption, match="does not fit"):
        emboss(scene_of(sphere(5, 64)), "ABC", side="left")
    with pytest.raises(InvalidOption, match="font lacks"):
        emboss(scene_of(brick()), "漢")
    with pytest.raises(ConversionFailed, match="repair"):
        emboss(scene_of(replace(brick(), faces=brick().faces[1:])), "A")
    with Registry(entry_points=False) as registry:
        for options in ({"emboss_side": "left"}, {"emboss_text": "A", "emboss_height_mm": 0}):
            with pytest.raises(InvalidOption, match="emboss"):
                registry.convert_bytes(scene_of(move_mesh(brick(), 0, 0, 0)), "stl", **options)
