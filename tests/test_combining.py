"""Several files become one scene, in Python and on the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meshhub import MeshhubError, Registry, Source, UnreadableFile
from meshhub.model.scene import Image, Material, Part, Scene
from meshhub.toolkit.assembling import combined
from meshhub.toolkit.geometry import bounds, soup
from models import brick, move_mesh, scene_of, sphere, volume
from test_cli import meshhub_cli

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)


@pytest.fixture
def registry() -> Registry:
    return Registry(entry_points=False)


@pytest.fixture
def files(registry: Registry, tmp_path: Path) -> list[Path]:
    """Return two bricks and a ball in three formats, the last in meters."""
    paths = [tmp_path / "brick.stl", tmp_path / "ball.glb", tmp_path / "sub" / "brick.obj"]
    paths[2].parent.mkdir()
    for path, mesh in zip(paths, (brick(), sphere(), move_mesh(brick(), 50, 0, 0)), strict=True):
        registry.convert(scene_of(replace(mesh, name="")), path)
    return paths


def test_each_file_becomes_an_object_in_its_place(registry: Registry, files: list[Path]) -> None:
    scene = registry.read(files)
    assert [part.name for part in scene.parts] == ["brick", "ball", "brick-2"]
    low, high = bounds(scene)
    assert low == pytest.approx([-10, -10, -10], abs=1e-4) and high == pytest.approx([60, 20, 30], abs=1e-4)
    assert volume(*soup(scene)) == pytest.approx(12000 + volume(*soup(scene_of(sphere()))), rel=1e-6)


def test_the_report_counts_all_files(registry: Registry, files: list[Path], tmp_path: Path) -> None:
    report = registry.convert(files, tmp_path / "all.3mf")
    assert report.source.bytes == sum(path.stat().st_size for path in files)
    assert report.source.parts == report.target.parts == 3
    assert [step.kind for step in report.steps] == ["read", "read", "read", "write"]


def test_operations_work_on_all_files(registry: Registry, files: list[Path]) -> None:
    scene = registry.read(files, arrange_bed="100x100", target_height_mm=15)
    assert np.ptp(bounds(scene), axis=0)[2] == pytest.approx(11.25)
    assert bounds(scene)[0, 2] == pytest.approx(0, abs=1e-6)


def test_one_file_in_a_list_is_that_file(registry: Registry, files: list[Path]) -> None:
    assert registry.convert_bytes([files[0]], "stl") == registry.convert_bytes(files[0], "stl")


def test_materials_and_images_stay_with_their_parts() -> None:
    def textured(color: float, name: str) -> Scene:
        uv = np.zeros((8, 2), np.float32)
        mesh = replace(brick(), uv=uv, face_material=np.array([0] * 6 + [-1] * 6))
        materials = (Material(name, base_color_image=0), Material("plain", (color, 0, 0, 1)))
        return Scene((mesh,), (Part(0, material=1),), materials, (Image(PNG, "image/png", name),))

    scene = combined([textured(0.2, "a"), textured(0.7, "b")], ["a", "b"])
    for part, color, name in zip(scene.parts, (0.2, 0.7), "ab", strict=True):
        assert part.material is not None
        assert scene.materials[part.material].base_color[0] == color
        faces = scene.meshes[part.mesh].face_material
        assert faces is not None and faces.min() == -1
        image = scene.materials[int(faces.max())].base_color_image
        assert image is not None and scene.images[image].name == name


def test_a_file_of_several_objects_becomes_a_group() -> None:
    scene = combined([scene_of(brick(name="x"), brick(name="y")), scene_of(brick(name=""))], ["plate", "single"])
    assert [(part.name, part.path) for part in scene.parts] == [("x", ("plate",)), ("y", ("plate",)), ("single", ())]


def test_metadata_that_differ_are_left_out() -> None:
    first = replace(scene_of(brick()), metadata={"Title": "a", "Designer": "me"})
    assert combined([first, replace(first, metadata={"Title": "b", "Designer": "me"})], ["a", "b"]).metadata == {
        "Designer": "me"
    }


def test_an_error_names_its_file(registry: Registry, files: list[Path]) -> None:
    with pytest.raises(UnreadableFile, match=r"broken\.stl"):
        registry.convert_bytes([files[0], Source.from_bytes(b"solid x\nfacet normal 0 0 x\n", "broken.stl")], "3mf")
    with pytest.raises(ValueError, match="at least one file"):
        registry.convert_bytes([], "stl")
    with pytest.raises(MeshhubError):
        registry.convert_bytes([files[0], b"not a model"], "stl")


def test_the_command_line_combines_files(files: list[Path], tmp_path: Path) -> None:
    output = tmp_path / "all.3mf"
    result = meshhub_cli("convert", "--combine", *map(str, files), str(output), "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["target"]["parts"] == 3
    again = meshhub_cli("convert", "--combine", *map(str, files), str(output))
    assert again.returncode == 6
    assert meshhub_cli("convert", "--combine", *map(str, files), "--output", str(output), "-f").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{brick}"], "several INPUTs and an OUTPUT"),
        (["{brick}", "{brick}", "{folder}"], "is a folder"),
        (["{brick}", "{brick}"], "is the input itself"),
        (["{brick}", "{ball}", "{brick}", "-f"], "is the input itself"),
        (["-", "-", "x.stl"], "once only"),
        (["{brick}", "{ball}", "--to", "stl", "--output-dir", "{folder}"], "--combine writes one OUTPUT"),
    ],
)
def test_wrong_commands_say_what_is_wrong(
    arguments: list[str], message: str, files: list[Path], tmp_path: Path
) -> None:
    places = {"brick": files[0], "ball": files[1], "folder": tmp_path}
    before = [path.read_bytes() for path in files]
    result = meshhub_cli("convert", "--combine", *(text.format(**places) for text in arguments))
    assert result.returncode == 2
    assert message in result.stderr.decode()
    assert [path.read_bytes() for path in files] == before
