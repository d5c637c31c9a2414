"""Watching code for what plug-ins must not do: warn, print, leave files."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn


def require(true: object, message: str) -> None:
    """Fail with a message, under `python -O` too."""
    if not true:
        raise AssertionError(message)


DEADLINE_S = 30.0
"""Seconds by the clock for one call into a plug-in; a conversion of a service has 90."""


@contextlib.contextmanager
def bounded(what: str) -> Iterator[None]:
    """Fail when the code inside ends this process, or takes more than DEADLINE_S.

    Native code is not interrupted: `elsewhere.try_elsewhere` comes first.
    """
    # not needed, and slow to import, in the processes that `elsewhere` starts
    import pytest

    process, ended, timed = os.getpid(), os._exit, hasattr(signal, "setitimer") and _is_main_thread()

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:
            ended(status)
        pytest.fail(f"{what} ends the process: os._exit({status})")

    def interrupt(*_: object) -> NoReturn:
        pytest.fail(f"{what} takes more than {DEADLINE_S:g} s")

    handler = signal.signal(signal.SIGALRM, interrupt) if timed else None
    before = signal.setitimer(signal.ITIMER_REAL, DEADLINE_S) if timed else (0.0, 0.0)
    os._exit = refuse
    try:
        yield
    except SystemExit as error:
        pytest.fail(f"{what} ends the process: sys.exit({error.code})")
    finally:
        os._exit = ended
        if timed:
            signal.setitimer(signal.ITIMER_REAL, *before)
            signal.signal(signal.SIGALRM, handler)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def watched(what: str) -> Iterator[None]:
    """Fail when the code inside warns, prints, or leaves a file in the working folder or among temporary files."""
    before, temporary, said = Path.cwd(), tempfile.tempdir, io.StringIO()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        os.chdir(folder)
        tempfile.tempdir = folder
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                yield
        finally:
            os.chdir(before)
            tempfile.tempdir = temporary
        left = sorted(path.name for path in Path(folder).iterdir())
    require(not warned, f"{what} warns: {', '.join(sorted({str(one.message) for one in warned}))}")
    require(not said.getvalue(), f"{what} prints {said.getvalue()[:200]!r}")
    require(not left, f"{what} leaves files behind: {', '.join(left)}")
