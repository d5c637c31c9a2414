"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

from typing import ClassVar

from meshhub import Source
from meshhub.testing import ReaderContract, WriterContract

BRICK = b"""OFF
8 6 12
0 0 0
10 0 0
10 20 0
0 20 0
0 0 30
10 0 30
10 20 30
0 20 30
4 3 2 1 0
4 4 5 6 7
4 0 1 5 4
4 1 2 6 5
4 2 3 7 6
4 3 0 4 7
"""


class TestReader(ReaderContract):
    format_id = "off"
    brick = Source.from_bytes(BRICK, "brick.off")
    samples = (Source.from_bytes(BRICK.replace(b"4 5 6 7\n", b"4 5 6 7 255 0 0\n"), "painted.off"),)


class TestWriter(WriterContract):
    format_id = "off"


class TestWriterOfFractions(WriterContract):
    format_id = "off"
    options: ClassVar = {"off_fractions": True}
