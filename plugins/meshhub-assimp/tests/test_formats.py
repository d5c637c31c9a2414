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


VRML = b"""#VRML V2.0 utf8
# a comment with "one quote
PROTO Red [ field SFColor color 1 0 0 ] { Material { diffuseColor IS color } }
DEF Clock TimeSensor { loop TRUE }
DEF group Transform { scale 0.01 0.02 0.03 children [
  DEF brick Transform { children Shape {
    appearance DEF look Appearance {
      material Material { diffuseColor 1 0 0 transparency 0.5 }
      texture ImageTexture { url ["paint.png", "b.png"] repeatS FALSE }
    }
    geometry IndexedFaceSet {
      ccw TRUE, solid TRUE
      coord Coordinate { point [0 0 0,1 0 0,1 1 0, 0 1 0 # a comment
        0 0 1, 1 0 1, 1 1 1, 0 1 1] }
      coordIndex [3,2,1,0,-1, 4 5 6 7 -1, 0 1 5 4 -1 1 2 6 5 -1 2 3 7 6 -1 3 0 4 7 -1]
      texCoord TextureCoordinate { point [0 0, 1 0, 1 1, 0 1, 0 0, 1 0, 1 1, 0 1] }
    } } }
  Transform { translation 2 0 0 children USE brick }
] }
Script { url "javascript: function f() { }" field SFInt32 a 1 }
ROUTE Clock.fraction_changed TO brick.set_scale
"""


def test_vrml_is_read_as_x3d() -> None:
    scene = REGISTRY.read(Source.from_bytes(VRML, "a.wrl", {"paint.png": IMAGE}))
    assert [(part.name, part.path) for part in scene.parts] == [("brick", ("group",)), ("brick", ("group",))]
    assert bounds(scene).ravel() == pytest.approx([0, -30, 0, 30, 0, 20])
    assert signed_volume(*soup(scene)) == pytest.approx(2 * 10 * 20 * 30)
    assert [image.data for image in scene.images] == [IMAGE]
    assert scene.materials[0].base_color[3] == 0.5


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"#VRML V1.0 ascii\nSeparator { }", "unreadable_file", "save it as VRML 2.0"),
        (VRML[:600], "unreadable_file", "cut off inside a node"),
        (VRML[:16] + b"]", "unreadable_file", "not a node"),
        (VRML[:16] + b"Group { children " * 500, "model_too_complex", "200 deep"),
        (VRML[:16], "empty_model", "no triangles"),
    ],
)
def test_the_error_of_a_bad_vrml_file_says_why(data: bytes, code: str, message: str) -> None:
    with pytest.raises(MeshhubError, match=message) as caught:
        REGISTRY.read(Source.from_bytes(data, "a.wrl"))
    assert caught.value.code == code
