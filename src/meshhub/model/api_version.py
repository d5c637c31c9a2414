"""Version of the plug-in API, which plug-ins declare and the host checks when it loads them."""

from __future__ import annotations

import re

API_VERSION = "1.0"
"""Version of the plug-in API: hooks, declarations, scenes, toolkit and conformance kit.

The first number changes with an incompatible redesign. The second one grows with every addition and every deprecation.
Deprecated features warn (DeprecationWarning) for one minor release, and are then removed.
"""

OLDEST_API_VERSION = "1.0"
"""Oldest version whose features all still exist; plug-ins for an older one are not loaded."""

DECLARATION = "MESHHUB_API"
"""Attribute of a plug-in that names the version for which it was written; default: "1.0"."""

_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})", re.ASCII)


def explain_incompatible(declared: object) -> str:
    """Return why a plug-in with this declaration must not be loaded; "" if it may be loaded.

    Args:
        declared: Value of the attribute DECLARATION.
    """
    match = _VERSION.fullmatch(declared) if isinstance(declared, str) else None
    if match is None:
        return f'{DECLARATION} must be a version such as "{API_VERSION}", got {declared!r:.40}'
    oldest, newest = _parse(OLDEST_API_VERSION), _parse(API_VERSION)
    version = int(match[1]), int(match[2])
    if version > newest:
        return f"it needs plug-in API {declared}, and this meshhub has {API_VERSION}: update meshhub"
    if version < oldest:
        return (
            f"it was written for plug-in API {declared}, and this meshhub supports {OLDEST_API_VERSION} to "
            f"{API_VERSION}: update the plug-in"
        )
    return ""


def _parse(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)
