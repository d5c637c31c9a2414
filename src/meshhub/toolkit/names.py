"""Names of parts, materials and files in text formats."""

from __future__ import annotations


def single_line(name: str) -> str:
    """Return a name as one line of text: control characters become spaces, and runs of spaces become one.

    Use this to write a name to a line-based format, and to clean a name read from one. For messages, use
    `errors.printable`, which keeps the length and shows replaced characters.
    """
    return " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())


def letters(number: int) -> str:
    """Return the letters for a number from 0, as spreadsheets name columns: a … z, aa, ab …."""
    text = chr(ord("a") + number % 26)
    return text if number < 26 else letters(number // 26 - 1) + text
