"""Whether the file that a conversion writes has one mesh for all parts; operations read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_merging: ContextVar[bool] = ContextVar("meshhub_merging", default=False)


def merges_parts() -> bool:
    """Return whether programs read all parts of the target as one mesh, welded where they touch.

    False outside of a conversion.
    """
    return _is_merging.get()


@contextmanager
def merging_parts(merges: bool) -> Iterator[None]:
    """Set `merges_parts` for the code that runs inside."""
    token = _is_merging.set(merges)
    try:
        yield
    finally:
        _is_merging.reset(token)
