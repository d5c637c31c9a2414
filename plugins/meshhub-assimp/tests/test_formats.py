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
    assert caught.value.error_code in ("unreadable_file", "empty_model")


def ac3d(*objects: str) -> bytes:
    return (AC3D_HEAD + f"OBJECT world\nkids {len(objects)}\n" + "".join(objects)).encode()


def triangle(name: str, more: str = "", flags: str = "0x20") -> str:
    return (
        f'OBJECT poly\nname "{name}"\n{more}numvert 3\n0 0 0\n10 0 0\n0 10 0\nnumsurf 1\nSURF {flags}\nmat 0\nrefs 3\n'
        "0 0 0\n1 0 0\n2 0 0\nkids 0\n"
    )


AC3D_HEAD = 'AC3Db\nMATERIAL "red" rgb 1 0 0 amb 0 0 0 emis 0 0 0 spec 0 0 0 shi 0 trans 0\n'


@pytest.mark.parametrize("flags", ["0x0", "0x20", "0x30", "0X20"])
def test_a_surface_of_ac3d_with_two_sides_is_one_face(flags: str) -> None:
    assert REGISTRY.read(Source.from_bytes(ac3d(triangle("a", flags=flags)), "a.ac")).face_count == 1


@pytest.mark.parametrize(
    ("objects", "names", "code"),
    [
        ([triangle("a"), triangle("b", "hidden\n"), triangle("c")], ["a", "c"], "hidden_ignored"),
        ([triangle("a", "hidden\n"), triangle("b", "hidden\n")], ["a", "b"], "hidden_read"),
    ],
)
def test_ac3d_hides_objects(objects: list[str], names: list[str], code: str) -> None:
    source = Source.from_bytes(ac3d(*objects), "a.ac")
    assert [part.name for part in REGISTRY.read(source).parts] == names
    assert [note.code for note in REGISTRY.inspect(source).notes if note.code.startswith("hidden")] == [code]
