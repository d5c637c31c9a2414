"""A ZIP archive as input: its model is converted like a file, with companions; several models need a folder."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from meshhub import Registry
from meshhub.errors import UnreadableFile, UnsafeArchive, UnsupportedFormat
from meshhub.model.source import Target
from test_cli import list_files, meshhub_cli, write_stl

OBJ = """mtllib paint.mtl
v 0 0 0
v 10 0 0
v 0 10 0
v 0 0 10
usemtl red
f 1 3 2
f 1 2 4
f 2 3 4
f 3 1 4
"""
MTL = "newmtl red\nKd 1 0 0\n"
PAINTED = {"deep/model.obj": OBJ, "deep/paint.mtl": MTL, "__MACOSX/deep/._model.obj": "junk", "read me.txt": "by me"}


def pack(path: Path, entries: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def pack_two(folder: Path) -> Path:
    brick = write_stl(folder / "brick.stl").read_bytes()
    return pack(folder / "two.zip", {"a/part.stl": brick, "b/part.stl": brick, "read me.txt": "by me"})


def test_a_zip_with_one_model_is_converted_with_its_companions(tmp_path: Path) -> None:
    pack(tmp_path / "x.zip", PAINTED)
    done = meshhub_cli("convert", "x.zip", "glb", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["source"]["faces"] == 4
    scene = Registry().read(tmp_path / "x.glb")
    assert [material.base_color[:3] for material in scene.materials] == [pytest.approx((1, 0, 0))]


def test_python_converts_a_zip_with_one_model_by_path_and_from_memory(tmp_path: Path) -> None:
    path = pack(tmp_path / "x.zip", PAINTED)
    registry = Registry()
    for source in (path, path.read_bytes()):
        target = Target()
        assert registry.convert(source, target, target="ply").source.format == "obj"
        assert target.size
    assert registry.inspect(path).model.faces == 4


@pytest.mark.parametrize("command", [("inspect", "x.zip"), ("explain", "x.zip", "ply"), ("render", "x.zip", "x.png")])
def test_other_commands_take_a_zip_with_one_model(tmp_path: Path, command: tuple[str, ...]) -> None:
    pack(tmp_path / "x.zip", PAINTED)
    done = meshhub_cli(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    several = pack_two(tmp_path)
    done = meshhub_cli(command[0], several, *command[2:], cwd=tmp_path)
    assert done.returncode == 2
    assert b"'two.zip' holds 2 models ('a/part.stl', 'b/part.stl'); unpack it" in done.stderr


def test_a_zip_with_several_models_needs_a_folder(tmp_path: Path) -> None:
    pack_two(tmp_path)
    done = meshhub_cli("convert", "two.zip", "two.ply", cwd=tmp_path)
    assert done.returncode == 2
    assert b"--output-dir" in done.stderr
    assert b"/convert" not in done.stderr
    pack(tmp_path / "bad.zip", {"evil.stl": "x"}).write_bytes(b"PK\3\4 cut")
    done = meshhub_cli("convert", "two.zip", "bad.zip", "brick.stl", "--to", "ply", "-o", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert b"3 converted, 1 failed" in done.stderr
    assert list_files(tmp_path / "out") == ["a/part.ply", "b/part.ply", "brick.ply"]


def test_python_opens_the_models_of_a_zip(tmp_path: Path) -> None:
    path, registry = pack_two(tmp_path), Registry()
    with pytest.raises(UnsupportedFormat, match=r"holds 2 models .*Registry\.open_models"):
        registry.convert(path, tmp_path / "two.ply")
    with registry.open_models(path) as models:
        assert [registry.inspect(model).model.faces for model in models] == [12, 12]
    with registry.open_models(tmp_path / "brick.stl") as models:
        assert [model.name for model in models] == ["brick.stl"]


def test_an_archive_is_checked_like_an_upload(tmp_path: Path) -> None:
    registry = Registry()
    with pytest.raises(UnsafeArchive):
        registry.inspect(pack(tmp_path / "outside.zip", {"../a.stl": "solid"}))
    with pytest.raises(UnsafeArchive):
        registry.inspect(pack(tmp_path / "bomb.zip", {"a.stl": bytes(50_000_000)}))
    with pytest.raises(UnsupportedFormat, match="holds no model"):
        registry.inspect(pack(tmp_path / "none.zip", {"read me.txt": "by me"}))
    with pytest.raises(UnreadableFile):
        registry.inspect(b"PK\3\4 cut")


def test_an_input_as_its_own_output_names_an_output_that_works(tmp_path: Path) -> None:
    write_stl(tmp_path / "s.stl")
    done = meshhub_cli("convert", "s.stl", "s.stl", "--repair", cwd=tmp_path)
    assert done.returncode == 2
    assert b"give another OUTPUT, such as s-new.stl" in done.stderr
    assert meshhub_cli("convert", "s.stl", "s-new.stl", "--repair", cwd=tmp_path).returncode == 0


def test_a_cut_archive_needs_a_complete_copy(tmp_path: Path) -> None:
    write_stl(tmp_path / "x.stl")
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.write(tmp_path / "x.stl", "x.stl")
    (tmp_path / "cut.zip").write_bytes((tmp_path / "whole.zip").read_bytes()[:-10])
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    for name, remedy in (("cut.zip", b"use a complete copy"), ("empty.zip", b"pack the models into it")):
        done = meshhub_cli("convert", name, "a.ply", cwd=tmp_path)
        assert done.returncode == 3
        assert remedy in done.stderr
