"""Names that a line of OBJ or MTL can hold, each once."""

from __future__ import annotations

import re

from meshhub.toolkit.names import single_line

_HASH = re.compile(r"(?:(?<=\s)|^)#(?=\s|$)")


class Names:
    """Gives out names, each once."""

    def __init__(self, otherwise: str) -> None:
        """`otherwise` is what things without a name are called, with a number."""
        self._otherwise = otherwise
        self._next: dict[str, int] = {}
        self._taken: set[str] = set()

    def unique(self, name: str) -> str:
        """The name on one line, with a number behind it when it is taken."""
        plain = _one_line(name) or self._otherwise
        made = plain
        while made in self._taken:
            number = self._next.get(plain, 1) + 1
            self._next[plain] = number
            made = f"{plain}_{number}"
        self._taken.add(made)
        return made


def _one_line(name: str) -> str:
    """Without line ends, without what would begin a remark, and without a backslash that would join the next line."""
    return _HASH.sub("_", single_line(name)).rstrip("\\ ")
