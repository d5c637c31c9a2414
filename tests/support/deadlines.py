"""Conversions that end at their deadline, also on a loaded machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TIMEOUTS_S = (1.0, 10.0, 100.0)
"""Seconds of the attempts: on a loaded machine, the first step may begin only after the first of them."""


def time_out(convert: Callable[[float], str], timeouts_s: Sequence[float] = TIMEOUTS_S) -> str:
    """Return the message of a conversion without an end that was stopped after its first step had begun.

    Args:
        convert: Runs the conversion with a timeout in seconds; returns the message of its error.
        timeouts_s: Seconds of the attempts.
    """
    message = ""
    for timeout_s in timeouts_s:
        message = convert(timeout_s)
        if "did not begin" not in message:
            break
    return message
