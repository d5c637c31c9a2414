"""JSON values that know where they stand, so that a wrong one is told by its place."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from meshhub.errors import UnreadableFile

LARGEST_INTEGER = 2**53


class Item:
    """A JSON object of the document, and its place ("accessors[3]").

    Every getter raises UnreadableFile, naming the place, for a value of the wrong type.
    """

    __slots__ = ("data", "where")

    def __init__(self, data: dict[str, Any], where: str) -> None:
        self.data = data
        self.where = where

    def place(self, key: str) -> str:
        """The place of a member."""
        return f"{self.where}.{key}" if self.where else key

    def refuse(self, key: str, what: str) -> NoReturn:
        """Raise UnreadableFile about a member."""
        raise UnreadableFile(f"{self.place(key)} {what}; the glTF file is damaged, export it again")

    def has(self, key: str) -> bool:
        """Whether there is such a member."""
        return key in self.data

    def integer(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """A whole number; `3.0` passes for 3, as some exporters write it."""
        value = self.data.get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(key, "is missing" if value is None else "must be a whole number")
        if not least <= value <= LARGEST_INTEGER:
            self.refuse(key, f"must be a whole number from {least}")
        return value

    def optional(self, key: str) -> int | None:
        """A whole number from 0, or None where there is none."""
        return self.integer(key) if self.data.get(key) is not None else None

    def number(self, key: str, default: float) -> float:
        """A finite number."""
        value = self.data.get(key, default)
        if not _is_number(value):
            self.refuse(key, "must be a finite number")
        return float(value)

    def numbers(self, key: str, count: int, default: tuple[float, ...]) -> tuple[float, ...]:
        """So many finite numbers."""
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, list) or len(value) != count or not all(map(_is_number, value)):
            self.refuse(key, f"must be a list of {count} finite numbers")
        return tuple(map(float, value))

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            self.refuse(key, "must be true or false")
        return value

    def name(self, key: str = "name") -> str:
        """A name for people; what is no text is no name."""
        value = self.data.get(key, "")
        return value.replace("\0", "") if isinstance(value, str) else ""

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        value = self.data.get(key, default)
        if not isinstance(value, str):
            self.refuse(key, "must be a text")
        return value

    def item(self, key: str) -> Item | None:
        """A member that is an object, or None where there is none."""
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.refuse(key, "must be an object")
        return Item(value, self.place(key))

    def extension(self, name: str) -> Item | None:
        """The object of an extension, or None."""
        extensions = self.item("extensions")
        return None if extensions is None else extensions.item(name)

    def values(self, key: str) -> list[Any]:
        """A member that is a list; empty where there is none."""
        value = self.data.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.refuse(key, "must be a list")
        return value

    def entry(self, key: str, index: int, named_by: str = "") -> Item:
        """An object of a list, by its index; `named_by` is the place that names it."""
        values = self.values(key)
        if not 0 <= index < len(values):
            raise UnreadableFile(
                f"{named_by or self.place(key)} names {key}[{index}], and there are {len(values)}; "
                "the glTF file is damaged, export it again"
            )
        if not isinstance(values[index], dict):
            self.refuse(f"{key}[{index}]", "must be an object")
        return Item(values[index], self.place(f"{key}[{index}]"))

    def entries(self, key: str) -> list[Item]:
        """All objects of a list."""
        return [self.entry(key, index) for index in range(len(self.values(key)))]

    def indices(self, key: str) -> list[int]:
        """A list of whole numbers from 0."""
        values = self.values(key)
        if any(isinstance(value, bool) or not isinstance(value, int) or value < 0 for value in values):
            self.refuse(key, "must be a list of whole numbers from 0")
        return values

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        values = self.values(key)
        if not all(isinstance(value, str) for value in values):
            self.refuse(key, "must be a list of texts")
        return values


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
