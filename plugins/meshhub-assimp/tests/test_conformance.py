"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

from bricks import FILES
from fbx_files import GROUPED, PAINTED, TWICE, fbx

from meshhub import Source
from meshhub.testing import ReaderContract, WriterContract, sample_scenes


class TestFbx(ReaderContract):
    format_id = "fbx"
    brick = Source.from_bytes(fbx(), "brick.fbx")
    samples = (
        Source.from_bytes(PAINTED, "painted.fbx"),
        Source.from_bytes(TWICE, "twice.fbx"),
        Source.from_bytes(GROUPED, "grouped.fbx"),
    )
    may_crash = True


class Test3ds(ReaderContract):
    format_id = "3ds"
    brick = Source.from_bytes(FILES["3ds"], "brick.3ds", {"paint.png": sample_scenes.png()})
    may_crash = True


class TestFbxWriter(WriterContract):
    format_id = "fbx"
