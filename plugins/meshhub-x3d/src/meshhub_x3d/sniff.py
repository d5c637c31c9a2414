"""Detection of X3D and VRML files by content, also of compressed ones. Imports nothing heavy."""

from __future__ import annotations

import re
import zlib

_X3D = re.compile(rb"<(?:\w{1,20}:)?X3D[\s>]|\A\s{0,80}#X3D V")
_VRML = re.compile(rb"\A(?:\xef\xbb\xbf)?\s{0,80}#VRML V")
_HEAD_BYTES = 4096
"""Bytes in which the root element begins."""
_GZIP = b"\x1f\x8b\x08"


def _unpack(head: bytes) -> bytes:
    """Return the beginning of a file, unpacked if it is compressed, without the zeros of UTF-16."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return b""
    head = head[:_HEAD_BYTES]
    return head.replace(b"\0", b"") if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:4] else head


def sniff_x3d(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is X3D, 0 … 100."""
    return 95 if _X3D.search(_unpack(head)) else 0


def sniff_vrml(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is VRML, 0 … 100."""
    return 95 if _VRML.match(_unpack(head)) else 0
