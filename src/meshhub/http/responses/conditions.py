"""Conditional and negotiated requests: If-None-Match, Accept-Encoding."""

from __future__ import annotations

import re


def matches(if_none_match: str, etag: str) -> bool:
    """Return whether the client has this version already (RFC 9110 §13.1.2: weak comparison)."""
    return if_none_match.strip() == "*" or etag.removeprefix("W/") in re.findall(r'"[^"]*"', if_none_match)


def accepts(accept_encoding: str, encoding: str) -> bool:
    """Return whether a client accepts an encoding (RFC 9110 §12.5.3)."""
    qualities = {}
    for item in accept_encoding.lower().split(","):
        name, _, quality = item.partition(";")
        qualities[name.strip()] = quality.replace(" ", "")
    quality = qualities.get(encoding, qualities.get("*", "q=0"))
    return not re.fullmatch(r"q=0(\.0*)?", quality)
