"""One file for each bed, in Python and on the command line."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from meshhub import OutputExists, Registry, UnsupportedTarget
from meshhub.engine.isolated import Isolated
from meshhub.model.scene import Material, Mesh, Scene
from meshhub.model.source import Target, name_bed
from meshhub.toolkit.geometry import bounds
from models import brick, scene_of
from test_cli import list_files, meshhub_cli, write_stl

pytestmark = [pytest.mark.once, pytest.mark.process]

BEDS = {"copies": 3, "arrange_bed": "100x100", "each_bed": True}


@pytest.fixture(params=["in this process", "isolated"])
def registry(request: pytest.FixtureRequest) -> Iterator[Registry]:
    engine = Isolated(workers=1) if request.param == "isolated" else None
    with Registry(entry_points=False, engine=engine) as registry:
        yield registry


def plate() -> Scene:
    """Return a plate that needs most of a bed."""
    return scene_of(brick(70, 60, 5))


@pytest.mark.parametrize("extension", ["3mf", "glb", "obj", "stl"])
def test_each_bed_gets_a_file_with_its_objects_in_the_middle(
    registry: Registry, tmp_path: Path, extension: str
) -> None:
    report = registry.convert(plate(), tmp_path / f"a.{extension}", options=BEDS)
    names = [f"a-bed{number}.{extension}" for number in (1, 2, 3)]
    assert list_files(tmp_path) == names
    for name in names:
        scene = registry.read(tmp_path / name)
        assert len(scene.parts) == 1
        low, high = bounds(scene)
        assert np.allclose(high - low, [70, 60, 5], atol=1e-3)
        assert np.allclose((low + high)[:2], 0, atol=1e-3)
    assert report.target.bytes == sum((tmp_path / name).stat().st_size for name in names)
    assert report.steps[-1].figures["files"] == 3


def test_one_bed_gets_a_number_too(registry: Registry, tmp_path: Path) -> None:
    report = registry.convert(plate(), tmp_path / "a.stl", each_bed=True)
    assert list_files(tmp_path) == ["a-bed1.stl"]
    assert "one_bed" in {note.code for note in report.notes}


def test_beds_share_their_materials(registry: Registry, tmp_path: Path) -> None:
    mesh = brick(70, 60, 5)
    red = Mesh(mesh.vertices, mesh.faces, face_material=np.zeros(len(mesh.faces), np.int32))
    scene = Scene((red,), scene_of(red).parts, (Material(base_color=(1, 0, 0, 1)),))
    registry.convert(scene, tmp_path / "a.obj", options=BEDS)
    assert len(list(tmp_path.glob("*.mtl"))) == 1
    assert all(len(registry.read(path).materials) == 1 for path in tmp_path.glob("*.obj"))


def test_no_bed_replaces_a_file_unasked(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "a-bed2.stl").write_text("mine")
    with pytest.raises(OutputExists, match=r"a-bed2\.stl"):
        registry.convert(plate(), tmp_path / "a.stl", overwrite=False, options=BEDS)
    with pytest.raises(OutputExists, match=r"a-bed2\.stl is not a result of meshhub"):
        registry.convert(plate(), tmp_path / "a.stl", options=BEDS)
    assert list_files(tmp_path) == ["a-bed2.stl"]
    for overwrite in (True, None):
        registry.convert(plate(), tmp_path / "a.stl", overwrite=overwrite, options=BEDS)
    assert len(registry.read(tmp_path / "a-bed2.stl").parts) == 1


def test_outputs_that_hold_one_file_are_rejected(registry: Registry) -> None:
    with pytest.raises(UnsupportedTarget, match="3 beds"):
        registry.convert(plate(), io.BytesIO(), target="stl", options=BEDS)


def test_a_target_in_memory_has_all_beds(registry: Registry) -> None:
    target = Target("a-bed1.stl")
    registry.convert(plate(), target, target="stl", options=BEDS)
    assert [file.name for file in target.files] == ["a-bed1.stl", "a-bed2.stl", "a-bed3.stl"]
    assert all(len(registry.read(file.read(), input_format="stl").parts) == 1 for file in target.files)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.stl", "a-bed2.stl"), ("a-bed1.stl", "a-bed2.stl"), ("a.gcode.3mf", "a-bed2.gcode.3mf"), (".stl", ".stl-bed2")],
)
def test_names_of_beds(name: str, expected: str) -> None:
    assert name_bed(name, 2) == expected


def test_the_command_writes_and_skips_the_files_of_beds(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl", (70, 60, 5))
    write_stl(tmp_path / "b.stl", (60, 70, 5))
    command = ("convert", "--combine", "a.stl", "b.stl", "bed.3mf", "--arrange-bed", "100x100", "--each-bed")
    done = meshhub_cli(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"bed-bed1.3mf" in done.stdout + done.stderr
    assert list_files(tmp_path) == ["a.stl", "b.stl", "bed-bed1.3mf", "bed-bed2.3mf"]
    assert meshhub_cli(*command, cwd=tmp_path).returncode != 0
    assert b"skipped" in meshhub_cli(*command, "--skip-existing", cwd=tmp_path).stderr
    assert meshhub_cli(*command, "--force", cwd=tmp_path).returncode == 0
    # one older than its input
    os.utime(tmp_path / "bed-bed2.3mf", (0, 0))
    assert b"skipped" not in meshhub_cli(*command, "--skip-existing", cwd=tmp_path).stderr
    assert (tmp_path / "bed-bed2.3mf").stat().st_mtime > 0
    # one that is missing before the last
    (tmp_path / "bed-bed1.3mf").unlink()
    assert b"skipped" not in meshhub_cli(*command, "--skip-existing", cwd=tmp_path).stderr
    assert (tmp_path / "bed-bed1.3mf").is_file()


def test_the_command_writes_the_beds_of_many_models(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_stl(tmp_path / f"{name}.stl", (70, 60, 5))
    flags = ("--to", "ply", "--copies", "2", "--arrange-bed", "100x100", "--each-bed")
    done = meshhub_cli("convert", "a.stl", "b.stl", "out/", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list_files(tmp_path / "out") == ["a-bed1.ply", "a-bed2.ply", "b-bed1.ply", "b-bed2.ply"]
    again = meshhub_cli("convert", "a.stl", "b.stl", "out/", *flags, "--skip-existing", cwd=tmp_path)
    assert b"2 skipped" in again.stdout + again.stderr


def test_the_command_rejects_outputs_that_hold_one_file(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl")
    for rest in (("-", "--to", "stl"), ("a.3mf", "--server", "http://127.0.0.1:9")):
        done = meshhub_cli("convert", "a.stl", *rest, "--each-bed", cwd=tmp_path)
        assert done.returncode == 2
        assert b"--each-bed" in done.stderr
