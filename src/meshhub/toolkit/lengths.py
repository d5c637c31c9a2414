"""Values of options that are several lengths, such as 220x220x250, or those of a printer."""

from __future__ import annotations

import re

from meshhub.errors import InvalidOption, format_number, quote
from meshhub.model.quantities import parse_quantity, units_of
from meshhub.toolkit.printers import find_printer

_LENGTH = re.compile(r"\d{1,6}(?:\.\d{1,6})?", re.ASCII)
_UNIT = re.compile(r"[^\d\s.,]*\Z")

_COUNTS = {2: "two", 3: "three"}


LINE_RATIO = 1.125
"""Width of a printed line per diameter of the nozzle."""


def parse_lengths(option: str, text: str, example: str, low: float, high: float = 999_999.0) -> tuple[float, ...]:
    """Return the lengths in the value of an option, which are separated by "x" or "×", with or without blanks.

    A unit at the end applies to the lengths without one: "20x20x25cm". The name of a printer stands for the width, the
    depth and the height in which it prints.

    Args:
        option: Name of the option, for the message.
        text: Value, such as "220x220x250".
        example: Value with as many lengths as it must have.
        low: Least length.
        high: Largest length.
    Raises:
        InvalidOption: The value has another form, or a length is out of bounds.
    """
    count = example.count("x") + 1
    printer = find_printer(text)
    lengths = _parse_lengths(text, count) if printer is None else printer.volume_mm[:count]
    if not lengths or not low <= min(lengths) <= max(lengths) <= high:
        raise InvalidOption(
            f"option '{{{option}}}' must be {_COUNTS[count]} lengths from {format_number(low)} to "
            f"{format_number(high)} mm, such as {example} or {example}mm, or a printer, such as prusa-mk4, got "
            f"{quote(text)}",
            options=(option,),
        )
    return lengths


def _parse_lengths(text: str, count: int) -> tuple[float, ...]:
    """Return that many lengths in mm; none if the text has another form."""
    words = re.split(r"\s*[xX×]\s*", text.strip())
    if len(words) != count:
        return ()
    units = units_of("_mm")
    last = (_UNIT.search(words[-1]) or [""])[0]
    lengths = []
    for word in words:
        number = _LENGTH.match(word)
        unit = word[number.end() :].strip() if number else ""
        is_length = number is not None and not re.search(r"[\d.,]", unit)
        length = parse_quantity(f"{number[0]}{unit or last}", units) if number and is_length else None
        if length is None:
            return ()
        lengths.append(length)
    return tuple(lengths)
