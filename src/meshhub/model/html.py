"""HTML for notebooks: tables of facts. All texts are escaped, because names come from untrusted files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from meshhub.errors import format_number, printable

MAX_LISTED_ROWS = 20
"""Maximum rows of one kind, such as notes; more are only counted."""

_MAX_CELL_LENGTH = 200
"""Maximum characters of one cell."""

Size = Sequence[float] | None
"""Extents along X, Y and Z in millimeters."""


def format_table(title: str, rows: Iterable[tuple[str, object]], picture: str = "") -> str:
    """Return a table of facts.

    Args:
        title: Caption.
        rows: Label and value of each row; rows with the value "" or None are left out.
        picture: URI of a picture to show beside the table.
    """
    cells = "".join(
        f'<tr><th style="text-align:left">{_escape(label)}</th><td style="text-align:left">{_escape(value)}</td></tr>'
        for label, value in rows
        if value not in ("", None)
    )
    table = f'<table><caption style="text-align:left"><b>{_escape(title)}</b></caption>{cells}</table>'
    if not picture:
        return table
    import html

    image = f'<img src="{html.escape(picture)}" alt="{_escape(title)}">'
    return f'<div style="display:flex;flex-wrap:wrap;align-items:center;gap:1em">{image}{table}</div>'


def list_rows(label: str, values: Sequence[object]) -> list[tuple[str, object]]:
    """Return a row for each value, and a row that counts the values beyond the maximum."""
    rows: list[tuple[str, object]] = [(label, value) for value in values[:MAX_LISTED_ROWS]]
    if len(values) > MAX_LISTED_ROWS:
        rows.append((label, f"and {len(values) - MAX_LISTED_ROWS:,} more"))
    return rows


def format_size(size: Size) -> str:
    """Format extents in millimeters; "" for None."""
    return "" if size is None else " × ".join(format_number(side, 4) for side in size) + " mm"


def _escape(value: object) -> str:
    import html

    text = printable(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
    return html.escape(text if len(text) <= _MAX_CELL_LENGTH else text[: _MAX_CELL_LENGTH - 1] + "…")
