"""Conditions of profiles of PrusaSlicer: `printer_model=="MINI" and nozzle_diameter[0]==0.4`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

_TOKEN = re.compile(r'\s*(=~|!~|==|!=|<=|>=|&&|\|\||[<>!()]|"[^"]*"|/(?:[^/\\]|\\.)*/|-?\d+(?:\.\d+)?|\w+(?:\[\d+\])?)')

_MAX_PATTERN_LENGTH = 200
"""Characters of a regular expression; those of profiles have up to 40."""

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class _Value(NamedTuple):
    """Text of a setting or of a constant."""

    text: str

    @property
    def number(self) -> float:
        """Raises ValueError."""
        return float(self.text)


def holds(condition: str, settings: Mapping[str, str]) -> bool:
    """Return whether a condition is true for settings; an empty one is, and one that cannot be read is not."""
    if not condition.strip():
        return True
    parser = _Parser(condition, settings)
    try:
        result = parser.read_any()
    except (ValueError, IndexError, re.error):
        return False
    return result and not parser.tokens


class _Parser:
    def __init__(self, text: str, settings: Mapping[str, str]) -> None:
        self.settings = settings
        self.tokens = []
        end = 0
        while match := _TOKEN.match(text, end):
            self.tokens.append(match[1])
            end = match.end()
        if text[end:].strip():
            # the rest cannot be read, and makes the condition fail
            self.tokens.append(text[end:])

    def _accept(self, *texts: str) -> bool:
        if self.tokens and self.tokens[0] in texts:
            self.tokens.pop(0)
            return True
        return False

    def read_any(self) -> bool:
        result = self._read_all()
        while self._accept("or", "||"):
            # both sides are read, whatever the first one is
            result |= self._read_all()
        return result

    def _read_all(self) -> bool:
        result = self._read_one()
        while self._accept("and", "&&"):
            result &= self._read_one()
        return result

    def _read_one(self) -> bool:
        if self._accept("!", "not"):
            return not self._read_one()
        if self._accept("("):
            result = self.read_any()
            if not self._accept(")"):
                raise ValueError("a parenthesis is open")
            return result
        left = self._read_value()
        if self.tokens and self.tokens[0] in ("=~", "!~"):
            negated = self.tokens.pop(0) == "!~"
            pattern = self.tokens.pop(0).strip("/")[:_MAX_PATTERN_LENGTH]
            return (re.fullmatch(pattern, left.text, re.DOTALL) is not None) != negated
        if self.tokens and self.tokens[0] in ("==", "!="):
            negated = self.tokens.pop(0) == "!="
            return _equal(left, self._read_value()) != negated
        if self.tokens and self.tokens[0] in _COMPARISONS:
            return _COMPARISONS[self.tokens.pop(0)](left.number, self._read_value().number)
        return left.text not in ("", "0", "false")

    def _read_value(self) -> _Value:
        token = self.tokens.pop(0)
        if token.startswith('"'):
            return _Value(token[1:-1])
        if token[0].isdigit() or token[0] == "-":
            return _Value(token)
        name, _, index = token.partition("[")
        if name == "num_extruders":
            return _Value(str(len(self.settings.get("nozzle_diameter", "").split(","))))
        text = self.settings.get(name, "").strip().strip('"')
        return _Value(text.split(",")[int(index[:-1])] if index else text)


def _equal(left: _Value, right: _Value) -> bool:
    try:
        return left.number == right.number
    except ValueError:
        return left.text == right.text
