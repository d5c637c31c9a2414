"""Progress bar for one long conversion."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from meshhub.errors import printable
from meshhub.model.progress import Listener, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_DELAY_S = 1.0
"""Seconds until the bar appears; most conversions have ended by then, and a bar that only flashes would disturb."""

_VERBS = {
    "read": "reading {}",
    "operation": "{}",
    "check": "checking: {}",
    "write": "writing {}",
    "preview": "reducing {}",
    "render": "drawing {}",
    "inspect": "inspecting",
}


@contextlib.contextmanager
def show_progress(*, is_silent: bool) -> Iterator[Listener | None]:
    """Yield a callback that shows a bar on standard error after a second; None without a terminal."""
    if is_silent or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    display = _Display()
    try:
        yield display
    finally:
        display.close()


class _Display:
    """Bar for the running step. It appears with a delay, even while a step reports no progress."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._bar: Bar | None = None
        self._progress: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Show the progress.

        The first call follows the fork of the worker, and the last call precedes the fork for the listeners of
        plug-ins, so neither happens while the threads of the bar run.
        """
        with self._lock:
            self._progress = progress
            self._update()
            if self._timer is None:
                self._timer = threading.Timer(_DELAY_S, self._start)
                self._timer.daemon = True
                self._timer.start()
        if progress.index == progress.count - 1 and progress.fraction == 1:
            self.close()

    def close(self) -> None:
        """Remove the bar, and show none later."""
        with self._lock:
            timer, bar = self._timer, self._bar
            self._progress = self._bar = None
        if timer is not None:
            timer.cancel()
        if bar is not None:
            bar.stop()

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with self._lock:
            if self._progress is None:
                return
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task("", total=None)
            self._update()
            self._bar.start()

    def _update(self) -> None:
        """Pass the latest progress on to the bar."""
        if self._bar is None or self._progress is None:
            return
        from rich.markup import escape

        progress, task = self._progress, self._bar.task_ids[0]
        text = printable(_VERBS[progress.kind].format(progress.label))
        text = f"{escape(text)} ({progress.index + 1} of {progress.count})"
        if progress.fraction is None:
            # a total of None shows a moving bar, which `update` cannot set
            self._bar.reset(task, total=None, description=text)
        else:
            self._bar.update(task, total=1.0, completed=progress.fraction, description=text)
