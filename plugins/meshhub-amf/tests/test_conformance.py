"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

from typing import ClassVar

from amf_files import GROUPS, amf

from meshhub import Source
from meshhub.testing import ReaderContract, WriterContract


class TestReader(ReaderContract):
    format_id = "amf"
    brick = Source.from_bytes(amf(), "brick.amf")
    samples = (Source.from_bytes(amf(after=GROUPS), "groups.amf"),)


class TestWriter(WriterContract):
    format_id = "amf"


class TestWriterOfArchives(WriterContract):
    format_id = "amf"
    options: ClassVar = {"amf_compress": True}


class TestWriterOfRotations(WriterContract):
    format_id = "amf"
    options: ClassVar = {"amf_rotations": True}
