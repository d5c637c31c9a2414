"""Sources and targets: names, siblings, and files outside of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshhub import Registry, Source, Target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "models"
    (inside / "Textures").mkdir(parents=True)
    (inside / "car.obj").write_text("v")
    (inside / "Textures" / "Red Paint.PNG").write_bytes(b"png")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (inside / "link.png").symlink_to(tmp_path / "secret.png")
    return inside


@pytest.mark.parametrize(
    "reference",
    [
        "Textures/Red Paint.PNG", "textures\\red paint.png", "./Textures/Red%20Paint.PNG",
        '"Textures/Red Paint.PNG"', "Textures//./Red Paint.PNG",
    ],
)  # fmt: skip
def test_siblings_are_found_in_any_spelling(folder: Path, reference: str) -> None:
    companion = Source.from_path(folder / "car.obj").sibling(reference)
    assert companion is not None
    assert companion.read() == b"png"


@pytest.mark.parametrize(
    "reference",
    [
        "../secret.png",
        "link.png",
        "/etc/passwd",
        "..",
        "",
        "http://example.org/secret.png",
        "..\\secret.png",
        "a\0b",
        ".",
    ],
)
def test_files_outside_of_the_folder_are_not_found(folder: Path, reference: str) -> None:
    assert Source.from_path(folder / "car.obj").sibling(reference) is None


def test_an_absolute_name_is_looked_up_by_its_last_component(folder: Path) -> None:
    (folder / "wood.png").write_bytes(b"wood")
    for reference in (r"C:\Users\me\wood.png", "/home/me/wood.png", "../../art/wood.png"):
        companion = Source.from_path(folder / "car.obj").sibling(reference)
        assert companion is not None
        assert companion.read() == b"wood"


def test_only_companions_are_found_if_there_are_any(folder: Path) -> None:
    source = Source.from_bytes(b"v", "models/car.obj", {"art/red.png": b"1", "models/car.mtl": folder / "car.obj"})
    for reference, data in (("car.mtl", b"v"), ("../art/RED.png", b"1"), ("red.png", b"1")):
        companion = source.sibling(reference)
        assert companion is not None
        assert companion.read() == data
    assert source.sibling("blue.png") is None
    assert source.sibling("../../secret.png") is None
    material = source.sibling("car.mtl")
    assert material is not None
    assert material.sibling("../art/red.png") is not None


def test_a_name_has_a_stem_and_an_extension() -> None:
    source = Source.from_bytes(b"", "..\\..\\up/Über Teil.final.STL")
    assert (source.stem, source.extension) == ("Über Teil.final", ".stl")
    assert Source.from_bytes(b"", "noextension").extension == ""


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "c:x", "x\0", "model"])
def test_companions_have_plain_names(name: str) -> None:
    with pytest.raises(ValueError, match="plain file name"):
        Target().companion(name, b"")


def test_a_target_lists_its_files(tmp_path: Path) -> None:
    for target in (Target("m.obj"), Target("m.obj", folder=tmp_path)):
        assert target.size == 0
        with target.open() as file:
            file.write(b"12345")
        target.companion("m.mtl", b"678")
        assert (target.names, target.size) == (("m.obj", "m.mtl"), 5)
        assert (target.read(), target.read("m.mtl")) == (b"12345", b"678")


def test_a_text_in_utf_16_may_end_with_a_zero() -> None:
    source = Source.from_bytes("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n\0".encode("utf-16"), "a.obj")
    assert Registry(entry_points=False).inspect(source).model.faces == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_is_converted_to_utf_8(tmp_path: Path, encoding: str) -> None:
    text = '<?xml version="1.0" encoding="UTF-16"?>\n<amf>Größe' + " " * 40 + "</amf>\n"
    expected = text if encoding == "utf-8-sig" else text.replace(' encoding="UTF-16"', "")
    path = tmp_path / "a.amf"
    path.write_bytes(text.encode(encoding))
    for source in (Source.from_path(path), Source.from_bytes(text.encode(encoding), "a.amf")):
        assert source.read().decode() == expected
        assert expected.startswith(source.head().decode())
        assert source.path is None
        assert source.size == len(text.encode(encoding))
        with source.open() as file:
            assert file.read().decode() == expected


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf\x3f" * 300, b"(\0)\0*\0" * 8 + b"\x3f" * 40])
def test_binary_data_that_look_like_text_can_be_read_unchanged(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    for source in (Source.from_path(path), Source.from_bytes(data, "a.bin")):
        assert source.read() != data
        assert source.read_binary() == data


@pytest.mark.parametrize(
    "data", [b"\xff\xfe" + bytes(200), b"\xff\xfe" + b"\x00\xd8" * 200, b"a\0b\0" * 8 + bytes(100), b"\xff\xd8\xff\xe0"]
)
def test_binary_data_stay_as_they_are(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    source = Source.from_path(path)
    assert (source.read(), source.head(), source.path) == (data, data, path)
