"""The gallery: its pictures are those of its list, small, and not empty."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.once

DOCS = Path(__file__).parent.parent / "docs"
FOLDER = DOCS / "images" / "gallery"
SHOTS = [
    shot
    for section in tomllib.loads((DOCS / "gallery.toml").read_text(encoding="utf-8"))["section"]
    for shot in section["pictures"]
]

MAX_BYTES, MAX_TOTAL_BYTES = 30_000, 1_000_000


def test_the_page_shows_each_picture_of_the_list() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    names = [shot["name"] for shot in SHOTS]
    assert len(names) >= 40
    assert re.findall(r'src="images/gallery/([\w-]+)\.webp"', page) == names
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(names)
    for shot in SHOTS:
        # models of others are named with their license
        assert ("/" in shot["file"]) == (f"{shot['title']}. <small>" in page)


def test_the_pictures_are_small_and_show_something() -> None:
    image = pytest.importorskip("PIL.Image")
    sizes = [path.stat().st_size for path in FOLDER.iterdir()]
    assert max(sizes) <= MAX_BYTES
    assert sum(sizes) <= MAX_TOTAL_BYTES
    for path in FOLDER.iterdir():
        pixels = np.asarray(image.open(path).convert("L"), np.int16)
        background = pixels[0, -1]
        assert (np.abs(pixels - background) > 20).mean() > 0.03, path.name
