"""Paint of slicers: a tree per triangle that splits it at edge midpoints and has a filament at each leaf.

The code of a tree is a string of hexadecimal digits that is read backward. The lower two bits of a digit are the
number of split sides. A split triangle has one more child than split sides. The upper two bits select the corner at
which its corners start, and the children follow, the last one first. The upper two bits of a leaf are its filament: 0
is unpainted, and 3 means that the next digit continues the number.

Source:
    `TriangleSelector::serialize` and `TriangleSelector::perform_split` of PrusaSlicer, BambuStudio and OrcaSlicer.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.columns import TextColumn

_HEX_DIGITS = re.compile(rb"[0-9A-Fa-f]+")
_VALUES = bytes.maketrans(b"0123456789ABCDEFabcdef", bytes([*range(16), *range(10, 16)]))
_MAX_DEPTH = 32
"""Maximum nested splits; slicers stop at cells of 0.05 mm, which is 15 splits below a triangle of a meter."""

_AREA_SHARES = ((), (1 / 2, 1 / 2), (1 / 4, 1 / 4, 1 / 2), (1 / 4, 1 / 4, 1 / 4, 1 / 4))
"""Share of each child in the area of its parent, by the number of split sides."""

MAX_FILAMENT = 32
"""Largest filament with a code that a slicer reads."""


def _format_leaf(filament: int) -> bytes:
    """Return the code of a leaf."""
    if filament < 3:
        return b"%X" % (4 * filament)
    return b"%XC" % (filament - 3) if filament < 18 else b"%XFC" % (filament - 18)


_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_LEAF_LENGTHS = np.array([len(_format_leaf(filament)) for filament in range(MAX_FILAMENT + 1)])
_LEAF_CODES = np.array([list(_format_leaf(filament).ljust(3)) for filament in range(MAX_FILAMENT + 1)], np.uint8)

_SIDES, _START, _CHILD, _FILAMENT, _AREA, _DEPTH = range(6)
"""Columns of a node while a code is parsed."""


@dataclass(frozen=True)
class PaintTrees:
    """Trees of paint; the children of a node are adjacent.

    roots:    (c,) first node of each tree
    sides:    (k,) split sides, 0 for a leaf
    start:    (k,) corner at which the corners of a split triangle start
    child:    (k,) first child of a split triangle
    filament: (k,) filament of a leaf, 0 for unpainted
    """

    roots: NDArray[np.int64]
    sides: NDArray[np.int64]
    start: NDArray[np.int64]
    child: NDArray[np.int64]
    filament: NDArray[np.int64]

    def is_painted(self) -> NDArray[np.bool_]:
        """Return whether each tree (c,) has any filament."""
        return (self.sides[self.roots] > 0) | (self.filament[self.roots] > 0)

    def format_codes(self) -> TextColumn:
        """Return the code (c,) of each tree."""
        levels = list(self._find_levels())
        length = np.where(self.sides == 0, _LEAF_LENGTHS[self.filament], 0)
        for parents, children in reversed(levels):
            length[parents] = 1 + np.where(children >= 0, length[children], 0).sum(axis=1)
        ends = np.cumsum(length[self.roots])
        at = np.zeros(len(self.sides), np.int64)
        at[self.roots] = ends - length[self.roots]
        text = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        for parents, children in levels:
            sizes = np.where(children >= 0, length[children], 0)
            starts = at[parents][:, None] + np.cumsum(sizes, axis=1) - sizes
            at[children[children >= 0]] = starts[children >= 0]
            text[at[parents] + length[parents] - 1] = _DIGITS[self.sides[parents] | self.start[parents] << 2]
        reached = np.concatenate([self.roots, *(children[children >= 0] for _, children in levels)])
        leaves = reached[self.sides[reached] == 0]
        for digit in range(_LEAF_CODES.shape[1]):
            rows = leaves[length[leaves] > digit]
            text[at[rows] + digit] = _LEAF_CODES[self.filament[rows], digit]
        return TextColumn(text, np.concatenate([[0], ends]))

    def _find_levels(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the split nodes (k,) of each depth, and their children (k, 4), -1 for none."""
        nodes = self.roots
        while len(nodes := nodes[self.sides[nodes] > 0]):
            number = np.arange(4)
            children = np.where(number <= self.sides[nodes][:, None], self.child[nodes][:, None] + number, -1)
            yield nodes, children
            nodes = children[children >= 0]


@dataclass(frozen=True)
class ParsedTrees(PaintTrees):
    """Trees of the different codes of a model part, one after the other.

    roots: -1 for a malformed code
    area:  (k,) share in the area of the painted triangle
    """

    area: Float64

    def count_leaves(self) -> NDArray[np.int64]:
        """Return the number of leaves of each code (c,), 0 for a malformed one."""
        starts = np.sort(self.roots[self.roots >= 0])
        leaves = np.searchsorted(starts, np.flatnonzero(self.sides == 0), side="right") - 1
        is_valid = self.roots >= 0
        counts = np.zeros(len(self.roots), np.int64)
        counts[is_valid] = np.bincount(leaves, minlength=len(starts))[np.searchsorted(starts, self.roots[is_valid])]
        return counts

    def dominant_filaments(self) -> tuple[Int32, NDArray[np.bool_]]:
        """Return the filament that covers most of a triangle, and whether there are others, for each code (c,)."""
        starts = np.sort(self.roots[self.roots >= 0])
        leaves = np.flatnonzero(self.sides == 0)
        tree = np.searchsorted(starts, leaves, side="right") - 1
        scale = int(self.filament.max(initial=0)) + 1
        keys, index = np.unique(tree * scale + self.filament[leaves], return_inverse=True)
        areas = np.bincount(index, self.area[leaves], minlength=len(keys))
        # the largest area of each tree comes last, so it remains
        order = np.lexsort((areas, keys // scale))
        filaments = np.zeros(len(starts), np.int32)
        filaments[keys[order] // scale] = keys[order] % scale
        counts = np.bincount(keys // scale, minlength=len(starts))
        is_valid = self.roots >= 0
        trees = np.searchsorted(starts, self.roots[is_valid])
        dominant, is_mixed = np.zeros(len(self.roots), np.int32), np.zeros(len(self.roots), np.bool_)
        dominant[is_valid], is_mixed[is_valid] = filaments[trees], counts[trees] > 1
        return dominant, is_mixed


def parse_codes(codes: Sequence[bytes]) -> ParsedTrees:
    """Parse different codes; the time is proportional to their length."""
    nodes = array("d")
    roots = [_parse_code(code, nodes) for code in codes]
    table = np.array(nodes, np.float64).reshape(-1, _DEPTH + 1)
    sides, start, child, filament = table[:, :_AREA].astype(np.int64).T
    return ParsedTrees(np.array(roots, np.int64), sides, start, child, filament, table[:, _AREA].copy())


def _parse_code(code: bytes, nodes: array[float]) -> int:
    """Append the nodes of a code and return its root; -1 if it is malformed."""
    width = _DEPTH + 1
    root = len(nodes) // width
    if not _HEX_DIGITS.fullmatch(code):
        return -1
    digits = iter(code[::-1].translate(_VALUES))
    nodes.extend((0, 0, 0, 0, 1.0, 0))
    pending = [root]
    while pending:
        row = pending.pop() * width
        digit = next(digits, None)
        if digit is None or nodes[row + _DEPTH] > _MAX_DEPTH:
            del nodes[root * width :]
            return -1
        count = digit & 3
        if count == 0:
            nodes[row + _FILAMENT] = digit >> 2 if digit < 12 else _parse_filament(digits)
            continue
        child = len(nodes) // width
        nodes[row + _SIDES], nodes[row + _START], nodes[row + _CHILD] = count, (digit >> 2) % 3, child
        area, depth = nodes[row + _AREA], nodes[row + _DEPTH] + 1
        for share in _AREA_SHARES[count]:
            nodes.extend((0, 0, 0, 0, area * share, depth))
        pending += range(child, child + count + 1)
    return root


def remap_code(code: bytes, mapping: Mapping[int, int]) -> bytes:
    """Return the code of a tree whose leaves have other filaments; unpainted leaves stay unpainted."""
    digits = iter(code[::-1].translate(_VALUES))
    result = bytearray()
    for digit in digits:
        if digit & 3:
            result += b"%X" % digit
            continue
        filament = digit >> 2 if digit < 12 else _parse_filament(digits)
        result += _format_leaf(mapping.get(filament, filament))[::-1]
    return bytes(result[::-1])


def _parse_filament(digits: Iterator[int]) -> int:
    """Return a filament above 2; OrcaSlicer continues a number above 17 after the digit 15."""
    digit = next(digits, 0)
    return digit + 3 if digit < 15 else next(digits, 0) + 18


PATTERNS = (
    (1, ((1, 2),), ((0, 1, 3), (3, 2, 0))),
    (2, ((0, 1), (2, 0)), ((0, 3, 4), (3, 1, 4), (1, 2, 4))),
    (3, ((0, 1), (1, 2), (2, 0)), ((0, 3, 5), (3, 1, 4), (4, 2, 5), (3, 4, 5))),
)
"""For each number of split sides: the edges with a midpoint, and the children, as corners 0 to 2 and midpoints from 3.
"""
