"""What a person reads on the terminal: sizes, notes, tables."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec

from meshhub.errors import format_number, printable
from meshhub.model.notes import Note
from meshhub.model.report import Report

WIDEST = 60
"""Characters of a column but the last."""


def as_json(data: Any) -> None:
    """Data as indented JSON on standard output."""
    click.echo(json.dumps(msgspec.to_builtins(data), indent=2))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, err: bool = False) -> None:
    """Aligned columns, the last one wrapped to the terminal. Plain text: a listing must not wait for a library."""
    held = [
        [*map(_cut, row[:-1]), row[-1]] for row in ([printable(" ".join(cell.split())) for cell in row] for row in rows)
    ]
    lines = [list(columns), *held] if any(columns) else held
    widths = [max((len(line[index]) for line in lines), default=0) for index in range(len(columns))]
    room = max(20, shutil.get_terminal_size((160, 24)).columns - sum(widths[:-1]) - 2 * (len(widths) - 1))
    for number, line in enumerate(lines):
        first, *more = textwrap.wrap(line[-1], room, break_on_hyphens=False) or [""]
        text = "  ".join([*(cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=False)), first]).rstrip()
        click.echo(click.style(text, bold=True) if number == 0 and any(columns) else text, err=err)
        indent = " " * (sum(widths[:-1]) + 2 * (len(widths) - 1))
        for rest in more:
            click.echo(indent + rest, err=err)


def _cut(cell: str) -> str:
    """A cell that leaves room for the others: a long path keeps its end."""
    return cell if len(cell) <= WIDEST else "…" + cell[1 - WIDEST :]


def size(count: int) -> str:
    """Bytes as a person says them."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def millimetres(extent: tuple[float, float, float] | None) -> str:
    """A size along X, Y and Z."""
    return "" if extent is None else " × ".join(f"{format_number(side, 4)}" for side in extent) + " mm"


def note_line(note: Note) -> str:
    """A note as one line."""
    return f"note: {note.message} [{note.code}]"


def summary(report: Report) -> str:
    """A conversion in one line."""
    before, after = report.source, report.target
    faces = f"{after.faces:,} face{'s' * (after.faces != 1)}"
    if before.faces != after.faces:
        faces = f"{before.faces:,} → {faces}"
    return f"{faces}, {millimetres(after.size_mm)}, {size(after.bytes)}, {report.seconds:.2f} s"


def figures(report: Report) -> list[str]:
    """What each operation says it did, a line each."""
    lines = []
    for step in report.steps:
        told = ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in step.figures.items() if value)
        if step.kind == "operation" and told:
            lines.append(f"{step.step}: {told}")
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " × ".join(map(_shown, value))
    return f"{format_number(value, 6)}" if isinstance(value, float) else str(value)
