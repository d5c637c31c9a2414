"""`@inventory`: the list of filaments that the operator keeps for a caller."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from http_serving import Running, check_error
from meshhub import Registry, Source
from meshhub.errors import InvalidSettings
from meshhub.http.server.app import create_app
from meshhub.model.scene import Material, Part, Scene
from meshhub.service.settings import Settings
from models import brick

OPTIONS = {"target": "3mf", "reduce_colors_palette": "@inventory"}


@pytest.fixture
def glb() -> bytes:
    """A light red box."""
    material = Material("red", (0.9, 0.2, 0.2, 1.0))
    with Registry(entry_points=False) as registry:
        return registry.convert_bytes(Scene((brick(),), (Part(0, material=0),), (material,)), "glb")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Lists of an operator; a test adds those of its keys."""
    lists = tmp_path / "inventories"
    lists.mkdir()
    (lists / "default.csv").write_text("name,hex\nFire red,#D01020\nBlack,#000000\n")
    return lists


def colors(response: Any) -> list[str]:
    assert response.status_code == 200, response.text
    with Registry(entry_points=False) as registry:
        scene = registry.read(Source.from_bytes(response.content, "a.3mf"))
    return [scene.materials[index].name for index in scene.used_materials()]


def convert(running: Running, glb: bytes, **more: Any) -> Any:
    return running.post("/convert", {"file": ("box.glb", glb)}, OPTIONS, **more)


def test_callers_get_their_list_or_the_default(serve: Callable[..., Running], folder: Path, glb: bytes) -> None:
    running = serve(inventories_folder=str(folder))
    assert colors(convert(running, glb)) == ["Fire red"]
    assert "reduce_colors_palette" in running.get("/plan").json()["inventories"]
    key, record = running.keys.create("pro", label="shop")
    header = {"X-Api-Key": key}
    assert colors(convert(running, glb, headers=header)) == ["Fire red"]
    # a new list counts at once
    (folder / f"{record.id}.json").write_text(json.dumps({"Pink": "#F08080", "White": "#FFFFFF"}))
    assert colors(convert(running, glb, headers=header)) == ["Pink"]
    assert colors(convert(running, glb)) == ["Fire red"]


def test_explanations_jobs_and_single_files_have_the_list(
    serve: Callable[..., Running], folder: Path, glb: bytes
) -> None:
    running = serve(inventories_folder=str(folder))
    form = {**OPTIONS, "sources": '[{"name": "box.glb"}]'}
    explained = running.post("/explain", {name: (None, text) for name, text in form.items()})
    assert "Fire red" in explained.text
    own = json.dumps({"0": {"reduce_colors_palette": "@inventory"}})
    many = running.post("/convert-many", [("files", ("a.glb", glb))], {"target": "3mf", "file_options": own})
    assert many.status_code == 200, many.text
    assert running.post("/jobs", {"file": ("box.glb", glb)}, OPTIONS).status_code == 202


def test_other_options_and_texts_stay(serve: Callable[..., Running], folder: Path, glb: bytes) -> None:
    running = serve(inventories_folder=str(folder))
    fields = {"target": "stl", "threemf_remap_filaments": "@inventory"}
    assert running.post("/convert", {"file": ("box.glb", glb)}, fields).status_code == 200
    bad = running.post("/convert", {"file": ("box.glb", glb)}, {**OPTIONS, "reduce_colors_palette": "@inventory2"})
    assert "@inventory2" in check_error(bad, 400, "invalid_option")["error"]


def test_a_missing_or_unreadable_list_is_an_error(
    serve: Callable[..., Running], isolated: Running, folder: Path, glb: bytes
) -> None:
    assert "keeps no list for you" in check_error(convert(isolated, glb), 400, "invalid_option")["error"]
    running = serve(inventories_folder=str(folder))
    for content in (b"\xff\xfe\xfa", b"#" * (1 << 20) + b"!"):
        (folder / "default.csv").write_bytes(content)
        assert "cannot read your list" in check_error(convert(running, glb), 400, "invalid_option")["error"]
    (folder / "default.csv").unlink()
    assert "keeps no list for you" in check_error(convert(running, glb), 400, "invalid_option")["error"]


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"inventories_folder: .*none' is not a folder"):
        create_app(Settings(inventories_folder=str(tmp_path / "none")))
