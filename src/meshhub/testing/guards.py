"""Guards around calls into plug-ins: a deadline, and no warnings, output or files left behind."""

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

DEADLINE_S = 30.0
"""Wall-clock seconds for one call into a plug-in on a free machine; a service allows 90 for a whole conversion."""


def deadline_s() -> float:
    """Return the limit for a call into a plug-in, wall-clock seconds; higher while other programs use the machine."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return DEADLINE_S * max(1.0, load / (os.cpu_count() or 1))


def require(condition: object, message: str) -> None:
    """Raise AssertionError with the message if the condition is false; also works under `python -O`."""
    if not condition:
        raise AssertionError(message)


@contextlib.contextmanager
def fail_on_exit_or_timeout(caller: str) -> Iterator[None]:
    """Fail the test if the body ends this process or takes longer than `deadline_s`.

    The signal does not interrupt native code, so `child_process.try_in_child` runs first.

    Args:
        caller: Subject of the failure message, for example "a plug-in".
    """
    # imported here, because the child processes import this module, do not need pytest, and would start more slowly
    import pytest

    process, exit_process, has_timer = os.getpid(), os._exit, hasattr(signal, "setitimer") and _is_main_thread()

    def fail_on_exit(status: int) -> NoReturn:
        if os.getpid() != process:
            exit_process(status)
        pytest.fail(f"{caller} ends the process: os._exit({status})")

    def fail_on_timeout(*_: object) -> NoReturn:
        pytest.fail(f"{caller} takes more than {DEADLINE_S:g} s")

    handler = signal.signal(signal.SIGALRM, fail_on_timeout) if has_timer else None
    timer = signal.setitimer(signal.ITIMER_REAL, deadline_s()) if has_timer else (0.0, 0.0)
    os._exit = fail_on_exit
    try:
        yield
    except SystemExit as error:
        pytest.fail(f"{caller} ends the process: sys.exit({error.code})")
    finally:
        os._exit = exit_process
        if has_timer:
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.signal(signal.SIGALRM, handler)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def forbid_side_effects(caller: str) -> Iterator[None]:
    """Raise AssertionError if the body warns, prints, or leaves a file in the working or the temporary folder.

    Args:
        caller: Subject of the failure message, for example "the reader".
    """
    working_folder, temporary_folder, output = Path.cwd(), tempfile.tempdir, io.StringIO()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # the import of a compiled library, by whichever call is the first to need it
        warnings.filterwarnings("ignore", ".* size changed, may indicate binary incompatibility", RuntimeWarning)
        os.chdir(folder)
        tempfile.tempdir = folder
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                yield
        finally:
            os.chdir(working_folder)
            tempfile.tempdir = temporary_folder
        leftovers = sorted(path.name for path in Path(folder).iterdir())
    require(not caught, f"{caller} warns: {', '.join(sorted({str(warning.message) for warning in caught}))}")
    require(not output.getvalue(), f"{caller} prints {output.getvalue()[:200]!r}")
    require(not leftovers, f"{caller} leaves files behind: {', '.join(leftovers)}")
