"""Wait for conditions, not for seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

MAX_WAIT_S = 300.0
"""Seconds; on a machine with ten times more to do than it can, a conversion with a new process takes a minute."""


def wait_until(condition: Callable[[], T | None], seconds: float = MAX_WAIT_S) -> T:
    """Wait until a condition returns something true, and return that; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
    return result
