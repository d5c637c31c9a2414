"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

from prints import BRICK, SQUARE, make_binary, make_package

from meshhub import Source
from meshhub.testing import ReaderContract


class TestGcode(ReaderContract):
    format_id = "gcode"
    brick = Source.from_bytes(BRICK, "brick.gcode")
    samples = (Source.from_bytes(SQUARE, "square.gcode"),)


class TestBinary(ReaderContract):
    format_id = "bgcode"
    brick = Source.from_bytes(make_binary(BRICK), "brick.bgcode")
    samples = (Source.from_bytes(make_binary(SQUARE), "square.bgcode"),)


class TestPackage(ReaderContract):
    format_id = "gcode-3mf"
    brick = Source.from_bytes(make_package(BRICK), "brick.gcode.3mf")
    samples = (Source.from_bytes(make_package(SQUARE), "square.gcode.3mf"),)
