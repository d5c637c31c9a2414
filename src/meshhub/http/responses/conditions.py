"""Conditional and negotiated requests: If-None-Match, Accept-Encoding."""

from __future__ import annotations

import re
from collections.abc import Iterable

_QUALITY = re.compile(r"q=([01](?:\.\d{0,3})?)", re.ASCII)
"""Weight of an encoding (RFC 9110 §12.4.2)."""


def matches(if_none_match: str, etag: str) -> bool:
    """Return whether the client already has this version (RFC 9110 §13.1.2: weak comparison)."""
    return if_none_match.strip() == "*" or etag.removeprefix("W/") in re.findall(r'"[^"]*"', if_none_match)


def choose_encoding(accept_encoding: str, available: Iterable[str]) -> str:
    """Return the encoding that a client prefers; "" for the plain content (RFC 9110 §12.5.3).

    Args:
        accept_encoding: Header of the request.
        available: Encodings, the preferred one first, for clients that prefer none.
    """
    qualities: dict[str, float] = {}
    for item in accept_encoding.lower().split(","):
        name, _, parameter = item.partition(";")
        match = _QUALITY.fullmatch(parameter.replace(" ", ""))
        qualities[name.strip()] = float(match[1]) if match else 1.0
    best, best_quality = "", 0.0
    for encoding in available:
        quality = qualities.get(encoding, qualities.get("*", 0.0))
        if quality > best_quality:
            best, best_quality = encoding, quality
    return best if best_quality >= qualities.get("identity", 0.0) else ""
