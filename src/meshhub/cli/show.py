"""Output for people: sizes, notes, tables."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from meshhub.cli.exits import code_of, explained
from meshhub.cli.origins import is_result_of
from meshhub.cli.verbosity import is_quiet, is_verbose
from meshhub.errors import MeshhubError, format_number, printable
from meshhub.model.chain import Chain
from meshhub.model.features import FeatureTable, Hole
from meshhub.model.notes import Note
from meshhub.model.options import flag_of
from meshhub.model.report import Report

_UNIT_SUFFIXES = {"_mm3": "mm³", "_mm2": "mm²", "_mm": "mm"}

MAX_LISTED_RADII = 12
"""Maximum number of radii in one line; --json lists all."""

MAX_COLUMN_WIDTH = 60
"""Characters of the text in every column except the last; leaves room for several on one line."""

_MIN_COLUMN_WIDTH = 8
"""Characters to which columns shrink; narrower columns would break most words."""

_MIN_LINE_WIDTH = 40
"""Characters; a narrower terminal wraps the lines itself."""

_GAP = "  "
"""Space between columns."""


def as_json(data: Any) -> None:
    """Print data as indented JSON on standard output."""
    click.echo(json.dumps(msgspec.to_builtins(data), indent=2))


@contextlib.contextmanager
def errors_as_json(is_json: bool) -> Iterator[None]:
    """Print an error also on standard output if that has JSON for programs; then pass it on."""
    try:
        yield
    except (MeshhubError, OSError) as error:
        if is_json:
            as_json({"error": explained(error), "error_code": code_of(error)})
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


def describe_skipped(is_origin_known: bool) -> str:
    """Describe that an input is skipped because its output exists, which may be the result of another file."""
    return "exists, skipped" if is_origin_known else "exists, skipped; no record of its source"


def print_skipped(source: str, output: str, *, is_json: bool) -> None:
    """Print that an input is skipped because its output exists. Raises OutputExists: it is that of another file."""
    with errors_as_json(is_json):
        is_origin_known = is_result_of(Path(output), Path(source), Path(source))
    if is_json:
        as_json({"file": source, "output": output, "skipped": True, "origin_known": is_origin_known})
    else:
        inform(f"{output} {describe_skipped(is_origin_known)}")


def print_notes(listed: Iterable[Note], *, indent: str = "") -> None:
    """Print notes on standard error, unless the command is quiet."""
    for note in listed:
        inform(f"note: {note.spelled(flag_of)} [{note.code}]", indent=indent)


def print_timings(report: Report) -> None:
    """Print the duration of each step on standard error, if the command is verbose."""
    if is_verbose():
        steps = ", ".join(f"{step.kind} {step.step} {step.seconds:.3f} s" for step in report.steps)
        print_line(f"timings: {steps}", indent="  ", err=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, err: bool = False) -> None:
    """Print aligned columns that wrap to the terminal; plain text, so that a listing imports no library."""
    cells = ([printable(" ".join(cell.split())) for cell in row] for row in rows)
    body = [[*(_shorten_paths(cell, MAX_COLUMN_WIDTH) for cell in row[:-1]), row[-1]] for row in cells]
    lines = [list(columns), *body] if any(columns) else body
    natural = [max((len(row[index]) for row in lines), default=0) for index in range(len(columns))]
    widths = _fit(natural, shutil.get_terminal_size((160, 24)).columns - len(_GAP) * (len(columns) - 1))
    for number, row in enumerate(lines):
        *first, (last, room) = zip(row, widths, strict=True)
        blocks = [*(_wrap(_shorten_paths(cell, width), width) for cell, width in first), _wrap(last, room)]
        for parts in itertools.zip_longest(*blocks, fillvalue=""):
            text = _GAP.join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
            click.echo(click.style(text, bold=True) if number == 0 and any(columns) else text, err=err)


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _shorten_paths(cell: str, width: int) -> str:
    """Shorten paths to a width: a broken path cannot be read, and its end is the name of the file."""
    words = ("…" + word[1 - width :] if len(word) > width and "/" in word else word for word in cell.split(" "))
    return " ".join(words)


def _fit(natural: list[int], room: int) -> list[int]:
    """Return widths of columns that together fit into the room: the widest columns shrink to one common width."""
    shared = max(natural, default=0)
    while shared > _MIN_COLUMN_WIDTH and sum(min(width, shared) for width in natural) > room:
        shared -= 1
    return [max(1, min(width, shared)) for width in natural]


def format_bytes(count: int) -> str:
    """Format a number of bytes with a decimal unit."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def format_size(extent: tuple[float, float, float] | None) -> str:
    """Format a size in millimeters along X, Y and Z."""
    return "" if extent is None else " × ".join(f"{format_number(side, 4)}" for side in extent) + " mm"


def summarize(report: Report) -> str:
    """Summarize a conversion in one line."""
    before, after = report.source, report.target
    faces = f"{after.faces:,} face{'s' * (after.faces != 1)}"
    if before.faces != after.faces:
        faces = f"{before.faces:,} → {faces}"
    return f"{faces}, {format_size(after.size_mm)}, {format_bytes(after.bytes)}, {report.seconds:.2f} s"


def list_figures(report: Report) -> list[str]:
    """Return a line for each operation and the writer with the figures that they reported."""
    lines = []
    for step in report.steps:
        text = ", ".join(_describe_figure(name, value) for name, value in step.figures.items() if value)
        if step.kind != "read" and text:
            lines.append(f"{step.step}: {text}")
    return lines


def list_steps(chain: Chain) -> list[str]:
    """Return the steps of a chain with their options, for people."""
    steps = []
    for step in chain.steps:
        options = " ".join(
            flag_of(name) if value is True else f"{flag_of(name)} {value}" for name, value in step.options.items()
        )
        verb = "run" if step.kind == "operation" else step.kind
        steps.append(f"{verb} {step.label}" + (f" ({options})" if options else ""))
    return steps


def _describe_figure(name: str, value: Any) -> str:
    """Describe a figure; a unit at the end of its name follows the value."""
    for suffix, unit in _UNIT_SUFFIXES.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')} {_format(value)} {unit}"
    return f"{name.replace('_', ' ')} {_format(value)}"


def list_features(table: FeatureTable | None) -> list[str]:
    """Return the lines of a feature table: exact size, faces by kind, radii, holes."""
    if table is None:
        return []
    kinds = ", ".join(f"{entry.count:,} {entry.kind}" for entry in table.faces)
    lines = [
        f"CAD model: {format_size(table.size_mm)}, {table.solids:,} solid{'s' * (table.solids != 1)}",
        f"  faces: {kinds}",
    ]
    for side, title in (("outside", "outer radii"), ("inside", "inner radii")):
        radii = [
            f"{entry.count:,} × R{format_number(entry.radius_mm, 6)} {entry.kind}"
            for entry in table.radii
            if entry.side == side
        ]
        if radii:
            lines.append(f"  {title}: {_first(radii)}")
    lines += [f"  hole: {line}" for line in map(describe_hole, table.holes)]
    return lines


def describe_hole(hole: Hole) -> str:
    """Describe equal holes in one line, in the notation of drawings."""
    diameter, depth = format_number(hole.diameter_mm, 6), format_number(hole.depth_mm, 6)
    text = f"{hole.count:,} × Ø{diameter} mm, {depth} mm deep, {hole.end}"
    for step in hole.steps:
        size = format_number(step.diameter_mm, 6)
        rest = f"{format_number(step.depth_mm, 6)} mm deep"
        if step.angle_deg is not None:
            rest = f"{format_number(step.angle_deg, 4)}°"
        text += f", {step.kind} Ø{size} mm {rest}"
    return text


def _first(words: list[str]) -> str:
    """Join the first words, and count the rest."""
    rest = len(words) - MAX_LISTED_RADII
    return ", ".join(words[:MAX_LISTED_RADII]) + (f" and {rest} more" if rest > 0 else "")


def _format(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_format, value))
    return f"{format_number(value, 6)}" if isinstance(value, float) else str(value)
