"""The formats beside FBX: size, direction of faces, names and colors, and companions."""

from __future__ import annotations

import pytest
from bricks import FILES, make_x3d

from meshhub import MeshhubError, Registry, Source
from meshhub.testing import sample_scenes
from meshhub.toolkit.geometry import bounds, signed_volume, soup

REGISTRY = Registry()
IMAGE = sample_scenes.png()


@pytest.mark.parametrize("format_id", ["lwo", "ms3d", "ac3d", "b3d", "directx"])
def test_a_brick_is_read_by_its_content(format_id: str) -> None:
    source = Source.from_bytes(FILES[format_id], "brick.bin")
    scene = REGISTRY.read(source)
    assert bounds(scene).ravel() == pytest.approx([0, 0, 0, 10, 20, 30], abs=1e-5)
    assert signed_volume(*soup(scene)) == pytest.approx(6000)
    assert [(material.name, material.base_color) for material in scene.materials] == [("red", (1, 0, 0, 1))]
    # MilkShape's file names groups, which assimp drops
    assert [part.name for part in scene.parts] == ["" if format_id == "ms3d" else "brick"]
    with pytest.raises(MeshhubError) as caught:
        REGISTRY.read(Source.from_bytes(FILES[format_id][:60], "brick.bin"))
    assert caught.value.code in ("unreadable_file", "empty_model")


@pytest.mark.parametrize("urls", ["'\"paint.png\"'", '\'"paint.png" "b.png"\'', '"&quot;paint.png&quot;"'])
def test_a_texture_of_x3d_is_the_first_of_its_list(urls: str) -> None:
    data = make_x3d().replace(b"'\"paint.png\"'", urls.encode())
    scene = REGISTRY.read(Source.from_bytes(data, "a.x3d", {"paint.png": IMAGE}))
    assert [image.data for image in scene.images] == [IMAGE]


def test_nodes_of_x3d_are_used_again_in_another_place() -> None:
    again = '<Transform translation="1 0 0"><Transform USE="brick"/></Transform>'
    scene = REGISTRY.read(Source.from_bytes(make_x3d(again), "a.x3d"))
    assert [(part.name, part.path) for part in scene.parts] == [("brick", ("group",)), ("brick", ())]
    assert bounds(scene)[1] == pytest.approx([1010, 20, 30], abs=1e-4)
