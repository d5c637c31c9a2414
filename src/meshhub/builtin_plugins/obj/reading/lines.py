"""OBJ text, brought into one shape and sorted by the kind of its lines: no Python loop over lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.obj.sniff import narrowed
from meshhub.errors import UnreadableFile, printable

Index = NDArray[np.intp]

V, VT, VN, F, O, G, USEMTL, MTLLIB = range(1, 9)  # noqa: E741 - the format's own words
"""The kinds of lines that are read; all others are 0."""


def _code(word: bytes) -> int:
    return word[0] << 8 | word[1]


_KINDS = np.zeros(1 << 16, np.uint8)
for _word, _kind in {
    b"v ": V, b"vt": VT, b"vn": VN, b"f ": F, b"o ": O, b"o\n": O, b"g ": G, b"g\n": G, b"us": USEMTL, b"mt": MTLLIB,
}.items():  # fmt: skip
    _KINDS[_code(_word)] = _kind

_OTHERS: dict[str, tuple[bytes, ...]] = {
    "lines": (b"l ",),
    "points": (b"p ",),
    "curves and free-form surfaces": (b"vp", b"cu", b"su", b"cs"),
}

_INDENT = re.compile(rb"(?m)^ +")
_COMMENT_CONTINUED = re.compile(rb"(?m)^( *#[^\n]*)\\$")
_RUNS = 4096
"""So many stretches of lines are joined one by one; more are picked out of the text letter by letter."""

_BLANK, _NEWLINE, _HASH = 32, 10, 35


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a file: where they begin and end (with their newline) in `letters`, and their kinds."""

    text: bytes
    letters: NDArray[np.uint8]
    starts: Index
    ends: Index
    codes: NDArray[np.uint16]
    kinds: NDArray[np.uint8]
    physical: bytes
    """The text before lines that go on were joined."""

    def of(self, kind: int) -> Index:
        """The numbers of the lines of a kind, ascending."""
        return np.flatnonzero(self.kinds == kind)

    def joined(self, chosen: Index) -> memoryview:
        """The text of some lines, ascending, one after the other."""
        if len(chosen) == 0:
            return memoryview(b"")
        breaks = np.flatnonzero(np.diff(chosen) != 1)
        first = self.starts[chosen[np.append(0, breaks + 1)]].tolist()
        last = self.ends[chosen[np.append(breaks, len(chosen) - 1)]].tolist()
        view = memoryview(self.text)
        if len(first) == 1:
            return view[first[0] : last[0]]
        if len(first) <= _RUNS:
            return memoryview(b"".join([view[start:end] for start, end in zip(first, last, strict=True)]))
        mask = np.zeros(len(self.kinds), np.bool_)
        mask[chosen] = True
        return self.letters[np.repeat(mask, self.ends - self.starts)].data

    def line(self, number: int) -> str:
        """One line as text, in UTF-8, or in Latin-1 where it is not."""
        raw = self.text[int(self.starts[number]) : int(self.ends[number])].rstrip(b"\n")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    def bad(self, number: int, why: str) -> UnreadableFile:
        """The error for a line, which it names as an editor counts it."""
        shown = printable(self.line(number)[:60])
        return UnreadableFile(f"line {self.counted(number)} of the OBJ, {shown!r}: {why}; export the model again")

    def counted(self, number: int) -> int:
        """A line's number as an editor counts it."""
        if self.physical is self.text:
            return number + 1
        letters = np.frombuffer(self.physical, np.uint8)
        newlines = np.flatnonzero(letters == _NEWLINE)
        goes_on = letters[np.maximum(newlines - 1, 0)] == ord("\\")
        logical = np.cumsum(~goes_on) - ~goes_on
        return int(np.searchsorted(logical, number)) + 1

    def others(self) -> list[str]:
        """What the file holds that no mesh can be made of, in words."""
        codes = np.bincount(self.codes[self.kinds == 0], minlength=1 << 16)
        return [said for said, words in _OTHERS.items() if any(codes[_code(word)] for word in words)]


def split(data: bytes) -> Lines:
    """The lines of an OBJ file."""
    text = narrowed(data)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    if not text.endswith(b"\n"):
        text += b"\n"
    physical = text
    if b"\\" in text and b"\\\n" in text:
        # a path at the end of a comment does not swallow the next line
        physical = _COMMENT_CONTINUED.sub(rb"\1", text)
        text = physical.replace(b"\\\n", b" ")
        if not text.endswith(b"\n"):
            text += b"\n"
    letters, starts, ends = _cut(text)
    if (letters[starts] == _BLANK).any():
        indented, text = text, _INDENT.sub(b"", text)
        physical = text if physical is indented else physical
        letters, starts, ends = _cut(text)
    codes = _codes(letters, starts)
    return Lines(text, letters, starts, ends, codes, _KINDS[codes], physical)


def _cut(text: bytes) -> tuple[NDArray[np.uint8], Index, Index]:
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(letters == _NEWLINE) + 1
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1]
    return letters, starts, ends


def _codes(letters: NDArray[np.uint8], starts: Index) -> NDArray[np.uint16]:
    """The first two letters of each line as one number."""
    first = letters[starts].astype(np.uint16)
    codes: NDArray[np.uint16] = first << np.uint16(8) | letters[np.minimum(starts + 1, len(letters) - 1)]
    return codes


def without_comments(text: memoryview) -> NDArray[np.uint8]:
    """A copy of the text with blanks in place of everything from a # after a blank to the end of its line."""
    letters = np.frombuffer(text, np.uint8).copy()
    marks = np.flatnonzero(letters == _HASH)
    marks = marks[(marks > 0) & (letters[marks - 1] == _BLANK)]
    if len(marks) == 0:
        return letters
    newlines = np.flatnonzero(letters == _NEWLINE)
    ends = newlines[np.searchsorted(newlines, marks)]
    first = np.flatnonzero(np.diff(ends, prepend=-1))
    runs = np.stack([marks[first], ends[first]], axis=1).ravel()
    inside = np.resize([False, True], len(runs) + 1)
    letters[np.repeat(inside, np.diff(runs, prepend=0, append=len(letters)))] = _BLANK
    return letters


def first_bad(text: bytes, parses: Any) -> int:
    """Which line of a text is the first that does not parse, by halves: about twice the work of one whole try."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1
    low, high = 0, len(ends)
    while high - low > 1:
        middle = (low + high) // 2
        if parses(text[int(ends[low - 1]) if low else 0 : int(ends[middle - 1])]):
            low = middle
        else:
            high = middle
    return low
