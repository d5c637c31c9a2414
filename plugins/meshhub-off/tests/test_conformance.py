"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

from typing import ClassVar

from off_files import BRICK

from meshhub import Source
from meshhub.testing import ReaderContract, WriterContract


class TestReader(ReaderContract):
    format_id = "off"
    brick = Source.from_bytes(BRICK, "brick.off")
    samples = (Source.from_bytes(BRICK.replace(b"4 5 6 7\n", b"4 5 6 7 255 0 0\n"), "painted.off"),)


class TestWriter(WriterContract):
    format_id = "off"


class TestWriterOfFractions(WriterContract):
    format_id = "off"
    options: ClassVar = {"off_fractions": True}
