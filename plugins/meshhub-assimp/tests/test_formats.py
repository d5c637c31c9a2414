"""The formats beside FBX: size, direction of faces, names and colors, and companions."""

from __future__ import annotations

import pytest
from bricks import FILES

from meshhub import MeshhubError, Registry, Source
from meshhub.toolkit.geometry import bounds, signed_volume, soup

REGISTRY = Registry()


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
