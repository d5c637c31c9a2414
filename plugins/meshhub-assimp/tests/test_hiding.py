"""Hidden objects and names in the encodings of machines."""

from __future__ import annotations

from typing import Any

import meshhub_assimp.writer
import pytest
from bricks import make_3ds, make_lwo, make_ms3d
from fbx_files import fbx, material, model, slots

from meshhub import Part, Registry, Scene, Source, Target
from meshhub.testing import sample_scenes

REGISTRY = Registry()


def read(data: bytes, format_id: str) -> tuple[Scene, list[str]]:
    source = Source.from_bytes(data, f"a.{format_id}")
    notes = REGISTRY.inspect(source, input_format=format_id).notes
    scene = REGISTRY.read(source, input_format=format_id)
    return scene, [note.code for note in notes if note.code.startswith("hidden")]


HIDDEN = 'P: "Visibility", "Visibility", "", "A",0'
NO_INHERITANCE = 'P: "Visibility Inheritance", "Visibility Inheritance", "", "",0'


@pytest.mark.parametrize(
    ("upper", "lower", "names"),
    [
        ("", HIDDEN, ["upper"]),
        (HIDDEN, "", []),
        (HIDDEN, NO_INHERITANCE, ["lower"]),
        ('P: "Show", "bool", "", "",0', "", ["lower"]),
    ],
)
def test_fbx_hides_nodes_and_those_below_them(upper: str, lower: str, names: list[str]) -> None:
    data = fbx(
        models=model(20, "upper", upper) + model(21, "lower", lower),
        links=('"OO",20,0', '"OO",21,20', '"OO",10,20', '"OO",10,21'),
    )
    scene, codes = read(data, "fbx")
    # a file that hides all of its objects is read
    assert [part.name for part in scene.parts] == (names or ["upper", "lower"])
    assert codes == (["hidden_ignored"] if names else ["hidden_read"])


def test_a_binary_fbx_file_hides_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer never hides; the property is that of other programs."""
    add_property = meshhub_assimp.writer._add_property
    hidden = [True, False]

    def add(properties: Any, name: str, *values: Any, **options: Any) -> None:
        if name == "Lcl Translation" and hidden.pop(0):
            add_property(properties, "Visibility", "Visibility", "", 0.0, flags="A")
            add_property(properties, "Visibility Inheritance", "Visibility Inheritance", "", 1)
        add_property(properties, name, *values, **options)

    monkeypatch.setattr(meshhub_assimp.writer, "_add_property", add)
    brick = sample_scenes.brick().meshes[0]
    target = Target("a.fbx")
    REGISTRY.write(Scene((brick,), (Part(0, name="hidden"), Part(0, name="shown"))), target, target="fbx")
    scene, codes = read(target.read(), "fbx")
    assert [part.name for part in scene.parts] == ["shown"]
    assert codes == ["hidden_ignored"]


@pytest.mark.parametrize("marks", [{"hidden_objects": [b"left"]}, {"hidden_nodes": [b"left"]}])
def test_3ds_hides_objects_and_nodes(marks: dict[str, list[bytes]]) -> None:
    scene, codes = read(make_3ds([b"left", b"right"], **marks), "3ds")
    assert [part.name for part in scene.parts] == ["right"]
    assert codes == ["hidden_ignored"]


def test_a_3ds_file_that_hides_everything_is_read() -> None:
    scene, codes = read(make_3ds([b"left", b"right"], [b"left"], [b"right"]), "3ds")
    assert len(scene.parts) == 2
    assert codes == ["hidden_read"]


def test_a_3ds_file_whose_objects_are_too_short_is_read() -> None:
    """OpenCTM writes the sizes of objects and meshes without the end of their last part."""
    data = bytearray(make_3ds([b"brick"]))
    for mark in (b"\x00\x40", b"\x00\x41"):
        place = data.index(mark + data[data.index(mark) + 2 : data.index(mark) + 6], 40)
        size = int.from_bytes(data[place + 2 : place + 6], "little")
        data[place + 2 : place + 6] = (size - 6).to_bytes(4, "little")
    assert read(bytes(data), "3ds")[0].meshes[0].faces.shape == (12, 3)


def test_lightwave_hides_layers() -> None:
    scene, codes = read(make_lwo([1, 0, 0]), "lwo")
    assert sum(len(scene.meshes[part.mesh].faces) for part in scene.parts) == 24
    assert codes == ["hidden_ignored"]
    assert read(make_lwo([1]), "lwo")[1] == ["hidden_read"]
    # the flags of Modo mean something else
    assert read(make_lwo([1, 0], b"LXOB"), "lwo")[1] == []


def test_milkshape_hides_groups() -> None:
    scene, codes = read(make_ms3d([2, 0]), "ms3d")
    assert sum(len(scene.meshes[part.mesh].faces) for part in scene.parts) == 12
    assert codes == ["hidden_ignored"]
    assert read(make_ms3d([2]), "ms3d")[1] == ["hidden_read"]


@pytest.mark.parametrize(
    ("encoding", "name", "color"),
    [
        ("utf-8", "Größe", "röt"),
        ("cp1252", "Gehäuse", "röt"),
        ("gb18030", "装配体1", "红色"),
        ("cp1251", "Корпус", "Сталь"),
    ],
)
def test_names_are_decoded(encoding: str, name: str, color: str) -> None:
    scene, _ = read(make_3ds([name.encode(encoding)]), "3ds")
    assert scene.parts[0].name == name
    text = fbx(
        models=model(20, "NAME"),
        layers=slots([0] * 6),
        objects=material(30, "COLOR"),
        links=('"OO",20,0', '"OO",10,20', '"OO",30,20'),
    )
    scene, _ = read(text.replace(b"NAME", name.encode(encoding)).replace(b"COLOR", color.encode(encoding)), "fbx")
    assert (scene.parts[0].name, scene.materials[0].name) == (name, color)
