"""Layout of help texts: narrow terminals, and headings in the language of the locale."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

import click

from meshhub.cli.texts import tr

MAX_WIDTH = 100
"""Maximum characters of a line; longer lines are hard to read."""

_MIN_WIDTH = 30
"""Minimum characters of a line; a narrower terminal wraps the lines itself."""

_NARROW = 60
"""Characters under which texts stand below flags, because two columns would break most words."""

_INDENT = " " * 6
"""Indent of a text below its flag."""


class Formatter(click.HelpFormatter):
    """Formatter that wraps at words in any width."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line."""
        super().write_usage(prog, args, tr("Usage: ") if prefix is None else prefix)

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        super().write_heading(tr(heading))

    def write_text(self, text: str) -> None:
        """Write paragraphs; on a narrow terminal, wrap also the lines that click would keep as they are."""
        if self.width >= _NARROW:
            super().write_text(text)
            return
        indent = " " * self.current_indent
        for number, paragraph in enumerate(text.split("\n\n")):
            if number:
                self.write("\n")
            is_kept = paragraph.startswith("\b")
            lines = paragraph.removeprefix("\b\n").split("\n") if is_kept else [" ".join(paragraph.split())]
            for line in lines:
                hanging = indent + ("  " if is_kept else "")
                self.write(_fill(" ".join(line.split()), self.width, indent, hanging) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write flags and their texts, side by side or, on a narrow terminal, one below the other."""
        translated = [(first, tr(second)) for first, second in rows]
        if self.width >= _NARROW:
            super().write_dl(translated, col_max, col_spacing)
            return
        for first, second in translated:
            indent = " " * self.current_indent
            self.write(_fill(first, self.width, indent, indent + "  ") + "\n")
            if second:
                self.write(_fill(second, self.width, _INDENT, _INDENT) + "\n")


def _fill(text: str, width: int, first: str, others: str) -> str:
    """Wrap a text at words, with the indents of the first line and of others."""
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


class HelpContext(click.Context):
    """Context of a command whose help has the width of the terminal."""

    formatter_class = Formatter

    def make_formatter(self) -> click.HelpFormatter:
        """Return the formatter; click's would never be narrower than 50 characters."""
        width = min(shutil.get_terminal_size().columns, MAX_WIDTH) - 2
        return Formatter(width=max(width, _MIN_WIDTH))


def use_layout(command: click.Command) -> None:
    """Lay out the help of a command and of those below it as this module does."""
    command.context_class = HelpContext
    for child in getattr(command, "commands", {}).values():
        use_layout(child)
