"""Checks of the text of a Part-21 file before the CAD kernel reads it.

ISO 10303-21 §5–8 requires `ISO-10303-21;`, a HEADER section, DATA sections and `END-ISO-10303-21;`. Most damaged files
are truncated uploads, which lack the end. The kernel would silently read such a file up to the cut.
"""

from __future__ import annotations

import re

import numpy as np

from meshhub.errors import CUT_OFF, OTHER_KIND, UnreadableFile

_MAX_DEPTH_COUNT = 256
"""Nested parentheses; real files have 4 (rows of control points in a complex entity), and the kernel, which reads them
recursively, ends its process from about 20 000."""
_HEAD_BYTES = 1 << 16
"""Bytes in which the file must begin and name its schema; bounds the search in files of other formats."""
_CHUNK_BYTES = 1 << 24
"""Bytes of text in which parentheses are counted at a time; bounds the memory."""
_START = re.compile(rb"ISO-10303-21\s*;")
_DATA = re.compile(rb"(?<![\w'-])DATA\s*[;(]")
_SECTION_END = re.compile(rb"ENDSEC\s*;")
_END = b"END-ISO-10303-21"
_SCHEMA = re.compile(rb"FILE_SCHEMA\s*\(\s*\(\s*'([^']{0,200})")
_STRING_OR_COMMENT = re.compile(rb"'[^']*(?:'|\Z)|/\*(?:.*?\*/|.*)", re.DOTALL)
"""An unclosed string or comment extends to the end of the file. Each alternative matches once: the time is linear."""


def check_envelope(data: bytes) -> bytes:
    """Check that the text is a complete STEP file and return it without the bytes before its beginning.

    Raises:
        UnreadableFile: The text is not a complete Part-21 file, or it is a building model (IFC).
    Source:
        ISO 10303-21 §5–8.
    """
    start = _START.search(data, 0, _HEAD_BYTES)
    if start is None:
        raise UnreadableFile(
            "the file does not begin with 'ISO-10303-21;' and is not a STEP file; export it again", values=OTHER_KIND
        )
    data = data[start.start() :] if start.start() else data
    schema = _SCHEMA.search(data, 0, _HEAD_BYTES)
    name = schema.group(1).decode("ascii", "replace").strip().upper() if schema else ""
    if name.startswith("IFC"):
        raise UnreadableFile(
            f"the file is a building model ({name[:20]}), not STEP; name it .ifc with meshhub-ifc, or export STEP",
            values=OTHER_KIND,
        )
    section = _DATA.search(data)
    if section is None:
        raise UnreadableFile(
            "the STEP file has no DATA section: it ends before its content; use a complete copy", values=CUT_OFF
        )
    end = data.rfind(_END)
    if end < section.end():
        raise UnreadableFile(
            "the STEP file was cut short: END-ISO-10303-21 is missing at its end; use a complete copy", values=CUT_OFF
        )
    if _SECTION_END.search(data, section.end(), end) is None:
        raise UnreadableFile(
            "the DATA section of the STEP file is not closed by ENDSEC; export the file again", values=CUT_OFF
        )
    _check_pairs(data)
    _check_depth(data)
    return data


def _check_pairs(data: bytes) -> None:
    """Check that parentheses, quotes and comments are closed.

    Strings and comments are removed only if the counts over the whole text disagree: removal is slow.
    """
    pairs = ((b"(", b")"), (b"/*", b"*/"))
    if all(data.count(opening) == data.count(closing) for opening, closing in pairs) and data.count(b"'") % 2 == 0:
        return
    bare = _STRING_OR_COMMENT.sub(b"", data)
    # an unclosed string or comment extends over the end mark
    if bare.count(b"(") != bare.count(b")") or _END not in bare:
        raise UnreadableFile(
            "parentheses or quotes in the STEP file are not in pairs: its text is damaged; export it again"
        )


def _check_depth(data: bytes) -> None:
    """Check that parentheses are not nested too deeply; without strings and comments only if these could matter."""
    if _measure_depth(data) > _MAX_DEPTH_COUNT and _measure_depth(_STRING_OR_COMMENT.sub(b"", data)) > _MAX_DEPTH_COUNT:
        raise UnreadableFile(
            f"the STEP file has more than {_MAX_DEPTH_COUNT} nested parentheses: its text is damaged; export it again"
        )


def _measure_depth(data: bytes) -> int:
    """Return the maximum number of nested parentheses."""
    text = np.frombuffer(data, np.uint8)
    depth = deepest = 0
    for start in range(0, len(text), _CHUNK_BYTES):
        chunk = text[start : start + _CHUNK_BYTES]
        # 40 and 41 are the codes of the parentheses
        depths = depth + np.cumsum(81 - 2 * chunk[chunk >> 1 == 20].astype(np.int64))
        if len(depths):
            depth, deepest = int(depths[-1]), max(deepest, int(depths.max()))
    return deepest
