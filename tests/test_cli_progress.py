"""The bar of a long conversion on a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import time
import typing
from collections.abc import Iterator

import pytest
from msgspec import structs

from meshhub import Progress
from meshhub.cli.progress import show_progress
from meshhub.model.report import StepKind

pty = pytest.importorskip("pty", reason="pseudo-terminals need POSIX")

pytestmark = pytest.mark.once

LIMIT_S = 60
"""Seconds until a bar must be visible; it appears after one."""


class Terminal:
    """Pseudo-terminal in place of standard error."""

    def __init__(self) -> None:
        self._reader, writer = pty.openpty()
        self.stream = io.TextIOWrapper(os.fdopen(writer, "wb", buffering=0), write_through=True)
        self.text = ""

    def close(self) -> None:
        self.stream.close()
        os.close(self._reader)

    def wait_for(self, text: str) -> None:
        """Read what is drawn until the text appears in it."""
        deadline = time.monotonic() + LIMIT_S
        while text not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self._reader], [], [], 0.1)[0]:
                drawn = os.read(self._reader, 1 << 16).decode(errors="replace")
                self.text += re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", drawn)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    yield terminal
    terminal.close()


def test_the_bar_shows_the_step_and_its_share(terminal: Terminal) -> None:
    with contextlib.redirect_stderr(terminal.stream), show_progress(is_silent=False) as listener:
        assert listener is not None
        listener(Progress(step="stl", kind="read", label="STL", index=0, count=3, fraction=0.25))
        terminal.wait_for("reading STL (1 of 3)")
        terminal.wait_for("25%")
        repair = Progress(step="repair", kind="operation", label="Repair", index=1, count=3)
        listener(repair)
        terminal.wait_for("Repair (2 of 3)")
        listener(structs.replace(repair, fraction=0.5))
        terminal.wait_for("50%")


@pytest.mark.parametrize("kind", typing.get_args(StepKind))
def test_the_bar_has_words_for_each_kind_of_step(terminal: Terminal, kind: StepKind) -> None:
    with contextlib.redirect_stderr(terminal.stream), show_progress(is_silent=False) as listener:
        assert listener is not None
        listener(Progress(step="walls", kind=kind, label="Walls", index=0, count=2))
        terminal.wait_for("Walls (1 of 2)")


def test_no_bar_without_a_terminal_or_if_silent(terminal: Terminal) -> None:
    for stream, is_silent in ((terminal.stream, True), (io.StringIO(), False)):
        with contextlib.redirect_stderr(stream), show_progress(is_silent=is_silent) as listener:
            assert listener is None
