"""`meshhub plugins disable` and `enable`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from meshhub.builtin_plugins import list_builtins
from meshhub.cli import terminal
from meshhub.cli.completing import list_matches
from meshhub.cli.texts import tr
from meshhub.cli.verbosity import verbosity
from meshhub.errors import quote
from meshhub.pipeline.disabled import VARIABLE, read_disabled, read_list, split_names, write_list
from meshhub.pipeline.loading import find_entry_points

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _list_installed() -> set[str]:
    """Return the names of all plug-ins. It imports no plug-in, so that a broken one can be disabled, too."""
    return {*list_builtins(), *(point.name for point in find_entry_points())}


def _complete_loaded(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return list_matches(_list_installed() - read_disabled(), incomplete)


def _complete_disabled(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return list_matches(read_list(), incomplete)


@click.command()
@click.argument("name", shell_complete=_complete_loaded)
@verbosity
def disable(name: str) -> None:
    """Leave out a plug-in in every program of this user. Built-in ones can be disabled, too.

    The variable MESHHUB_DISABLED_PLUGINS (names, separated by commas) does the same for one process.
    """
    known = _list_installed()
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`meshhub plugins` lists the loaded ones"
        raise click.BadParameter(f"no plug-in {quote(name)} is installed; {hint}", param_hint="NAME")
    write_list(read_list() | {name})
    terminal.inform(tr("{name} is disabled").format(name=name))


@click.command()
@click.argument("name", shell_complete=_complete_disabled)
@verbosity
def enable(name: str) -> None:
    """Load a disabled plug-in again."""
    if name in split_names(os.environ.get(VARIABLE, "")):
        raise click.UsageError(f"{quote(name)} is disabled by the variable {VARIABLE}; remove it there")
    if name not in read_list():
        raise click.BadParameter(f"{quote(name)} is not disabled", param_hint="NAME")
    write_list(read_list() - {name})
    terminal.inform(tr("{name} is enabled").format(name=name))
