"""The `meshhub` program, also as `python -m meshhub`."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends the program without a traceback."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # imports leave hardly any garbage; the command line enables the collection before it runs a command
    gc.disable()
    from meshhub.cli import main as run

    signal.signal(signal.SIGINT, handler)
    try:
        run()
    except SystemExit as end:
        _end(end)
        raise


def _end(end: SystemExit) -> None:
    """End the program as Python does, but without freeing its objects, which takes a tenth of a short command.

    Return if Python itself must end the program: its output cannot be written, or a profiler waits for its end.
    """
    if not isinstance(end.code, int | None) or sys.getprofile() is not None or sys.gettrace() is not None:
        return
    # Ctrl-C while threads end
    with contextlib.suppress(KeyboardInterrupt):
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return
    os._exit(end.code or 0)


if __name__ == "__main__":
    main()
