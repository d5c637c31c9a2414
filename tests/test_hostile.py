"""Regression tests for hostile files that once caused a crash, a hang or unsafe output."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bombs
from meshhub import ModelTooComplex, Registry, Source, Target, UnreadableFile
from meshhub.cli import root
from meshhub.errors import MAX_MESSAGE_CHARS, MeshhubError
from meshhub.model.notes import collecting, note
from meshhub.toolkit.polygons import MAX_CORNERS, triangulate

TRIANGLE = b"facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 9 0 0\nvertex 0 9 %s\nendloop\nendfacet\n"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(entry_points=False)


def glb(scale: float = 1, *, triangles: int = 1, nodes: int = 1) -> bytes:
    """Return equal triangles of one meter, scaled by each of their nodes."""
    points = np.tile(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4"), (triangles, 1)).tobytes()
    document = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": len(points)}],
        "bufferViews": [{"buffer": 0, "byteLength": len(points)}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3 * triangles, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0, "scale": [scale] * 3}] * nodes,
        "scenes": [{"nodes": list(range(nodes))}],
    }
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(points), 0x004E4942) + points
    return b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body


@pytest.mark.parametrize("mark", ["\x1b[2J", "\x9b2J", "\u202e", "\0", "\r", "\n"])
def test_messages_contain_no_control_characters(mark: str) -> None:
    error = MeshhubError(f"before{mark}after")
    with collecting("step") as remarks:
        note("code", f"before{mark}after")
    assert error.message == str(error)
    for message in (error.message, remarks.notes[0].message):
        assert message.isprintable()
        assert message.startswith("before")
        assert message.endswith("after")


@pytest.mark.parametrize(("name", "data"), [("a.stl", b"solid\n" + TRIANGLE), ("a.ply", b"ply\nformat ascii 1.0\n"
    b"element vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n"
    b"property list uchar int vertex_indices\nend_header\n0 0 0\n9 0 0\n0 9 %s\n3 0 1 2\n")])  # fmt: skip
@pytest.mark.parametrize("word", ["\u202eowned\u202d".encode(), b"z" * 300_000])
def test_messages_truncate_quoted_words(registry: Registry, name: str, data: bytes, word: bytes) -> None:
    with pytest.raises(UnreadableFile) as caught:
        registry.inspect(Source.from_bytes(data % word, name))
    assert caught.value.message.isprintable()
    assert len(caught.value.message) <= MAX_MESSAGE_CHARS


def test_stl_text_with_a_long_line_of_blanks_is_read(registry: Registry) -> None:
    text = b"solid\n" + (TRIANGLE % b"0").replace(b"normal ", b"normal" + b" " * 200_000) + b"endsolid\n"
    assert registry.inspect(Source.from_bytes(text, "a.stl")).model.faces == 1


def test_ply_rows_of_equal_length_with_different_lists_are_read(registry: Registry) -> None:
    header = (
        b"ply\nformat binary_little_endian 1.0\nelement vertex 4\nproperty float x\nproperty float y\n"
        b"property float z\nelement face 2\nproperty list uchar uchar vertex_indices\nproperty uchar red\n"
        b"property uchar green\nproperty uchar blue\nproperty list uchar uchar other\nend_header\n"
    )
    points = np.array([[0, 0, 0], [9, 0, 0], [9, 9, 0], [0, 9, 0]], "<f4").tobytes()
    rows = bytes([3, 0, 1, 2, 255, 0, 0, 1, 7]) + bytes([4, 0, 1, 2, 3, 0, 0, 255, 0])
    target = Target()
    registry.convert(Source.from_bytes(header + points + rows, "a.ply"), target, target="gltf")
    colors = [
        material["pbrMetallicRoughness"]["baseColorFactor"] for material in json.loads(target.read())["materials"]
    ]
    assert sorted(colors) == [[0, 0, 1, 1], [1, 0, 0, 1]]


def test_a_polygon_with_too_many_corners_is_rejected() -> None:
    with pytest.raises(ModelTooComplex, match="corners"):
        triangulate(np.zeros((3, 3)), np.array([MAX_CORNERS + 1]), np.zeros(MAX_CORNERS + 1, np.int64))


@pytest.mark.parametrize("options", [{}, {"repair": True, "flatten_base_mm": 1, "place_on_bed": True}])
def test_an_extreme_placement_is_rejected_as_unreadable(registry: Registry, options: dict[str, Any]) -> None:
    with pytest.raises(UnreadableFile):
        registry.convert(Source.from_bytes(glb(1e12), "a.glb"), Target(), target="stl", **options)


def test_coordinates_that_3mf_readers_reject_are_noted(registry: Registry) -> None:
    report = registry.convert(Source.from_bytes(TRIANGLE % b"2e9", "a.stl"), Target(), target="3mf")
    assert "beyond_readers" in {note.code for note in report.notes}


def test_too_many_instances_are_rejected(registry: Registry) -> None:
    with pytest.raises(ModelTooComplex, match="triangles"):
        registry.inspect(Source.from_bytes(glb(triangles=30_000, nodes=1000), "a.glb"))


def test_empty_3mf_components_count_against_the_limit(registry: Registry) -> None:
    with pytest.raises(ModelTooComplex, match="components"):
        registry.inspect(Source.from_bytes(bombs.nothing_placed(layers=15), "a.3mf"))


def test_printed_file_names_contain_no_control_characters(tmp_path: Path) -> None:
    valid, broken = tmp_path / "a\x1b]0;owned\x07\n\x9b31m.stl", tmp_path / "b\u202e\x1b[2J.stl"
    valid.write_bytes(b"solid\n" + TRIANGLE % b"0" + b"endsolid\n")
    broken.write_bytes(b"nothing")
    paths = [str(valid), str(broken)]
    for arguments in (["inspect", *paths], ["convert", *paths, "--to", "obj", "--output-dir", str(tmp_path / "out")]):
        output = CliRunner().invoke(root, arguments, color=True).output
        for mark in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e"):
            assert mark not in output
        assert "stl" in output
