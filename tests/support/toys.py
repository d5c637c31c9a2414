"""Test format whose reader does what a word in the file selects, and whose writer prints the scene."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from meshhub import (
    Format,
    Frame,
    Magic,
    Operation,
    Reader,
    Scene,
    Source,
    Stage,
    Target,
    Writer,
    advance,
    hookimpl,
    note,
    track,
)
from meshhub.engine.limits import Limits
from meshhub.engine.worker import serve
from meshhub.model.deadline import seconds_left
from meshhub.model.scene import Mesh, Part
from models import brick, scene_of

TOY = Format(id="toy", label="Toy", extensions=(".toy",), media_types=("model/x-toy",), magic=(Magic(b"toy!"),))


class ToyReaderOptions(Struct, frozen=True, kw_only=True):
    toy_size: Annotated[float, Meta(title="Size", description="Edge of the cube.", gt=0, le=1e6)] = 10.0


class CarefulOptions(Struct, frozen=True, kw_only=True):
    toy_careful: Annotated[bool, Meta(title="Careful", description="Do not crash.")] = False


class ToyWriterOptions(Struct, frozen=True, kw_only=True):
    toy_style: Annotated[Literal["plain", "fancy", "slow"], Meta(title="Style")] = "plain"


class OtherOptions(Struct, frozen=True, kw_only=True):
    oth_named: Annotated[bool, Meta(title="Named")] = False


class SpinOptions(Struct, frozen=True, kw_only=True):
    spin_degrees: Annotated[int, Meta(title="Angle", description="About Z.", ge=0, le=360)] | None = None


@hookimpl
def meshhub_readers() -> list[Reader]:
    return [
        Reader(
            format=TOY,
            run="toys:read",
            options=ToyReaderOptions,
            carries=frozenset({"names", "colors"}),
            frame=Frame("cm", "y"),
        )
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    return [Writer(format=TOY, run="toys:write", options=ToyWriterOptions, frame=Frame("m", "y"))]


@hookimpl
def meshhub_operations() -> list[Operation]:
    return [
        Operation(
            id="spin",
            label="Spin",
            run="toys:spin",
            stage=Stage.PLACE,
            options=SpinOptions,
            drops=frozenset({"colors"}),
        )
    ]


def hang(_: list[str]) -> None:
    while True:
        ctypes.PyDLL(None).sleep(1)  # holds the interpreter's lock


def sleep(words: list[str]) -> None:
    time.sleep(float(words[0]))


def overrun(_: list[str]) -> None:
    """Return after the deadline, or at once without one."""
    while (seconds := seconds_left()) is not None and seconds > 0:
        time.sleep(0.01)


def wait_for_file(words: list[str]) -> None:
    while not Path(words[0]).exists():
        time.sleep(0.01)


def crash_late(_: list[str]) -> None:
    time.sleep(1)  # the parent measures its memory meanwhile
    ctypes.string_at(0)


def report_progress(words: list[str]) -> None:
    """Report the fractions that the words state, with a pause after each, longer than the interval of reports."""
    for word in words:
        advance(float(word))
        time.sleep(0.15)


def report_often(_: list[str]) -> None:
    for _ in track(range(2000)):
        time.sleep(0.0005)


def report_nested(_: list[str]) -> None:
    for _ in track(["small", "large"], [1, 3]):
        report_progress(["0.5", "1"])


def raise_error(_: list[str]) -> None:
    raise KeyError("a secret path")


ACTIONS: dict[str, Callable[[list[str]], object]] = {
    "hang": hang,
    "sleep": sleep,
    "overrun": overrun,
    "wait": wait_for_file,
    "crash": lambda _: ctypes.string_at(0),
    "crash-late": crash_late,
    "time-left": lambda _: note("time_left", str(seconds_left())),
    "exit": lambda _: os._exit(3),
    "progress": report_progress,
    "often": report_often,
    "nested": report_nested,
    "raise": raise_error,
    "quit": lambda _: sys.exit(1),
    "note": lambda _: note("toy_noted", "a toy was read"),
}
"""Actions of the reader before it returns a brick, by word in the file."""

SCENES: dict[str, Callable[[], Scene]] = {
    "memory": lambda: scene_of(Mesh(np.zeros((10**12, 3)), np.zeros((1, 3)))),
    "nan": lambda: scene_of(Mesh(np.full((3, 3), np.nan), np.array([[0, 1, 2]]))),
    "range": lambda: scene_of(Mesh(np.eye(3), np.array([[0, 1, 3]]))),
    "empty": lambda: scene_of(Mesh(np.eye(3), np.empty((0, 3)))),
    "none": lambda: None,  # type: ignore[dict-item,return-value]
}
"""Scenes that the reader returns instead of a brick, by word in the file."""


def read(source: Source, options: ToyReaderOptions) -> Scene:
    """Do what the word after `toy!` selects, and return a scene."""
    word, *words = source.read().decode().split()[1:] or ["cube"]
    if word in ACTIONS:
        ACTIONS[word](words)
    if word in SCENES:
        return SCENES[word]()
    size = options.toy_size
    mesh = brick(size, 2 * size, 3 * size)
    if word == "colors":
        mesh = Mesh(mesh.vertices, mesh.faces, colors=np.full((8, 4), 255))
    return Scene((mesh,), (Part(0, name="toy"),), frame=Frame("cm", "y"))


def read_carefully(source: Source, options: CarefulOptions) -> Scene:
    """Read as `read` does; if careful, without what the word selects unless it is "crash-always"."""
    word = source.read().decode().split()[1]
    note("toy_read", f"careful: {options.toy_careful}")
    if word == "crash-always" or not options.toy_careful:
        ctypes.string_at(0)
    return read(Source.from_bytes(b"toy!", "a.toy"), ToyReaderOptions())


def write(scene: Scene, target: Target, options: ToyWriterOptions) -> None:
    if options.toy_style == "slow":
        time.sleep(0.3)
    low = min(mesh.vertices[:, axis].min() for mesh in scene.meshes for axis in (2,))
    corner = np.max([mesh.vertices.max(axis=0) for mesh in scene.meshes], axis=0)
    with target.open() as file:
        file.write(
            f"{options.toy_style} {scene.frame.unit} {scene.frame.up} {low:g} {np.round(corner, 9).tolist()}".encode()
        )


def spin(scene: Scene, options: SpinOptions) -> Scene:
    assert options.spin_degrees is not None
    return replace(scene, meshes=tuple(replace(mesh, colors=None) for mesh in scene.meshes))


def serve_after_mapping(connection: Connection, limits: Limits, mark: int) -> None:
    """Serve as a worker that maps a gigabyte before its limits apply."""
    mapping = mmap.mmap(-1, 1 << 30)
    serve(connection, limits, mark)
    mapping.close()
