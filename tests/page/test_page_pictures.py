"""The 3D view beside reference pictures.

`MESHHUB_TEST_RENEW=1 pytest tests/page/test_page_pictures.py` draws the references anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from meshhub import Registry
from meshhub.model.scene import Material, Part, Scene
from models import brick
from page_visits import IS_FIREFOX, Visit, download, draw, pick

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"
REFERENCES = Path(__file__).parent / "pictures"
SIZE_PIXELS = (160, 130)
"""Width and height of a reference: the view, averaged, so that single pixels of a renderer do not count."""

MAX_BYTES = 30_000
"""Bytes of a reference."""

PIXEL_TOLERANCE = 24
"""Levels of 255 by which a pixel may differ."""

MAX_DIFFERENT_RATIO = 0.01
"""Share of the pixels that may differ more; a shift of the model by 2 % of the width changes more of them."""

SHIFT_PIXELS = 4
"""Pixels of a shift that must be found."""


def write_colors(folder: Path) -> Path:
    """Write a red, a green and a blue block of different heights."""
    colors = ((0.8, 0.1, 0.1, 1.0), (0.1, 0.6, 0.2, 1.0), (0.1, 0.2, 0.8, 1.0))
    places = [np.eye(4) for _ in colors]
    for index, place in enumerate(places):
        place[0, 3] = 30.0 * index
    scene = Scene(
        meshes=tuple(brick(25, 25, 10.0 * (index + 1)) for index in range(3)),
        parts=tuple(Part(index, place, material=index) for index, place in enumerate(places)),
        materials=tuple(Material(name=str(index), base_color=color) for index, color in enumerate(colors)),
    )
    path = folder / "colors.3mf"
    Registry().write(scene, path)
    return path


def show_section(page: Any) -> None:
    page.get_by_role("button", name="Section").click()


def show_walls(page: Any) -> None:
    page.get_by_role("group", name="Show", exact=True).get_by_role("button", name="Wall thickness").click()
    page.locator(".coloring .scale").wait_for()
    page.locator(".coloring .spinner").wait_for(state="detached")


def fly_to_a_fragment(page: Any) -> None:
    page.get_by_role("list", name="Problems").get_by_role("button", name="stray fragments").click()
    page.get_by_text("Place 1 of 1").wait_for()


class State(NamedTuple):
    """What the view shows: a model, and what is done with it."""

    write: Callable[[Path], Path]
    act: Callable[[Any], None] = lambda page: None
    scheme: str = "light"


STATES = {
    "model": State(lambda folder: EXAMPLES / "bracket-clean.stl"),
    "defects": State(lambda folder: EXAMPLES / "bracket.stl", fly_to_a_fragment),
    "colors": State(write_colors),
    "cut": State(lambda folder: EXAMPLES / "bracket-clean.stl", show_section),
    "heat-map": State(lambda folder: EXAMPLES / "bracket-clean.stl", show_walls),
    "dark": State(lambda folder: EXAMPLES / "bracket.stl", scheme="dark"),
}


def read(name: str) -> np.ndarray:
    with Image.open(REFERENCES / f"{name}.png") as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def measure_difference(picture: np.ndarray, reference: np.ndarray) -> float:
    """Return the share of the pixels that differ."""
    assert picture.shape == reference.shape
    return float((np.abs(picture - reference).max(axis=2) > PIXEL_TOLERANCE).mean())


@pytest.mark.parametrize("name", STATES)
def test_the_view_looks_like_its_reference(browser: Any, address: str, tmp_path: Path, name: str) -> None:
    write, act, scheme = STATES[name]
    if IS_FIREFOX and scheme == "dark":
        pytest.skip("the dark scheme cannot be set in Firefox")
    visit = Visit(
        browser,
        address,
        viewport={"width": 1000, "height": 640},
        color_scheme=scheme,
        reduced_motion="reduce",
        device_scale_factor=1,
    )
    page = visit.open()
    pick(page, write(tmp_path))
    act(page)
    draw(page)
    with Image.open(download(page, "Save picture", tmp_path)) as view:
        small = view.convert("RGB").resize(SIZE_PIXELS, Image.Resampling.BOX)
    visit.close()
    if os.environ.get("MESHHUB_TEST_RENEW"):
        REFERENCES.mkdir(exist_ok=True)
        small.save(REFERENCES / f"{name}.png", optimize=True)
    assert measure_difference(np.asarray(small).astype(int), read(name)) <= MAX_DIFFERENT_RATIO


@pytest.mark.parametrize("name", STATES)
def test_a_reference_tells_empty_and_shifted_pictures(name: str) -> None:
    reference = read(name)
    assert (REFERENCES / f"{name}.png").stat().st_size <= MAX_BYTES
    empty = np.broadcast_to(reference[0, 0], reference.shape)
    assert measure_difference(empty, reference) > 5 * MAX_DIFFERENT_RATIO
    for axis in (0, 1):
        for shift in (-SHIFT_PIXELS, SHIFT_PIXELS):
            assert measure_difference(np.roll(reference, shift, axis=axis), reference) > 2 * MAX_DIFFERENT_RATIO


def test_references_differ_from_each_other() -> None:
    pictures = [read(name) for name in STATES]
    for index, picture in enumerate(pictures):
        for other in pictures[:index]:
            assert measure_difference(picture, other) > 2 * MAX_DIFFERENT_RATIO
