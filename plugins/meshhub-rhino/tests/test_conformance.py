"""Contracts of meshhub, run against the installed plug-in."""

from __future__ import annotations

from meshhub.testing import ReaderContract, WriterContract


class TestReader(ReaderContract):
    format_id = "3dm"
    # openNURBS is native code
    may_crash = True


class TestWriter(WriterContract):
    format_id = "3dm"
