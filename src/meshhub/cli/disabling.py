"""`meshhub plugins disable` and `enable`."""

from __future__ import annotations

import difflib
import os
from importlib import metadata

import click

from meshhub.builtin_plugins import BUILTINS
from meshhub.cli import show
from meshhub.cli.verbosity import verbosity
from meshhub.errors import quote
from meshhub.pipeline.disabled import VARIABLE, read_list, split_names, write_list
from meshhub.pipeline.loading import GROUP


@click.command()
@click.argument("name")
@verbosity
def disable(name: str) -> None:
    """Leave out a plug-in, built-in or installed, in every command, service and program of this user.

    The variable MESHHUB_DISABLED_PLUGINS (names, separated by commas) does the same for one process.
    """
    # the plug-in is not imported: a broken one can be disabled, too
    known = {*BUILTINS, *(point.name for point in metadata.entry_points(group=GROUP))}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`meshhub plugins` lists the loaded ones"
        raise click.BadParameter(f"no plug-in {quote(name)} is installed; {hint}", param_hint="NAME")
    write_list(read_list() | {name})
    show.inform(f"{name} is disabled")


@click.command()
@click.argument("name")
@verbosity
def enable(name: str) -> None:
    """Load a disabled plug-in again."""
    if name in split_names(os.environ.get(VARIABLE, "")):
        raise click.UsageError(f"{quote(name)} is disabled by the variable {VARIABLE}; remove it there")
    if name not in read_list():
        raise click.BadParameter(f"{quote(name)} is not disabled", param_hint="NAME")
    write_list(read_list() - {name})
    show.inform(f"{name} is enabled")
