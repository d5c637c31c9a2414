"""Parse G-code in columns: the commands that move or change how others move, without a loop over lines."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub import UnreadableFile
from meshhub.errors import quote
from meshhub.model.scene import Float64
from meshhub.toolkit.columns import IS_BLANK, Irregular, blank_comments, read_rows

Index = NDArray[np.int64]

_NEWLINE = 10
LETTERS = "XYZEFIJRSPT"
"""Words that are read; the others do not move anything."""

COMMANDS = (
    "G0",
    "G1",
    "G2",
    "G3",
    "G4",
    "G17",
    "G18",
    "G19",
    "G20",
    "G21",
    "G28",
    "G90",
    "G91",
    "G92",
    "M82",
    "M83",
    "M204",
)
"""Commands that are read, and T with the number of a tool."""


_PARENTHESES = re.compile(rb"\([^()\n]*\)")


def code_of(command: str) -> int:
    """Return the number that stands for a command."""
    return ord(command[0]) * 1000 + int(command[1:])


_MAX_NUMBER = 999
"""Largest number of a command; larger ones belong to single printers."""

_CODES = np.array(sorted(code_of(command) for command in COMMANDS))


class Commands(NamedTuple):
    """Commands of a file, in order.

    line:  (n,) line of each command, from 0
    code:  (n,) `code_of` the command; that of T0 for all tools
    words: (n,) numbers of each word by letter, NaN where a command does not have it; of T, the number of the tool
    """

    line: Index
    code: Index
    words: dict[str, Float64]

    def has(self, *commands: str) -> NDArray[np.bool_]:
        """Return (n,) whether each command is one of those."""
        return np.isin(self.code, [code_of(command) for command in commands])


def read_commands(text: bytes) -> Commands:
    """Read the commands of a file.

    Args:
        text: G-code with LF or CRLF; words may have lower case, and blanks inside or none between them.
    Raises:
        UnreadableFile: A number of a command is damaged; the message names its line.
    """
    if b"(" in text:
        # one that does not end on its line hides the rest of it
        text = _PARENTHESES.sub(lambda match: b" " * len(match[0]), text)
    characters = np.frombuffer(text, np.uint8)
    # a comment, an open parenthesis, and a checksum
    is_mark = np.zeros(256, np.bool_)
    is_mark[list(b";(*")] = True
    code = blank_comments(characters, np.flatnonzero(is_mark[characters]))
    is_number = np.zeros(256, np.bool_)
    is_number[list(b"0123456789.-+")] = True
    number = is_number[code]
    edges = np.flatnonzero(np.diff(number, prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    newlines = np.flatnonzero(code == _NEWLINE)
    line = np.searchsorted(newlines, starts)
    # the letter of a number may be before blanks
    filled = np.flatnonzero(~IS_BLANK[code])
    place = filled[np.maximum(np.searchsorted(filled, starts) - 1, 0)] if len(starts) else starts
    is_near = (place < starts) & (np.searchsorted(newlines, place) == line)
    letter = np.where(is_near, code[place] & 0xDF, 0)
    before = np.where(place > 0, code[place - 1], _NEWLINE)
    is_word = (letter >= ord("A")) & (letter <= ord("Z")) & ~_is_letter(before)
    starts, ends, letter, line, place = (each[is_word] for each in (starts, ends, letter, line, place))

    # a command is the first text of its line, or follows the number of the line
    text_starts = _find_first_text(filled, newlines, len(code))
    first = np.flatnonzero(text_starts[line] == place)
    following = np.minimum(first + 1, len(line) - 1)
    is_numbered = (letter[first] == ord("N")) & (line[following] == line[first])
    first = np.where(is_numbered, following, first)
    numbers = _read_digits(code, starts[first], ends[first])
    commands = letter[first].astype(np.int64) * 1000 + numbers
    is_tool = (letter[first] == ord("T")) & (numbers >= 0)
    is_known = np.isin(commands, _CODES) | is_tool
    first, commands = first[is_known], np.where(is_tool, code_of("T0"), commands)[is_known]
    # the words up to the next command, but only those on its line
    row = np.full(len(newlines) + 1, -1)
    row[line[first]] = np.arange(len(first))
    wanted = np.flatnonzero((row[line] >= 0) & np.isin(letter, list(LETTERS.encode())))
    values = _read_values(code, starts[wanted], ends[wanted], line[wanted])
    words = {}
    for each in LETTERS:
        chosen = letter[wanted] == ord(each)
        column = np.full(len(first), np.nan)
        column[row[line[wanted[chosen]]]] = values[chosen]
        words[each] = column
    return Commands(line[first], commands, words)


def _is_letter(characters: NDArray[np.uint8]) -> NDArray[np.bool_]:
    upper = characters & 0xDF
    is_letter: NDArray[np.bool_] = ((upper >= ord("A")) & (upper <= ord("Z"))) | (characters == ord("_"))
    return is_letter


def _find_first_text(filled: Index, newlines: Index, length: int) -> Index:
    """Return (lines,) the position of the first character of each line that is not blank; that of a later line if none
    is.
    """
    line_starts = np.concatenate([[0], newlines + 1])
    found = np.searchsorted(filled, line_starts)
    return np.append(filled, length)[found]


def _read_digits(code: NDArray[np.uint8], starts: Index, ends: Index) -> Index:
    """Return the whole number at each place; -1 for a fraction, a sign or a number over 999."""
    width = ends - starts
    numbers = np.zeros(len(starts), np.int64)
    is_valid = width <= len(str(_MAX_NUMBER))
    for offset in range(len(str(_MAX_NUMBER))):
        has_digit = offset < width
        digit = code[np.minimum(starts + offset, len(code) - 1)].astype(np.int64) - ord("0")
        is_valid &= ~has_digit | ((digit >= 0) & (digit <= 9))
        numbers = np.where(has_digit, numbers * 10 + digit, numbers)
    return np.where(is_valid, numbers, -1)


def _read_values(code: NDArray[np.uint8], starts: Index, ends: Index, line: Index) -> Float64:
    """Return the number at each place. Raises UnreadableFile."""
    if len(starts) == 0:
        return np.empty(0)
    boundaries = np.stack([starts, ends], axis=1).ravel()
    is_text = np.resize([False, True], len(boundaries) + 1)
    keep = np.repeat(is_text, np.diff(boundaries, prepend=0, append=len(code)))
    # one number on each line; the character behind it becomes the line end
    column = np.where(keep, code, np.uint8(_NEWLINE))
    keep[1:] |= keep[:-1]
    column = np.append(column, np.uint8(_NEWLINE))[np.append(keep, ends[-1] == len(code))]
    try:
        values: Float64 = read_rows(column.data, 1, "f8")[:, 0]
    except Irregular:
        text = column.tobytes().split(b"\n")
        bad = next(number for number, word in enumerate(text) if not _is_number(word))
        word = text[bad].decode("ascii", "replace")
        raise UnreadableFile(
            f"line {line[bad] + 1} of the G-code has {quote(word)} for a number; slice the model again"
        ) from None
    if not np.isfinite(values).all():
        raise UnreadableFile("the G-code has a number that is too large; slice the model again")
    return values


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
