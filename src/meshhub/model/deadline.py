"""Deadline of the running conversion, for steps that can bound their own work.

An engine stops every conversion at its deadline. A step that checks its result or tries several methods can read the
remaining time here. Outside a conversion, no deadline is set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline: ContextVar[float | None] = ContextVar("meshhub_deadline", default=None)


def seconds_left() -> float | None:
    """Return the seconds until the deadline, at least 0; None without a deadline."""
    deadline = _deadline.get()
    return None if deadline is None else max(0.0, deadline - time.monotonic())


@contextmanager
def bounded_by(deadline: float | None) -> Iterator[None]:
    """Set the deadline of the code inside, in seconds of the monotonic clock."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)
