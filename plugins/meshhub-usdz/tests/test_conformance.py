"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

from usda_files import usda

from meshhub import Source
from meshhub.testing import ReaderContract, WriterContract


class TestReader(ReaderContract):
    format_id = "usdz"
    brick = Source.from_bytes(usda(), "brick.usda")
    may_crash = True


class TestWriter(WriterContract):
    format_id = "usdz"
