"""AC3D files as assimp reads them rightly: without hidden objects, and with each surface once."""

from __future__ import annotations

import re

from meshhub import note

_OBJECT = re.compile(rb"^(?=OBJECT\s)", re.MULTILINE)
_HIDDEN = re.compile(rb"^hidden[ \t\r]*$", re.MULTILINE)
_SURFACES = re.compile(rb"^numsurf\s.*?(?=^kids\s|\Z)", re.MULTILINE | re.DOTALL)
_SURFACE = re.compile(rb"^([ \t]{0,80}SURF[ \t]{1,80}0[xX])([0-9a-fA-F]{1,8})", re.MULTILINE)

_TWO_SIDED = 0x20
"""Flag of surfaces that are visible from both sides; assimp reads each of them as two faces."""


def prepare(data: bytes) -> bytes:
    """Return a file without the flag of two sides, and without the surfaces of hidden objects, with a note."""
    if _HIDDEN.search(data):
        objects = _OBJECT.split(data)
        shown = [_SURFACES.sub(b"", each) if _HIDDEN.search(each) else each for each in objects]
        if shown != objects:
            note("invisible_skipped", "skipped invisible objects")
            data = b"".join(shown)
    return _SURFACE.sub(lambda match: match[1] + f"{int(match[2], 16) & ~_TWO_SIDED:x}".encode(), data)
