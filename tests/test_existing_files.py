"""Existing files: results that a run replaces, and inputs and files of other programs, which stay."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from meshhub import InProcess, OutputExists, Registry, Request, Source, Target, hookimpl
from meshhub.engine.contract import Task
from models import brick, scene_of
from test_cli import write_stl
from test_cli_files import write_red_obj

pytestmark = pytest.mark.once

registry = Registry(entry_points=False)

WRITES: dict[str, Callable[..., Any]] = {
    "convert": registry.convert,
    "convert_async": lambda *args, **keywords: asyncio.run(registry.convert_async(*args, **keywords)),
    "combine": lambda source, target, **keywords: registry.convert([source, source], target, **keywords),
    "write": lambda source, target, **keywords: registry.write(registry.read(source), target, **keywords),
    "render": lambda source, target, **keywords: registry.render(source, target.with_suffix(".png"), **keywords),
    "check": lambda source, target, **keywords: registry.check(source, marked=target, checks="mesh", **keywords),
    "target": lambda source, target, **keywords: registry.convert(
        source, Target(target.name, folder=target.parent), target="3mf", **keywords
    ),
    "run": lambda source, target, **keywords: registry.run(
        registry.resolve(Request(target="3mf"), Source.from_path(source)),
        Source.from_path(source),
        Target(target.name, folder=target.parent),
        **keywords,
    ),
}


@pytest.mark.parametrize("way", WRITES)
def test_a_result_is_replaced_and_a_file_of_another_program_is_not(tmp_path: Path, way: str) -> None:
    source, target = write_stl(tmp_path / "a.stl"), tmp_path / "b.3mf"
    WRITES[way](source, target)
    (result,) = (path for path in tmp_path.iterdir() if path != source)
    WRITES[way](source, target)
    with pytest.raises(OutputExists, match="already exists"):
        WRITES[way](source, target, overwrite=False)
    result.write_bytes(b"mine")
    with pytest.raises(OutputExists, match="not a result of meshhub; name another file, or pass overwrite=True"):
        WRITES[way](source, target)
    assert result.read_bytes() == b"mine"
    WRITES[way](source, target, overwrite=True)
    assert result.read_bytes() != b"mine"
    result.write_bytes(b"")
    WRITES[way](source, target)
    assert result.stat().st_size


@pytest.mark.parametrize("target", ["stl", "obj", "ply", "glb", "gltf", "3mf"])
def test_the_results_of_every_format_are_recognized(tmp_path: Path, target: str) -> None:
    path = tmp_path / f"b.{target}"
    for size in (1, 2):
        registry.write(scene_of(brick(size, size, size)), path)
    assert registry.inspect(path).model.size_mm == pytest.approx((2, 2, 2))


@pytest.mark.parametrize(
    "text",
    ["# Blender File: '/home/me/meshhub/part.blend'", "mtllib meshhub.mtl", r"# C:\meshhub\part.max", "#meshhub-1.mtl"],
)
def test_a_file_name_does_not_make_a_result(tmp_path: Path, text: str) -> None:
    path = write_red_obj(tmp_path / "in")
    path.write_text(f"{text}\n{path.read_text()}")
    with pytest.raises(OutputExists):
        registry.convert(write_stl(tmp_path / "a.stl"), path)


@pytest.mark.parametrize("overwrite", [None, True])
def test_an_input_stays_under_each_of_its_names(tmp_path: Path, overwrite: bool | None) -> None:
    source = write_stl(tmp_path / "a.stl")
    before = source.read_bytes()
    os.link(source, tmp_path / "hard.stl")
    (tmp_path / "link.stl").symlink_to("a.stl")
    (tmp_path / "folder").symlink_to(".")
    others = [tmp_path / name for name in ("hard.stl", "link.stl", "folder/a.stl")]
    inputs: list[Any] = [str(source), source, Source.from_path(source), [write_stl(tmp_path / "b.stl"), source]]
    for output in (source, *others):
        for value in (*inputs, *others):
            with pytest.raises(OutputExists, match="is an input"):
                registry.convert(value, output, repair=True, overwrite=overwrite)
    for value in inputs:
        with source.open("r+b") as file, pytest.raises(OutputExists, match="is an input"):
            registry.convert(value, file, target="stl", overwrite=overwrite)
    with source.open("rb") as opened, pytest.raises(OutputExists, match="is an input"):
        registry.convert(opened, source, overwrite=overwrite)
    assert source.read_bytes() == before


def test_companions_of_an_input_stay(tmp_path: Path) -> None:
    source = write_red_obj(tmp_path)
    registry.render(source, tmp_path / "paint.png")
    (tmp_path / "m.mtl").write_text("newmtl red\nKd 1 0 0\nmap_Kd paint.png\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(OutputExists, match="input or its companion"):
        registry.render(source, tmp_path / "paint.png", overwrite=True)
    with pytest.raises(OutputExists, match="input or its companion"):
        registry.convert(source, tmp_path / "m.mtl", target="stl", overwrite=True)
    named = Source.from_bytes(source.read_bytes(), "m.obj", {"m.mtl": tmp_path / "m.mtl"})
    with pytest.raises(OutputExists, match="input or its companion"):
        registry.convert(named, tmp_path / "m.mtl", target="stl", overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


class Failing(InProcess):
    """Engine that fails after the output has begun."""

    def run(self, task: Task, *_: Any, **__: Any) -> Any:
        with task.target.open() as file:
            file.write(b"half")
        raise OSError("the disk is gone")


def test_a_failed_run_changes_no_file(tmp_path: Path) -> None:
    source = write_stl(tmp_path / "a.stl")
    registry.convert(source, tmp_path / "b.stl")
    before = (tmp_path / "b.stl").read_bytes()
    for target in (tmp_path / "b.stl", Target("b.stl", folder=tmp_path)):
        with pytest.raises(OSError, match="the disk is gone"):
            Registry(entry_points=False, engine=Failing()).convert(source, target, target="stl", overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a.stl": source.read_bytes(),
        "b.stl": before,
    }


def test_a_file_that_another_program_writes_meanwhile_stays(tmp_path: Path) -> None:
    target = tmp_path / "b.stl"

    class Meanwhile:
        @hookimpl
        def meshhub_finished(self, report: Any) -> None:
            target.write_bytes(b"mine")

    own = Registry(plugins=[Meanwhile()], entry_points=False)
    with pytest.raises(OutputExists):
        own.convert(write_stl(tmp_path / "a.stl"), target)
    assert target.read_bytes() == b"mine"
