"""Notes: their number is limited, losses are exact, and a full disk is named."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pytest

from meshhub import Registry
from meshhub.builtin_plugins.stl import StlWriterOptions
from meshhub.builtin_plugins.stl.writer import write
from meshhub.errors import ConversionFailed
from meshhub.model.notes import MAX_NOTES_PER_CODE, collecting, note
from meshhub.model.source import Source, Target
from models import brick, move_mesh, scene_of

PAINTED = b"""ply
format ascii 1.0
element vertex 4
property float x
property float y
property float z
element face 2
property list uchar int vertex_indices
property uchar red
property uchar green
property uchar blue
end_header
0 0 0
10 0 0
0 10 0
0 0 10
3 0 1 2 255 0 0
3 0 3 1 0 255 0
"""


class Full(Target):
    """Target on a full disk."""

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        raise OSError(errno.ENOSPC, "No space left on device")
        yield


def test_equal_notes_appear_once_and_similar_ones_are_counted() -> None:
    with collecting("step") as remarks:
        for number in range(MAX_NOTES_PER_CODE + 1500):
            note("sheet", f"part {number} is a sheet")
            note("sheet", "part 0 is a sheet")
            note("other", "always the same")
    sheets = [note.message for note in remarks.notes if note.code == "sheet"]
    assert sheets == [
        *(f"part {number} is a sheet" for number in range(MAX_NOTES_PER_CODE)),
        "and 1,500 more of this kind",
    ]
    assert [note.message for note in remarks.notes if note.code == "other"] == ["always the same"]


def test_a_full_disk_is_reported_as_such() -> None:
    with pytest.raises(ConversionFailed, match="out of disk space") as caught:
        Registry().convert(Source.from_bytes(PAINTED, "a.ply"), Full(), target="ply")
    assert caught.value.error_code == "server_busy"


@pytest.mark.parametrize(("target", "colors"), [("ply", False), ("stl", True)])
def test_the_loss_of_colors_is_noted_only_if_colors_are_lost(target: str, colors: bool) -> None:
    report = Registry().convert(Source.from_bytes(PAINTED, "a.ply"), Target(), target=target)
    (lost,) = [note.message for note in report.notes if note.code == "materials_dropped"]
    assert ("colors" in lost) is colors


@pytest.mark.parametrize(("distance", "is_noted"), [(0.0, False), (1e3, False), (2.0**20, False), (1e8 + 0.3, True)])
def test_an_stl_far_from_the_origin_is_noted(distance: float, is_noted: bool) -> None:
    scene = scene_of(move_mesh(brick(10, 20, 30), distance, 0, 0))
    with collecting("stl") as remarks:
        write(scene, Target(), StlWriterOptions())
    assert ("far_from_origin" in [remark.code for remark in remarks.notes]) is is_noted
