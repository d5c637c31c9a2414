"""The command line, Python and HTTP give the same bytes for the same request."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builtin_formats import MESH_TARGETS
from http_serving import Running
from meshhub.registry import Registry

pytestmark = pytest.mark.once

BRACKET = Path(__file__).parent.parent.parent / "examples" / "bracket.stl"
OPERATIONS: dict[str, str | int | float | bool] = {
    "repair": True,
    "optimize_target_faces": 300,
    "target_height_mm": 40,
    "flatten_base_mm": 1.5,
    "place_on_bed": True,
}

COMMAND_LINE_CODE = """
import json, sys
from meshhub.cli import root
for arguments in json.load(sys.stdin):
    root.main(arguments, "meshhub", standalone_mode=False)
"""
"""Runs several commands in one process."""


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with_built_ins = Registry(entry_points=False)
    yield with_built_ins
    with_built_ins.close()


@pytest.fixture(params=["bracket", "colored"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "bracket":
        return BRACKET
    path = tmp_path / "colored.ply"
    path.write_bytes(build_colored_pyramid())
    return path


def build_colored_pyramid() -> bytes:
    """Return a closed pyramid with vertex colors, as binary PLY."""
    corners = [(0, 0, 0), (30, 0, 0), (30, 20, 0), (0, 20, 0), (12, 9, 25)]
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (7, 130, 200)]
    faces = [(0, 2, 1), (0, 3, 2), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]
    header = (
        "ply\nformat binary_little_endian 1.0\nelement vertex 5\n"
        "property float x\nproperty float y\nproperty float z\n"
        "property uchar red\nproperty uchar green\nproperty uchar blue\n"
        "element face 6\nproperty list uchar int vertex_indices\nend_header\n"
    )
    vertices = b"".join(struct.pack("<3f3B", *corner, *color) for corner, color in zip(corners, colors, strict=True))
    return header.encode() + vertices + b"".join(struct.pack("<B3i", 3, *face) for face in faces)


# operations do not depend on the target
@pytest.mark.parametrize(
    ("options", "targets"), [({}, MESH_TARGETS), (OPERATIONS, ("3mf",))], ids=["plain", "operations"]
)
def test_command_line_python_and_http_give_the_same_bytes(
    service: Running,
    registry: Registry,
    tmp_path: Path,
    model: Path,
    options: dict[str, str | int | float | bool],
    targets: tuple[str, ...],
) -> None:
    flags: list[str] = []
    for name, value in options.items():
        flags += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    commands = [["convert", str(model), str(tmp_path / f"command.{target}"), *flags] for target in targets]
    result = subprocess.run(
        [sys.executable, "-c", COMMAND_LINE_CODE],
        input=json.dumps(commands).encode(),
        capture_output=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert result.returncode == 0, result.stderr.decode()

    fields = {name: "true" if value is True else str(value) for name, value in options.items()}
    for target in targets:
        python_file = tmp_path / f"python.{target}"
        registry.convert(model, python_file, **options)
        answer = service.convert(model.read_bytes(), model.name, target, **fields)
        assert answer.status_code == 200, answer.text
        assert len(answer.content) > 100
        assert answer.content == python_file.read_bytes(), target
        assert (tmp_path / f"command.{target}").read_bytes() == python_file.read_bytes(), target
