"""JSON objects with typed access; errors name the JSON path of a wrong value."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from meshhub.errors import UnreadableFile

_MAX_INTEGER = 2**53
"""Largest integer that JSON readers with 64-bit floats keep exactly."""


class JsonObject:
    """A JSON object of the document, with its JSON path ("accessors[3]").

    Every getter raises UnreadableFile, which names the path, if the value has the wrong type.
    """

    __slots__ = ("data", "path")

    def __init__(self, data: dict[str, Any], path: str) -> None:
        self.data = data
        self.path = path

    def path_of(self, key: str) -> str:
        """Return the JSON path of a member."""
        return f"{self.path}.{key}" if self.path else key

    def reject(self, key: str, problem: str) -> NoReturn:
        """Raise UnreadableFile about a member."""
        raise UnreadableFile(f"{self.path_of(key)} {problem}; the glTF file is damaged, export it again")

    def has(self, key: str) -> bool:
        """Return whether the member exists."""
        return key in self.data

    def integer(self, key: str, default: int | None = None, *, minimum: int = 0) -> int:
        """Return an integer; `3.0` is read as 3, since some exporters write it."""
        value = self.data.get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.reject(key, "is missing" if value is None else "must be an integer")
        if not minimum <= value <= _MAX_INTEGER:
            self.reject(key, f"must be an integer from {minimum}")
        return value

    def integer_or_none(self, key: str) -> int | None:
        """Return a non-negative integer, or None if the member is missing."""
        return self.integer(key) if self.data.get(key) is not None else None

    def number(self, key: str, default: float) -> float:
        """Return a finite number."""
        value = self.data.get(key, default)
        if not _is_finite_number(value):
            self.reject(key, "must be a finite number")
        return float(value)

    def numbers(self, key: str, count: int, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return `count` finite numbers."""
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, list) or len(value) != count or not all(map(_is_finite_number, value)):
            self.reject(key, f"must be a list of {count} finite numbers")
        return tuple(map(float, value))

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a boolean."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            self.reject(key, "must be true or false")
        return value

    def name(self, key: str = "name") -> str:
        """Return a display name; "" for a value that is not a string, because names never affect geometry."""
        value = self.data.get(key, "")
        return value.replace("\0", "") if isinstance(value, str) else ""

    def text(self, key: str, default: str = "") -> str:
        """Return a string."""
        value = self.data.get(key, default)
        if not isinstance(value, str):
            self.reject(key, "must be a string")
        return value

    def child(self, key: str) -> JsonObject | None:
        """Return a member that is an object, or None if it is missing."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.reject(key, "must be an object")
        return JsonObject(value, self.path_of(key))

    def child_or_empty(self, key: str) -> JsonObject:
        """Return a member that is an object; an empty object if it is missing."""
        return self.child(key) or JsonObject({}, self.path_of(key))

    def extension(self, name: str) -> JsonObject | None:
        """Return the object of an extension, or None."""
        extensions = self.child("extensions")
        return None if extensions is None else extensions.child(name)

    def values(self, key: str) -> list[Any]:
        """Return a member that is a list; an empty list if it is missing."""
        value = self.data.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.reject(key, "must be a list")
        return value

    def entry(self, key: str, index: int, referrer: str = "") -> JsonObject:
        """Return an object of a list.

        Args:
            referrer: JSON path of the value that holds the index, for the error message.
        """
        values = self.values(key)
        if not 0 <= index < len(values):
            raise UnreadableFile(
                f"{referrer or self.path_of(key)} names {key}[{index}], but the file has {len(values)} {key}; "
                "the glTF file is damaged, export it again"
            )
        if not isinstance(values[index], dict):
            self.reject(f"{key}[{index}]", "must be an object")
        return JsonObject(values[index], self.path_of(f"{key}[{index}]"))

    def entries(self, key: str) -> list[JsonObject]:
        """Return all objects of a list."""
        return [self.entry(key, index) for index in range(len(self.values(key)))]

    def indices(self, key: str) -> list[int]:
        """Return a list of non-negative integers."""
        values = self.values(key)
        if any(isinstance(value, bool) or not isinstance(value, int) or value < 0 for value in values):
            self.reject(key, "must be a list of integers from 0")
        return values

    def texts(self, key: str) -> list[str]:
        """Return a list of strings."""
        values = self.values(key)
        if not all(isinstance(value, str) for value in values):
            self.reject(key, "must be a list of strings")
        return values


def _is_finite_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
