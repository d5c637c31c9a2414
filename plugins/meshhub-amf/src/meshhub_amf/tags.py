"""Tags of long XML bodies as arrays, so that no Python code runs per vertex or triangle."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub import UnreadableFile
from meshhub.toolkit.columns import IS_BLANK, Irregular, read_numbers

Index = NDArray[np.intp]

NAMES = "x y z v1 v2 v3 vertex coordinates triangle r g b a color edge normal texmap map nx ny nz metadata".split()
"""Names of the elements inside <vertices> and <volume>; the code of a name is its position plus 1."""

CODES = {name: code for code, name in enumerate(NAMES, 1)}

_CONTAINER = re.compile(rb"<(vertices|volume)(?:\s[^<>]*)?(?<!/)>")
_LESS, _GREATER, _SLASH, _NEWLINE, _SPACE = b"<>/\n "
_PREFIX_BYTES = 8
"""Bytes of a name that are compared at once; the rest of the only longer name is ignored."""

_MAX_NAME_BYTES = max(map(len, NAMES)) + 2
_ENDS_NAME = IS_BLANK.copy()
_ENDS_NAME[[_GREATER, _SLASH]] = True


class Tags:
    """Tags of a well-formed sequence of elements.

    Attributes:
        opening: (n,) positions of "<", ascending.
        closing: (n,) positions of ">".
        code: (n,) codes of the names, 0 for unknown names.
        starts: (n,) whether the tag starts an element.
        depth: (n,) number of enclosing elements.
    """

    def __init__(self, text: bytes) -> None:
        """Find all tags.

        Raises:
            UnreadableFile: The tags do not match.
        """
        self._characters = np.frombuffer(text + b" " * _MAX_NAME_BYTES, np.uint8)
        self.opening = np.flatnonzero(self._characters == _LESS)
        ends = np.flatnonzero(self._characters == _GREATER)
        order = np.searchsorted(ends, self.opening)
        if len(order) and order[-1] == len(ends):
            raise _malformed()
        self.closing = ends[order]
        if (self.opening[1:] < self.closing[:-1]).any():
            raise _malformed()
        is_end = self._characters[self.opening + 1] == _SLASH
        is_empty = ~is_end & (self._characters[self.closing - 1] == _SLASH)
        self.code = self._read_codes(self.opening + 1 + is_end)
        step = np.where(is_end, -1, np.where(is_empty, 0, 1))
        after = np.cumsum(step)
        self.depth = (after - (step == 1)).astype(np.int16)
        self.starts = ~is_end
        self._is_empty = is_empty
        self._check_nesting(after, is_empty)

    def _read_codes(self, at: Index) -> NDArray[np.uint8]:
        """Return the code of the name at each position."""
        windows = np.lib.stride_tricks.sliding_window_view(self._characters, _PREFIX_BYTES)
        prefixes = windows[at].view("<u8")[:, 0]
        code = np.zeros(len(at), np.uint8)
        remaining = np.arange(len(at))
        for name in NAMES:
            prefix = name.encode()[:_PREFIX_BYTES]
            mask = np.uint64((1 << 8 * len(prefix)) - 1)
            is_name = (prefixes[remaining] & mask) == np.uint64(int.from_bytes(prefix, "little"))
            is_name &= _ENDS_NAME[self._characters[at[remaining] + len(name)]]
            code[remaining[is_name]] = CODES[name]
            remaining = remaining[~is_name]
        return code

    def _check_nesting(self, after: NDArray[np.int64], is_empty: NDArray[np.bool_]) -> None:
        """Raise UnreadableFile unless each start tag has an end tag of the same name."""
        if len(after) == 0:
            return
        if after[-1] != 0 or after.min() < 0 or after.max() > np.iinfo(np.int16).max:
            raise _malformed()
        paired = np.flatnonzero(~is_empty)
        order = paired[np.argsort(self.depth[paired], kind="stable")]
        if (self.code[order[0::2]] != self.code[order[1::2]]).any():
            raise _malformed()

    def elements(self, name: str, depth: int) -> Index:
        """Return the start tags of the elements of a name at a depth."""
        return np.flatnonzero(self.starts & (self.code == CODES[name]) & (self.depth == depth))

    def has(self, *names: str) -> bool:
        """Return whether any element has one of the names."""
        return bool(np.isin(self.code, [CODES[name] for name in names]).any())

    def table(self, owner: Index, parent: str | None, names: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Read the numbers in child elements of repeated elements.

        Args:
            owner: Start tags of the repeated elements, all at depth 0.
            parent: Name of the element between owner and numbers; None for numbers directly in the owner.
            names: Names of the children, separated by spaces.
        Returns:
            (n, k) numbers, NaN for missing ones, and (n, k) counts.
        Raises:
            Irregular: A child does not hold one number.
        """
        columns = names.split()
        leaf_depth = 1 if parent is None else 2
        column_of = np.full(len(NAMES) + 1, -1)
        column_of[[CODES[name] for name in columns]] = np.arange(len(columns))
        leaves = np.flatnonzero(self.starts & (self.depth == leaf_depth) & (column_of[self.code] >= 0))
        if parent is not None:
            parents = self._first_level
            above = parents[np.searchsorted(parents, leaves) - 1]
            leaves = leaves[self.code[above] == CODES[parent]]
        row = np.searchsorted(owner, leaves) - 1
        values = np.full((len(owner), len(columns)), np.nan)
        cells = row * len(columns) + column_of[self.code[leaves]]
        values.ravel()[cells] = self._numbers(leaves)
        return values, np.bincount(cells, minlength=values.size).reshape(values.shape)

    @cached_property
    def _first_level(self) -> Index:
        return np.flatnonzero(self.starts & (self.depth == 1))

    def _numbers(self, leaves: Index) -> NDArray[Any]:
        """Return the number in each element. Raises Irregular."""
        if len(leaves) == 0:
            return np.empty(0)
        starts, ends = self.closing[leaves] + 1, self.opening[leaves + 1]
        boundaries = np.zeros(len(self._characters), np.int8)
        boundaries[starts] = 1
        boundaries[ends] -= 1
        keep = np.cumsum(boundaries, dtype=np.int8).view(np.bool_)
        keep[ends] = True
        text = np.where(IS_BLANK[self._characters], np.uint8(_SPACE), self._characters)[keep]
        text[text == _LESS] = _NEWLINE
        numbers, per_line = read_numbers(text.data, "f8")
        if len(per_line) != len(leaves) or (per_line != 1).any():
            raise Irregular("an element does not hold one number")
        return numbers

    def text_outside(self, elements: Index, text: bytes) -> bytes:
        """Return the text without elements of depth 0, which are given by their start tags."""
        end_tags = np.flatnonzero((~self.starts | self._is_empty) & (self.depth == 0))
        ends = self.closing[end_tags[np.searchsorted(end_tags, elements)]] + 1
        boundaries = np.zeros(len(text) + 1, np.int8)
        boundaries[self.opening[elements]] += 1
        boundaries[ends] -= 1
        inside = np.cumsum(boundaries[:-1], dtype=np.int8).view(np.bool_)
        return np.frombuffer(text, np.uint8)[~inside].tobytes()


def extract_bodies(document: bytes) -> tuple[bytes, dict[int, Tags]]:
    """Take vertices and triangles out of a normalized document.

    Returns:
        Document without the content of <vertices> and without the triangles of <volume>, and the tags of each body
        by the position of its container in that document.
    Raises:
        UnreadableFile: A container is cut off, or its tags do not match.
    """
    pieces: list[bytes] = []
    bodies: dict[int, Tags] = {}
    copied = length = 0
    while match := _CONTAINER.search(document, copied):
        stop = document.find(b"</" + match.group(1), match.end())
        if stop < 0:
            raise _malformed()
        body = document[match.end() : stop]
        tags = Tags(body)
        rest = b""
        if match.group(1) == b"volume":
            triangles = tags.elements("triangle", 0)
            rest = tags.text_outside(triangles, body) if len(triangles) else body
        bodies[length + match.start() - copied] = tags
        piece = document[copied : match.end()] + rest
        pieces.append(piece)
        length += len(piece)
        copied = stop
    pieces.append(document[copied:])
    return b"".join(pieces), bodies


def _malformed() -> UnreadableFile:
    return UnreadableFile("vertices or triangles are cut off, or their XML tags do not match; export the model again")
