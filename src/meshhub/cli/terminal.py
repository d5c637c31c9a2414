"""Print lines, notes, tables and JSON."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
import msgspec

from meshhub.cli.exits import error_data
from meshhub.cli.texts import labeled, tr
from meshhub.cli.verbosity import is_quiet, is_verbose
from meshhub.errors import MeshhubError, printable
from meshhub.model.notes import Note
from meshhub.model.options import flag_of
from meshhub.model.report import Report

USUAL_NOTES = frozenset({"frame_converted"})
"""Codes of notes that nearly every conversion has."""

MAX_COLUMN_WIDTH = 60
"""Maximum characters of the text in every column except the last; leaves room for several on one line."""

_MIN_COLUMN_WIDTH = 8
"""Minimum characters of a column that shrinks; narrower columns would break most words."""

_MIN_TABLE_WIDTH = 60
"""Characters under which a wide table is printed as records."""

_MIN_LINE_WIDTH = 40
"""Minimum characters; a narrower terminal wraps the lines itself."""

_GAP = "  "
"""Space between columns."""


def as_json(data: Any) -> None:
    """Print data as indented JSON on standard output."""
    import json

    click.echo(json.dumps(msgspec.to_builtins(data), indent=2))


@contextlib.contextmanager
def errors_as_json(is_json: bool) -> Iterator[None]:
    """Print an error also on standard output if that has JSON for programs; then pass it on."""
    try:
        yield
    except (MeshhubError, OSError) as error:
        if is_json:
            as_json(error_data(error))
        raise


def print_line(text: str, *, indent: str = "", err: bool = False) -> None:
    """Print a line, wrapped at words to the width of the terminal; a pipe or a file gets one line."""
    width = shutil.get_terminal_size((0, 0)).columns
    if width:
        text = textwrap.fill(
            text,
            max(width, _MIN_LINE_WIDTH),
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    else:
        text = indent + text
    click.echo(text, err=err)


def inform(text: str, *, indent: str = "") -> None:
    """Print a line on standard error, unless the command is quiet."""
    if not is_quiet():
        print_line(text, indent=indent, err=True)


def print_skipped(source: str, output: str, *, is_json: bool) -> None:
    """Print that an input is skipped because its output exists."""
    if is_json:
        as_json({"file": source, "output": output, "skipped": True})
    else:
        inform(printable(f"{output} {tr('exists, skipped')}"))


def print_notes(listed: Iterable[Note], *, indent: str = "") -> None:
    """Print notes on standard error, unless the command is quiet; those that nearly all files have, only if verbose."""
    for note in listed:
        if is_verbose() or note.code not in USUAL_NOTES:
            inform(labeled("note", f"{note.spelled(flag_of)} [{note.code}]"), indent=indent)


def print_timings(report: Report) -> None:
    """Print the duration of each step on standard error, if the command is verbose."""
    if is_verbose():
        steps = ", ".join(f"{step.kind} {step.step} {step.seconds:.3f} s" for step in report.steps if step.seconds)
        print_line(f"timings: {steps}", indent="  ", err=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, err: bool = False) -> None:
    """Print aligned columns that wrap to the terminal; plain text, so that a listing imports no library."""
    cells = ([printable(" ".join(cell.split())) for cell in row] for row in rows)
    body = [[*(_shorten_paths(cell, MAX_COLUMN_WIDTH) for cell in row[:-1]), row[-1]] for row in cells]
    lines = [list(columns), *body] if any(columns) else body
    natural = [max((len(row[index]) for row in lines), default=0) for index in range(len(columns))]
    width = shutil.get_terminal_size((160, 24)).columns
    gaps = len(_GAP) * (len(columns) - 1)
    if len(columns) > 2 and width < min(_MIN_TABLE_WIDTH, sum(natural) + gaps):
        _print_records(columns, body, err=err)
        return
    widths = _fit(natural, width - gaps)
    for number, row in enumerate(lines):
        *first, (last, room) = zip(row, widths, strict=True)
        blocks = [*(_wrap(_shorten_paths(cell, width), width) for cell, width in first), _wrap(last, room)]
        for parts in itertools.zip_longest(*blocks, fillvalue=""):
            text = _GAP.join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
            click.echo(click.style(text, bold=True) if number == 0 and any(columns) else text, err=err)


def _print_records(columns: Sequence[str], rows: Iterable[Sequence[str]], *, err: bool) -> None:
    """Print the cells of each row below each other, because a narrow terminal would break most words of a table."""
    for first, *others in rows:
        click.echo(click.style(first, bold=True), err=err)
        for column, cell in zip(columns[1:], others, strict=True):
            if cell:
                print_line(f"{column}: {cell}", indent="  ", err=err)


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _shorten_paths(cell: str, width: int) -> str:
    """Shorten paths to a width, because a wrapped path is hard to read, and its end is the name of the file."""
    words = ("…" + word[1 - width :] if len(word) > width and "/" in word else word for word in cell.split(" "))
    return " ".join(words)


def _fit(natural: list[int], room: int) -> list[int]:
    """Return widths of columns that together fit into the room: the widest columns shrink to one common width."""
    shared = max(natural, default=0)
    while shared > _MIN_COLUMN_WIDTH and sum(min(width, shared) for width in natural) > room:
        shared -= 1
    return [max(1, min(width, shared)) for width in natural]
