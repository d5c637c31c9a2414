"""Small files that are costly to read end with little processor time and under 100 MB in every interface."""

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
"""Processor seconds per file, for a loaded machine. `benchmarks/bomb_costs.py` limits each file to 1 s."""
MEGABYTES = 100.0
Measure = Callable[[str, str, Path], tuple[str, float, float]]


@pytest.fixture(scope="module")
def measure_conversion() -> Iterator[Measure]:
    """Yield a function that converts a file in another process: error code or output, processor seconds, megabytes."""
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

    def measure(interface: str, name: str, path: Path) -> tuple[str, float, float]:
        child.stdin.write(json.dumps([interface, name, str(path)]) + "\n")
        child.stdin.flush()
        output, seconds, megabytes = json.loads(child.stdout.readline())
        return output, seconds, megabytes

    with child:
        yield measure
        child.stdin.close()


@pytest.mark.parametrize("what", bombs.MODELS)
def test_a_costly_model_is_read_cheaply(what: str, measure_conversion: Measure, tmp_path: Path) -> None:
    bomb = bombs.MODELS[what]
    path = tmp_path / bomb.name
    path.write_bytes(bomb.make())
    code, seconds, megabytes = measure_conversion("library", bomb.name, path)
    assert code in (bomb.codes or ("",))
    assert seconds < SECONDS
    assert megabytes < MEGABYTES


@pytest.mark.parametrize("name", bombs.pictures_named_again())
def test_an_image_with_many_references_is_embedded_once(name: str, tmp_path: Path) -> None:
    model, materials = bombs.pictures_named_again()[name]
    (tmp_path / name).write_bytes(model)
    (tmp_path / "m.mtl").write_bytes(materials)
    (tmp_path / "a.png").write_bytes(bombs.PNG + bytes(1_000_000))
    target = Target()
    Registry(entry_points=False).convert(Source.from_path(tmp_path / name), target, target="glb")
    assert 1_000_000 < target.size < 2_000_000


@pytest.mark.parametrize("named", ["missing", "there"])
def test_thousands_of_image_references_are_resolved_quickly(named: str) -> None:
    registry = Registry(entry_points=False)
    registry.convert(Source.from_bytes(bombs.gltf(), "a.gltf"), Target(), target="stl")
    companions = {f"there{number}.png": bombs.PNG for number in range(2000)}
    model = bombs.gltf_with_images([f"{named}{number}.png" for number in range(4000)])
    started = time.process_time()
    registry.convert(Source.from_bytes(model, "a.gltf", companions), Target(), target="stl")
    assert time.process_time() - started < SECONDS


def test_numbers_with_a_hundred_thousand_digits_are_parsed_quickly() -> None:
    """The numbers are in a material and in an option."""
    registry = Registry(entry_points=False)
    digits = b"1" * 100_000 + b"x"
    library = {"m.mtl": b"newmtl m\nKd " + digits + b"\nmap_Kd -o " + digits + b" a.png\n"}
    model = b"mtllib m.mtl\nusemtl m\n" + bombs.POINTS + b"f 1 2 3\n"
    started = time.process_time()
    registry.convert(Source.from_bytes(model, "a.obj", library), Target(), target="stl")
    with pytest.raises(InvalidOption):
        registry.convert(Source.from_bytes(model, "a.obj"), Target(), target="stl", target_height_mm=digits.decode())
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("head", bombs.HEADS)
def test_format_detection_is_cheap(head: bytes) -> None:
    """Detection runs for every file, also for those that are not models."""
    registry = Registry(entry_points=False)
    registry.convert(Source.from_bytes(bombs.TRIANGLE, "a"), Target(), target="stl")
    started = time.process_time()
    with contextlib.suppress(UnsupportedFormat, MissingDependency):
        identify(registry.declarations, Source.from_bytes((head * (HEAD_BYTES // len(head) + 1))[:HEAD_BYTES], "a"))
    assert time.process_time() - started < SECONDS / 10


@pytest.mark.parametrize("what", bombs.ARCHIVES)
def test_a_costly_archive_is_rejected_before_extraction(what: str, tmp_path: Path) -> None:
    """No bytes are written, neither in the folder nor beside it."""
    path = tmp_path / "a.zip"
    path.write_bytes(bombs.ARCHIVES[what].make())
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(MeshhubError) as refused, Archive(path, UPLOAD_LIMITS) as archive:
        for number, entry in enumerate(archive.entries):
            archive.extract(entry.name, inside / str(number))
    assert refused.value.error_code in bombs.ARCHIVES[what].codes
    assert sorted(os.listdir(tmp_path)) == ["a.zip", "inside"]
    assert sum(file.stat().st_size for file in inside.iterdir()) == 0


def test_the_overlapping_archive_expands_in_other_readers(tmp_path: Path) -> None:
    """A reader without checks expands it to thousands of times its size."""
    (tmp_path / "a.zip").write_bytes(bombs.overlapping(files=20, kernel=1 << 20))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        # newer versions of the library refuse all but the last entry
        last = archive.namelist()[-1]
        assert len(archive.read(last)) == 1 << 20
        total = sum(info.file_size for info in archive.infolist())
    assert total > 2000 * (tmp_path / "a.zip").stat().st_size


def test_costly_models_in_a_batch_are_read_cheaply(measure_conversion: Measure, tmp_path: Path) -> None:
    """The time includes the start of the program; a valid file in the batch is converted."""
    (tmp_path / "valid.stl").write_bytes(bombs.TRIANGLE)
    names = {}
    for number, (what, bomb) in enumerate(list(bombs.MODELS.items())[::3]):
        name = f"{number:03}{Path(bomb.name).suffix}"
        (tmp_path / name).write_bytes(bomb.make())
        names[name] = what
    output, seconds, _ = measure_conversion("program", "", tmp_path)
    error_codes = {Path(entry["file"]).name: entry.get("error_code", "") for entry in json.loads(output)}
    assert error_codes.pop("valid.stl") == ""
    assert error_codes.keys() == names.keys()
    wrong = {
        names[name]: code
        for name, code in error_codes.items()
        if code not in (bombs.MODELS[names[name]].codes or ("",))
    }
    assert not wrong
    assert seconds < SECONDS * len(names)


@pytest.mark.parametrize("what", bombs.STEP)
def test_costly_step_files_end_by_their_deadline(what: str, isolated_registry: Registry) -> None:
    with pytest.raises(MeshhubError) as refused:
        isolated_registry.convert(Source.from_bytes(bombs.STEP[what], "a.step"), Target(), target="stl", timeout=2)
    codes = ("unreadable_file", "empty_model", "model_too_complex", "worker_crashed", "conversion_timeout")
    assert refused.value.error_code in codes


@pytest.fixture(scope="module")
def isolated_registry() -> Iterator[Any]:
    """Yield a registry that runs each conversion in its own process."""
    pytest.importorskip("OCP", reason="STEP needs the extra step")
    with contextlib.closing(Isolated(workers=1)) as engine:
        yield Registry(entry_points=False, engine=engine)
