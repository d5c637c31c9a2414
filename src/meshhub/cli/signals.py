"""Signals that end a command."""

from __future__ import annotations

import signal
from types import FrameType

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells report SIGINT."""

SIGNALED = 128
"""Offset that shells add to the number of the signal that ended a program."""


class Ended(KeyboardInterrupt):
    """A signal that ends the command; like Ctrl-C, it removes unfinished files."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def end_on(*names: str) -> None:
    """Raise Ended at the named signals, which end a program by default."""
    for name in names:
        number = getattr(signal, name, None)
        # a handler that the parent set stays, for example that of nohup
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _: FrameType | None) -> None:
    raise Ended(number)
