"""Files of AC3D as assimp reads them rightly: with each surface once."""

from __future__ import annotations

import re

_SURFACE = re.compile(rb"^([ \t]{0,80}SURF[ \t]{1,80}0[xX])([0-9a-fA-F]{1,8})", re.MULTILINE)

_TWO_SIDED = 0x20
"""Flag of surfaces of AC3D that are visible from both sides; assimp reads each of them as two faces."""


def merge_sides(data: bytes) -> bytes:
    """Return an AC3D file without the flag of two sides."""
    return _SURFACE.sub(lambda match: match[1] + f"{int(match[2], 16) & ~_TWO_SIDED:x}".encode(), data)
