"""Whether checks look for remedies: not in a trial of one, whose findings need none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_wanted: ContextVar[bool] = ContextVar("meshhub_remedies_wanted", default=True)


def are_remedies_wanted() -> bool:
    """Return whether a check should search for remedies that take long to find."""
    return _wanted.get()


@contextmanager
def without_remedies() -> Iterator[None]:
    """Let the checks of the `with` block search for no remedies."""
    token = _wanted.set(False)
    try:
        yield
    finally:
        _wanted.reset(token)
