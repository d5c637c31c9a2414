"""The manual pages, in share/man/man1 of an installation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import metadata

import click

from meshhub.cli import root
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.flags import RegistryCommand
from meshhub.registry import Registry


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    return dict(_pages(root, click.Context(root, info_name="meshhub")))


def _pages(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    if isinstance(command, RegistryCommand):
        command.attach(Registry(entry_points=False))
    yield f"{context.command_path.replace(' ', '-')}.1", "\n".join(_page(command, context)) + "\n"
    if isinstance(command, click.Group):
        for name, child in _children(command, context):
            yield from _pages(child, click.Context(child, info_name=name, parent=context))


def _children(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        child = group.get_command(context, name)
        assert child is not None
        yield name, child


def _page(command: click.Command, context: click.Context) -> Iterator[str]:
    path = context.command_path
    name = path.replace(" ", "-")
    yield f'.TH "{_escape(name.upper())}" 1 "" "meshhub {metadata.version("meshhub")}" "meshhub"'
    yield ".SH NAME"
    yield f"{_escape(name)} \\- {_escape(command.get_short_help_str(200).rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f"\\fB{_escape(path)}\\fR {_escape(' '.join(command.collect_usage_pieces(context)))}"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(command.help or "")
    options = [param for param in command.get_params(context) if isinstance(param, click.Option) and not param.hidden]
    yield ".SH OPTIONS"
    for option in options:
        yield from _option(option, context)
    if isinstance(command, RegistryCommand):
        yield ".PP"
        yield "Installed plug\\-ins may add options; \\fB\\-\\-help\\-all\\fR lists them."
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        for child_name, child in _children(command, context):
            yield ".TP"
            yield f"\\fB{_escape(f'{name}-{child_name}')}\\fR(1)"
            yield _line(child.get_short_help_str(200))
    yield ".SH EXIT STATUS"
    for status in " ".join(EXIT_HELP.removeprefix("\b\n").split()).removeprefix("Exit status: ").split(" · "):
        number, _, meaning = status.partition(" ")
        yield ".TP"
        yield f"\\fB{number}\\fR"
        yield _line(meaning)
    if context.parent is not None:
        yield ".SH SEE ALSO"
        yield f"\\fB{_escape(context.parent.command_path.replace(' ', '-'))}\\fR(1)"


def _option(option: click.Option, context: click.Context) -> Iterator[str]:
    names = ", ".join(f"\\fB{_escape(name)}\\fR" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" \\fI{_escape(option.make_metavar(context))}\\fR"
    yield ".TP"
    yield names + value
    default = f" Default: {option.default}." if option.show_default else ""
    yield _line((option.help or "") + default)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; those that click keeps as they are keep their lines."""
    for number, paragraph in enumerate(inspect.cleandoc(text).replace("\n\f\n", "\n\n").split("\n\n")):
        if number:
            yield ".PP"
        if paragraph.startswith("\b\n"):
            yield ".nf"
            yield from map(_line, paragraph.removeprefix("\b\n").split("\n"))
            yield ".fi"
        else:
            yield _line(" ".join(paragraph.split()))


def _line(text: str) -> str:
    """Return text that begins a line: a dot or an apostrophe there would be a request."""
    escaped = _escape(text)
    return f"\\&{escaped}" if escaped.startswith((".", "\\(aq", " ")) else escaped


def _escape(text: str) -> str:
    """Escape text for roff; only ASCII remains."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return re.sub(r"[^\x00-\x7f]", lambda match: f"\\[u{ord(match[0]):04X}]", text)
