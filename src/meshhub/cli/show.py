"""What a person reads on the terminal: sizes, notes, tables."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from meshhub.notes import Note
from meshhub.report import Report


def out() -> Console:
    """Standard output; without colours, and never cut, when it is no terminal."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def err() -> Console:
    """Standard error."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else 160, highlight=False)


def as_json(data: Any) -> None:
    """Data as indented JSON on standard output."""
    click.echo(json.dumps(msgspec.to_builtins(data), indent=2, ensure_ascii=False))


def table(title: str, *columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """An empty table in the one style that all commands use."""
    made = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made


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
    return "" if extent is None else " × ".join(f"{side:.4g}" for side in extent) + " mm"


def note_line(note: Note) -> str:
    """A note as one line."""
    return f"note: {note.message} [{note.code}]"


def summary(report: Report) -> str:
    """A conversion in one line."""
    before, after = report.source, report.target
    faces = f"{after.faces:,} faces" if before.faces == after.faces else f"{before.faces:,} → {after.faces:,} faces"
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
    return f"{value:.6g}" if isinstance(value, float) else str(value)
