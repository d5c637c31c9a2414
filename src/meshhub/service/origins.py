"""Origins of pages, in settings and in publishable keys."""

from __future__ import annotations

import re

_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:]+\](:\d{1,5})?", re.ASCII)
"""Origin as browsers send it (RFC 6454 §6.1), in lower case."""


def is_origin(text: str) -> bool:
    """Return whether a text is an origin as browsers send it, such as "https://shop.example"."""
    return _ORIGIN.fullmatch(text) is not None
