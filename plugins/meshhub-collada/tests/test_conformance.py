"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

from dae_files import dae

from meshhub import Source
from meshhub.testing import ReaderContract, WriterContract


class TestReader(ReaderContract):
    format_id = "dae"
    brick = Source.from_bytes(dae(), "brick.dae")


class TestWriter(WriterContract):
    format_id = "dae"
