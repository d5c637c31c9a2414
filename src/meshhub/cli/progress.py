"""Status line on a terminal while a command converts."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator

from meshhub.cli.texts import tr
from meshhub.errors import printable
from meshhub.model.progress import Listener, Progress

_DELAY_S = 1.0
"""Seconds until the line appears; most conversions have ended by then, and a line that only flashes would disturb."""

_INTERVAL_S = 0.2
"""Seconds between two updates of the line."""

_VERBS = {
    "read": "reading {}",
    "operation": "{}",
    "check": "checking: {}",
    "write": "writing {}",
    "preview": "reducing {}",
    "render": "drawing {}",
    "inspect": "inspecting",
}


class StatusLine:
    """Last line of the terminal on standard error, with the seconds since the first text. A thread draws it.

    Args:
        delay_s: Seconds from the first text to the first drawing.
    """

    def __init__(self, delay_s: float = 0.0) -> None:
        self._delay_s = delay_s
        self._text = ""
        self._start_s = 0.0
        self._drawn_width = 0
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def show(self, text: str) -> None:
        """Show a text from the next update on."""
        self._text = text
        if not self._start_s and not self._has_ended.is_set():
            self._start_s = time.monotonic()
            self._thread.start()

    def close(self) -> None:
        """Erase the line, and draw none later."""
        self._has_ended.set()
        if self._start_s:
            self._thread.join()

    def _draw(self) -> None:
        wait_s = self._delay_s
        while not self._has_ended.wait(wait_s):
            minutes, seconds = divmod(int(time.monotonic() - self._start_s), 60)
            self._print(f"{self._text} {minutes}:{seconds:02}")
            wait_s = _INTERVAL_S
        if self._drawn_width:
            self._print("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _print(self, text: str) -> None:
        """Replace the line. Spaces erase the rest of the last one, because not every terminal has escape sequences."""
        text = text[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r" + text.ljust(self._drawn_width))
        sys.stderr.flush()
        self._drawn_width = len(text)


def has_terminal() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def show_progress(*, is_silent: bool) -> Iterator[Listener | None]:
    """Yield a callback that shows the running step after a second; None without a terminal.

    The first call follows the fork of the worker, and the last call precedes the fork for the listeners of plug-ins, so
    neither happens while the thread of the line runs.
    """
    if is_silent or not has_terminal():
        yield None
        return
    line = StatusLine(_DELAY_S)

    def listen(progress: Progress) -> None:
        verb = printable(tr(_VERBS[progress.kind]).format(progress.label))
        share = "" if progress.fraction is None else f" {progress.fraction:.0%}"
        line.show(f"{verb} ({tr('{} of {}').format(progress.index + 1, progress.count)}){share}")
        if progress.index == progress.count - 1 and progress.fraction == 1:
            line.close()

    try:
        yield listen
    finally:
        line.close()


@contextlib.contextmanager
def show_count(total: int, *, is_silent: bool) -> Iterator[Callable[[str], None]]:
    """Yield a callback that counts a file by its name; it shows nothing without a terminal."""
    if is_silent or not has_terminal():
        yield lambda _: None
        return
    line = StatusLine()
    count = 0

    def advance(name: str) -> None:
        nonlocal count
        count += 1
        line.show(f"{tr('{} of {}').format(count, total)} ({count / total:.0%}): {printable(name)}")

    line.show(tr("{} of {}").format(0, total))
    try:
        yield advance
    finally:
        line.close()
