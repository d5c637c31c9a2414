"""Lines of OBJ text, normalized and classified by statement with numpy; no Python loop over lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.errors import UnreadableFile, quote
from meshhub.toolkit.columns import blank_comments

Index = NDArray[np.intp]

V, VT, VN, F, O, G, USEMTL, MTLLIB, COMMENT_M = range(1, 10)  # noqa: E741 - keywords of the format
"""Statements that are read; all other lines have the number 0."""


def _code(word: bytes) -> int:
    return word[0] << 8 | word[1]


_STATEMENTS = np.zeros(1 << 16, np.uint8)
for _word, _statement in {
    b"v ": V, b"vt": VT, b"vn": VN, b"f ": F, b"o ": O, b"o\n": O, b"g ": G, b"g\n": G, b"us": USEMTL, b"mt": MTLLIB,
    b"#M": COMMENT_M,
}.items():  # fmt: skip
    _STATEMENTS[_code(_word)] = _statement

_IGNORED: dict[str, tuple[bytes, ...]] = {
    "lines": (b"l ",),
    "points": (b"p ",),
    "curves and free-form surfaces": (b"vp", b"cu", b"su", b"cs"),
}

_NUMBERS = re.compile(rb"(?:v[tn]?)?[-+. ]*[0-9]")
"""Start of a line with numbers whose keyword is missing or damaged: `--1 2 3`, `v-1 2 3`."""

_MAY_BE_NUMBERS = np.zeros(256, np.bool_)
_MAY_BE_NUMBERS[list(b"v+-.0123456789")] = True

_INDENT = re.compile(rb"(?m)^ +")
_NOT_CONTINUED = re.compile(
    rb"(?m)^((?> *(?:#|(?:usemtl|mtllib|usemap|maplib|shadow_obj|trace_obj|call|csh|o|g|s) )|[^\n]*? #)[^\n]*\\)$"
)
"""Lines whose backslash at the end belongs to a name or a path; only lines of data are continued."""

_MAX_SLICES_COUNT = 4096
"""Maximum runs of lines to join slice by slice; for more, a mask over all characters is faster."""

_BLANK, _NEWLINE, _HASH = 32, 10, 35
"""ASCII codes."""


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of a file.

    text: The text, with continued lines joined.
    characters: The text as bytes.
    starts, ends: (n,) range of each line in `characters`, with its line feed.
    codes: (n,) first two characters of each line.
    statements: (n,) statement of each line, 0 for one that is not read.
    physical_text: The text before continued lines were joined.
    """

    text: bytes
    characters: NDArray[np.uint8]
    starts: Index
    ends: Index
    codes: NDArray[np.uint16]
    statements: NDArray[np.uint8]
    physical_text: bytes

    def find(self, statement: int) -> Index:
        """Return the numbers of the lines with a statement, ascending."""
        return np.flatnonzero(self.statements == statement)

    def lengths(self, numbers: Index) -> Index:
        """Return the lengths of lines, with their line feeds."""
        return self.ends[numbers] - self.starts[numbers]

    def join(self, numbers: Index) -> memoryview:
        """Return the text of lines, given by ascending numbers."""
        if len(numbers) == 0:
            return memoryview(b"")
        breaks = np.flatnonzero(np.diff(numbers) != 1)
        first = self.starts[numbers[np.append(0, breaks + 1)]].tolist()
        last = self.ends[numbers[np.append(breaks, len(numbers) - 1)]].tolist()
        view = memoryview(self.text)
        if len(first) == 1:
            return view[first[0] : last[0]]
        if len(first) <= _MAX_SLICES_COUNT:
            return memoryview(b"".join([view[start:end] for start, end in zip(first, last, strict=True)]))
        mask = np.zeros(len(self.statements), np.bool_)
        mask[numbers] = True
        return self.characters[np.repeat(mask, self.ends - self.starts)].data

    def decode(self, number: int) -> str:
        """Return a line as text, decoded as UTF-8, or as Latin-1 if it is not UTF-8."""
        raw = self.text[int(self.starts[number]) : int(self.ends[number])].rstrip(b"\n")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    def error(self, number: int, reason: str) -> UnreadableFile:
        """Return the error for a line."""
        location = f"line {self.editor_number(number)} of the OBJ, {quote(self.decode(number))}"
        return UnreadableFile(
            f"{location}: {reason}; export the model again", values={"line": self.editor_number(number)}
        )

    def editor_number(self, number: int) -> int:
        """Return the number of a line in an editor, which counts from 1 and counts each continued line."""
        if self.physical_text is self.text:
            return number + 1
        characters = np.frombuffer(self.physical_text, np.uint8)
        newlines = np.flatnonzero(characters == _NEWLINE)
        is_continued = characters[np.maximum(newlines - 1, 0)] == ord("\\")
        logical = np.cumsum(~is_continued) - ~is_continued
        return int(np.searchsorted(logical, number)) + 1

    def find_numbers_without_keyword(self) -> int | None:
        """Return the first line with numbers but without the keyword of a statement; None without such a line."""
        is_unknown = (self.statements == 0) & _MAY_BE_NUMBERS[self.codes >> 8] & (self.codes != _code(b"vp"))
        candidates = np.flatnonzero(is_unknown).tolist()
        return next((number for number in candidates if _NUMBERS.match(self.text, int(self.starts[number]))), None)

    def ignored_elements(self) -> list[str]:
        """Return descriptions of the elements in the file that a mesh cannot hold."""
        counts = np.bincount(self.codes[self.statements == 0], minlength=1 << 16)
        return [label for label, words in _IGNORED.items() if any(counts[_code(word)] for word in words)]


def split_lines(data: bytes) -> Lines:
    """Split an OBJ file into lines: normalize line ends, tabs and indentation, and join continued lines."""
    text = data
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    if not text.endswith(b"\n"):
        text += b"\n"
    physical_text = text
    if b"\\" in text and b"\\\n" in text:
        physical_text = _NOT_CONTINUED.sub(rb"\1 ", text)
        text = physical_text.replace(b"\\\n", b" ")
        if not text.endswith(b"\n"):
            text += b"\n"
    characters, starts, ends = _find_lines(text)
    if (characters[starts] == _BLANK).any():
        indented, text = text, _INDENT.sub(b"", text)
        physical_text = text if physical_text is indented else physical_text
        characters, starts, ends = _find_lines(text)
    codes = _line_codes(characters, starts)
    return Lines(text, characters, starts, ends, codes, _STATEMENTS[codes], physical_text)


def _find_lines(text: bytes) -> tuple[NDArray[np.uint8], Index, Index]:
    characters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(characters == _NEWLINE) + 1
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1]
    return characters, starts, ends


def _line_codes(characters: NDArray[np.uint8], starts: Index) -> NDArray[np.uint16]:
    """Return the first two characters of each line as one number."""
    first = characters[starts].astype(np.uint16)
    codes: NDArray[np.uint16] = first << np.uint16(8) | characters[np.minimum(starts + 1, len(characters) - 1)]
    return codes


def remove_comments(text: memoryview) -> NDArray[np.uint8]:
    """Return a copy of the text with spaces from each # after a space to the end of its line."""
    characters = np.frombuffer(text, np.uint8)
    marks = np.flatnonzero(characters == _HASH)
    return blank_comments(characters, marks[(marks > 0) & (characters[marks - 1] == _BLANK)])
