"""Recipes over HTTP: by registered name, never by path."""

from __future__ import annotations

from pathlib import Path

import pytest

from http_serving import check_error, serving
from meshhub import Registry, Source
from models import brick, scene_of

pytestmark = pytest.mark.once

BRICK = Registry(entry_points=False).convert_bytes(scene_of(brick()), "stl")


def test_a_form_names_a_recipe_and_never_a_file(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[options]\nrepair = true\n")
    with serving(tmp_path, {}) as running:
        listed = running.client.get("/supported").json()
        assert listed["recipes"]["print"]["options"] == {"repair": True, "place_on_bed": True}
        assert "recipe" in listed["options"]["properties"]
        response = running.convert(BRICK, "a.stl", "ply", recipe="print")
        assert response.status_code == 200, response.text
        sizes = Registry(entry_points=False).read(Source.from_bytes(response.content, "a.ply")).meshes[0].vertices
        assert sizes.mean(axis=0)[:2] == pytest.approx((0, 0))
        assert sizes[:, 2].min() == 0
        for name in (str(recipe), "../mine.toml", "mine"):
            error = check_error(running.convert(BRICK, "a.stl", "ply", recipe=name), 400, "invalid_option")
            assert "known are " in error["error"]
