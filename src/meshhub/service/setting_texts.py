"""Texts of settings: their values, their origins, and names that resemble them."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from meshhub.errors import InvalidSettings, quote

_MAX_LIMIT = 1 << 62
"""Exclusive upper bound of a limit of a plan; fits into a signed 64-bit integer. `none` lifts a limit."""

_MIN_SIMILARITY_RATIO = 0.75
"""Similarity, as difflib computes it, from which a name is suggested; one or two letters of a word may differ."""


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
