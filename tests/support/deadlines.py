"""Conversions that end at their deadline, also on a loaded machine."""

from __future__ import annotations

from collections.abc import Callable

TIMEOUTS_S = (1, 10, 100)
"""Seconds of the attempts: on a loaded machine, the first step may begin only after the first of them."""


def time_out(convert: Callable[[int], str]) -> str:
    """Return the message of a conversion without an end that was stopped after its first step had begun.

    Args:
        convert: Runs the conversion with a timeout in seconds; returns the message of its error.
    """
    message = ""
    for timeout_s in TIMEOUTS_S:
        message = convert(timeout_s)
        if "did not begin" not in message:
            break
    return message
