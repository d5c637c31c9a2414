"""Generators of the reference pages, one module per page, and the Markdown that they share."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub import Registry

REGISTRY = Registry(entry_points=False)
"""Only the built-in plug-ins, so that the pages do not depend on the installed ones."""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(heads)]
    lines += [["---"] * len(lines[0]), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|") or "–"


def code(text: object) -> str:
    """Return text as inline code, or a dash for none."""
    return f"`{text}`" if text not in (None, "") else "–"


def page_of(*blocks: str) -> str:
    """Return a page of blocks, separated by blank lines."""
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"
