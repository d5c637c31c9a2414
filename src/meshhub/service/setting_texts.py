"""Texts of settings: their values, their lines in a TOML file, and names that resemble them."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from meshhub.errors import InvalidSettings, quote

_TOML_LINE = re.compile(r"\s*(?:\[\s*(?P<table>[^\[\]]+)\]|(?P<key>[^=\s#\[][^=#]*?)\s*=)")
"""Header of a table, or the key of a line of a TOML file."""

_MAX_LIMIT = 1 << 62
"""Exclusive upper bound of a limit of a plan; fits into a signed 64-bit integer. `none` lifts a limit."""

_MIN_SIMILARITY_RATIO = 0.75
"""Similarity, as difflib computes it, from which a name is suggested; one or two letters of a word may differ."""


def find_line(text: str, names: tuple[str, ...]) -> int | None:
    """Return the number of the line of a TOML file that sets a key.

    Args:
        names: Tables and key.
    Returns:
        Line of the key, otherwise of the innermost table; None if only a full TOML parser could find it.
    """
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _TOML_LINE.match(line)
        if match is None:
            continue
        words = [word.strip().strip("\"'") for word in (match["table"] or match["key"]).split(".")]
        if match["table"]:
            table, words = words, []
        # a line below the key, such as a table in it, locates the key too
        if (*table, *words)[: len(names)] == names:
            return number
    return find_line(text, names[:-1]) if len(names) > 1 else None


def parse_limit(value: Any, name: str, origin: str) -> int | float | None:
    """Return the limit of a plan; None lifts it. `origin` is the place of the value. Raise InvalidSettings."""
    if isinstance(value, str):
        if value.strip().lower() == "none":
            return None
        with contextlib.suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MAX_LIMIT:
        raise InvalidSettings(f"{name} must be a number above 0, or none; got {quote(str(value))} ({origin})")
    return int(value) if float(value).is_integer() else value


def parse_switch(value: Any, name: str, origin: str) -> bool | None:
    """Return the value of a limit that is true or false; None lifts it. Raise InvalidSettings."""
    words = {"true": True, "false": False, "none": None}
    try:
        return words[str(value).strip().lower()]
    except KeyError:
        raise InvalidSettings(f"{name} must be true, false or none; got {quote(str(value))} ({origin})") from None


def suggest(name: str, known: Sequence[str], *, spelling: Callable[[str], str] = str) -> str:
    """Return a hint with the most similar known name; "" if none is similar."""
    similar = difflib.get_close_matches(name.lower(), known, n=1, cutoff=_MIN_SIMILARITY_RATIO)
    return f"; did you mean {spelling(similar[0])}?" if similar else ""


def add_origin(error: InvalidSettings, origins: Mapping[str, str]) -> InvalidSettings:
    """Return an error with the origin of the setting with which its message begins."""
    setting = error.message.partition(":")[0].partition(" ")[0]
    matches = (origin for name, origin in origins.items() if name == setting or name.startswith(f"{setting}."))
    origin = next(matches, None)
    return InvalidSettings(f"{error.message} ({origin})") if origin else error
