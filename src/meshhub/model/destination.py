"""Facts about the file that a conversion writes; readers and operations use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Destination(NamedTuple):
    """File that a conversion writes.

    merges_parts: whether programs read all parts as one mesh, welded where they touch
    max_colors:   maximum number of colors that the programs print; None: unlimited
    """

    merges_parts: bool = False
    max_colors: int | None = None


_UNKNOWN = Destination()

_current: ContextVar[Destination] = ContextVar("meshhub_destination", default=_UNKNOWN)


def get_destination() -> Destination:
    """Return the facts about the file that the conversion writes; the defaults outside of a conversion."""
    return _current.get()


@contextmanager
def converting_to(destination: Destination) -> Iterator[None]:
    """Set `get_destination` for the code that runs inside."""
    token = _current.set(destination)
    try:
        yield
    finally:
        _current.reset(token)
