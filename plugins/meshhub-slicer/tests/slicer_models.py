"""Models and slicers that tests use."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from meshhub import Material, Mesh, Part, Scene

needs_prusa = pytest.mark.skipif(shutil.which("prusa-slicer") is None, reason="PrusaSlicer is not installed")

_CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
_FACES = np.array(
    [
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ]
)  # fmt: skip


def make_box(*sides: float, at: Sequence[float] = (0, 0, 0)) -> Mesh:
    return Mesh(_CORNERS * sides + at, _FACES)


def make_scene(
    *boxes: Mesh, colors: Sequence[tuple[float, float, float, float]] = (), plates: Sequence[int] = ()
) -> Scene:
    parts = tuple(
        Part(number, material=number if colors else None, plate=plates[number] if plates else 0)
        for number in range(len(boxes))
    )
    materials = tuple(Material(name=f"color {number}", base_color=color) for number, color in enumerate(colors))
    return Scene(boxes, parts, materials)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, programs: Mapping[str, str]) -> None:
    """Make a search path with these programs alone, scripts of the shell."""
    folder.mkdir(exist_ok=True)
    for name, script in programs.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))
