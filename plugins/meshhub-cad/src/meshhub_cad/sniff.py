"""Detection of CAD files by content; imports no heavy modules."""

from __future__ import annotations

import re

_IGES = re.compile(rb"[^\r\n]{72}S[ 0]{6}1[ \r\n]")
_BREP = re.compile(rb"\s{0,8}(?:DBRep_DrawableShape\s{1,8})?(?:CASCADE Topology V\d|Open CASCADE Topology V\d)")
_DXF = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s{0,8}999[ \t]{0,8}\r?\n[^\n]{0,2000}\n){0,50}\s{0,8}0[ \t]{0,8}\r?\nSECTION\s"
)
BINARY_DXF = b"AutoCAD Binary DXF\r\n\x1a\0"
"""First bytes of a binary DXF file."""
_SVG = re.compile(rb"<(?:svg:)?svg[\s>]")


def sniff_iges(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is IGES, 0 … 100: its first line has 72 columns of text and `S      1`."""
    return 95 if _IGES.match(head) else 0


def sniff_brep(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is BREP, as text or binary, 0 … 100."""
    return 100 if _BREP.match(head) else 0


def sniff_dxf(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is DXF, as text or binary, 0 … 100."""
    return 95 if head.startswith(BINARY_DXF) or _DXF.match(head) else 0


def sniff_svg(head: bytes, size: int) -> int:  # noqa: ARG001
    """Return the confidence that the file is SVG, 0 … 100."""
    start = head[:3].removeprefix(b"\xef\xbb\xbf") + head[3:64]
    return 90 if start.lstrip().startswith(b"<") and _SVG.search(head) else 0
