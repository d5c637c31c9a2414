"""Dispositions of signals in child processes."""

from __future__ import annotations

import signal


def reset_interrupts() -> None:
    """Restore the default action of SIGINT and SIGHUP; pass this as `preexec_fn` of a child that gets one of them.

    A shell starts background commands with SIGINT ignored, and `nohup` ignores SIGHUP. Children inherit both.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
