"""Unique names that fit on a line of OBJ or MTL."""

from __future__ import annotations

import re

from meshhub.toolkit.names import single_line

_COMMENT_MARK = re.compile(r"(?:(?<=\s)|^)#(?=\s|$)")


class UniqueNames:
    """Generator of unique names."""

    def __init__(self, fallback: str) -> None:
        """Create a generator; `fallback` replaces empty names."""
        self._fallback = fallback
        self._last_number: dict[str, int] = {}
        self._used: set[str] = set()

    def unique(self, name: str) -> str:
        """Return the name on one line, with a number appended if it is in use."""
        plain = _to_line(name) or self._fallback
        candidate = plain
        while candidate in self._used:
            number = self._last_number.get(plain, 1) + 1
            self._last_number[plain] = number
            candidate = f"{plain}_{number}"
        self._used.add(candidate)
        return candidate


def _to_line(name: str) -> str:
    """Return the name on one line, without comment marks, and without a final backslash, which would join lines."""
    return _COMMENT_MARK.sub("_", single_line(name)).rstrip("\\ ")
