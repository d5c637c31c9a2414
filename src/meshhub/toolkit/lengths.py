"""Values of options that are several lengths, such as 220x220x250."""

from __future__ import annotations

import re

from meshhub.errors import InvalidOption, format_number, quote

_LENGTH = r"\d{1,6}(?:\.\d{1,6})?"

_COUNTS = {2: "two", 3: "three"}


def parse_lengths(option: str, text: str, example: str, low: float, high: float = 999_999.0) -> tuple[float, ...]:
    """Return the lengths in the value of an option, which are separated by "x" or "×", with or without blanks.

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
    plain = re.sub(r"\s*[xX×]\s*", "x", text.strip())
    is_valid = re.fullmatch(f"{_LENGTH}(?:x{_LENGTH}){{{count - 1}}}", plain, re.ASCII)
    lengths = tuple(map(float, plain.split("x"))) if is_valid else ()
    if not lengths or not low <= min(lengths) <= max(lengths) <= high:
        raise InvalidOption(
            f"option '{{{option}}}' must be {_COUNTS[count]} lengths from {format_number(low)} to "
            f"{format_number(high)} mm, such as {example}, got {quote(text)}",
            options=(option,),
        )
    return lengths
