"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

from x3d_files import BRICK, COMPANIONS, FULL, FULL_VRML, VRML_BRICK

from meshhub import Source
from meshhub.testing import ReaderContract


class TestX3d(ReaderContract):
    format_id = "x3d"
    brick = Source.from_bytes(BRICK, "brick.x3d")
    samples = (Source.from_bytes(FULL, "full.x3d", COMPANIONS),)


class TestVrml(ReaderContract):
    format_id = "vrml"
    brick = Source.from_bytes(VRML_BRICK, "brick.wrl")
    samples = (Source.from_bytes(FULL_VRML, "full.wrl", COMPANIONS),)
