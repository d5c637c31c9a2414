"""Small files that would cost much are refused in little time and under 100 MB, by every door."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bombs
from meshhub import Isolated, MeshhubError, Registry, Source, Target
from meshhub.errors import InvalidOption, MissingDependency, UnsupportedFormat
from meshhub.model.source import HEAD_BYTES
from meshhub.pipeline.identify import identify
from meshhub.toolkit.archive import UPLOAD_LIMITS, Archive

pytestmark = pytest.mark.once

SECONDS = 10.0
"""Of processor time, which a busy machine stretches. `benchmarks/bomb_costs.py` holds every file to one."""
MEGABYTES = 100.0
Measure = Callable[[str, str, Path], tuple[str, float, float]]


@pytest.fixture(scope="module")
def measured() -> Iterator[Measure]:
    """Converts a file in a process of its own: how it ended, processor seconds, megabytes."""
    here = Path(__file__).parent / "support"
    child = subprocess.Popen(
        [sys.executable, str(here / "bomb_measurements.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(here)},
    )
    assert child.stdin is not None
    assert child.stdout is not None

    def measure(door: str, name: str, path: Path) -> tuple[str, float, float]:
        child.stdin.write(json.dumps([door, name, str(path)]) + "\n")
        child.stdin.flush()
        said, seconds, megabytes = json.loads(child.stdout.readline())
        return said, seconds, megabytes

    with child:
        yield measure
        child.stdin.close()


@pytest.mark.parametrize("what", bombs.MODELS)
def test_by_the_library(what: str, measured: Measure, tmp_path: Path) -> None:
    bomb = bombs.MODELS[what]
    path = tmp_path / bomb.name
    path.write_bytes(bomb.make())
    code, seconds, megabytes = measured("library", bomb.name, path)
    assert code in (bomb.codes or ("",))
    assert seconds < SECONDS
    assert megabytes < MEGABYTES


@pytest.mark.parametrize("name", bombs.pictures_named_again())
def test_a_picture_named_hundreds_of_times_is_held_once(name: str, tmp_path: Path) -> None:
    model, materials = bombs.pictures_named_again()[name]
    (tmp_path / name).write_bytes(model)
    (tmp_path / "m.mtl").write_bytes(materials)
    (tmp_path / "a.png").write_bytes(bombs.PNG + bytes(1_000_000))
    target = Target()
    Registry(entry_points=False).convert(Source.from_path(tmp_path / name), target, to="glb")
    assert 1_000_000 < target.size < 2_000_000


@pytest.mark.parametrize("named", ["missing", "there"])
def test_thousands_of_pictures_are_looked_for_in_time(named: str) -> None:
    registry = Registry(entry_points=False)
    registry.convert(Source.from_bytes(bombs.gltf(), "a.gltf"), Target(), to="stl")
    companions = {f"there{number}.png": bombs.PNG for number in range(2000)}
    model = bombs.pictured([f"{named}{number}.png" for number in range(4000)])
    started = time.process_time()
    registry.convert(Source.from_bytes(model, "a.gltf", companions), Target(), to="stl")
    assert time.process_time() - started < SECONDS


def test_numbers_of_a_hundred_thousand_digits() -> None:
    """Of a material, and of an option."""
    registry = Registry(entry_points=False)
    digits = b"1" * 100_000 + b"x"
    library = {"m.mtl": b"newmtl m\nKd " + digits + b"\nmap_Kd -o " + digits + b" a.png\n"}
    model = b"mtllib m.mtl\nusemtl m\n" + bombs.POINTS + b"f 1 2 3\n"
    started = time.process_time()
    registry.convert(Source.from_bytes(model, "a.obj", library), Target(), to="stl")
    with pytest.raises(InvalidOption):
        registry.convert(Source.from_bytes(model, "a.obj"), Target(), to="stl", target_height_mm=digits.decode())
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("head", bombs.HEADS)
def test_telling_the_format_is_cheap(head: bytes) -> None:
    """It is done for every file, also for what turns out to be none."""
    registry = Registry(entry_points=False)
    registry.convert(Source.from_bytes(bombs.TRIANGLE, "a"), Target(), to="stl")
    started = time.process_time()
    with contextlib.suppress(UnsupportedFormat, MissingDependency):
        identify(registry.declarations, Source.from_bytes((head * (HEAD_BYTES // len(head) + 1))[:HEAD_BYTES], "a"))
    assert time.process_time() - started < SECONDS / 10


@pytest.mark.parametrize("what", bombs.ARCHIVES)
def test_by_the_reader_of_archives(what: str, tmp_path: Path) -> None:
    """Nothing of a bomb is written, and nothing beside the folder."""
    path = tmp_path / "a.zip"
    path.write_bytes(bombs.ARCHIVES[what].make())
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(MeshhubError) as refused, Archive(path, UPLOAD_LIMITS) as archive:
        for number, entry in enumerate(archive.entries):
            archive.extract(entry.name, inside / str(number))
    assert refused.value.code in bombs.ARCHIVES[what].codes
    assert sorted(os.listdir(tmp_path)) == ["a.zip", "inside"]
    assert sum(one.stat().st_size for one in inside.iterdir()) == 0


def test_the_overlapping_archive_is_a_true_bomb(tmp_path: Path) -> None:
    """A reader that trusts it unpacks it, to thousands of times its size."""
    (tmp_path / "a.zip").write_bytes(bombs.overlapping(files=20, kernel=1 << 20))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        # newer versions of the library refuse all but the last entry
        last = archive.namelist()[-1]
        assert len(archive.read(last)) == 1 << 20
        total = sum(info.file_size for info in archive.infolist())
    assert total > 2000 * (tmp_path / "a.zip").stat().st_size


def test_by_the_command_line(measured: Measure, tmp_path: Path) -> None:
    """A batch, start-up included; a sound file among them is converted."""
    (tmp_path / "sound.stl").write_bytes(bombs.TRIANGLE)
    names = {}
    for number, (what, bomb) in enumerate(list(bombs.MODELS.items())[::3]):
        name = f"{number:03}{Path(bomb.name).suffix}"
        (tmp_path / name).write_bytes(bomb.make())
        names[name] = what
    said, seconds, _ = measured("program", "", tmp_path)
    found = {Path(one["file"]).name: one.get("error_code", "") for one in json.loads(said)}
    assert found.pop("sound.stl") == ""
    assert found.keys() == names.keys()
    wrong = {
        names[name]: code for name, code in found.items() if code not in (bombs.MODELS[names[name]].codes or ("",))
    }
    assert not wrong
    assert seconds < SECONDS * len(names)


@pytest.mark.parametrize("what", bombs.STEP)
def test_step_is_stopped_at_its_deadline(what: str, stepping: Registry) -> None:
    with pytest.raises(MeshhubError) as refused:
        stepping.convert(Source.from_bytes(bombs.STEP[what], "a.step"), Target(), to="stl", timeout=5)
    codes = ("unreadable_file", "empty_model", "model_too_complex", "worker_crashed", "conversion_timeout")
    assert refused.value.code in codes


@pytest.fixture(scope="module")
def stepping() -> Iterator[Any]:
    """A process for every conversion."""
    pytest.importorskip("OCP", reason="STEP needs the extra step")
    with contextlib.closing(Isolated(workers=1)) as engine:
        yield Registry(entry_points=False, engine=engine)
