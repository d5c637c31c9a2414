"""Commands in the language of the locale."""

from __future__ import annotations

import copy

import click

from meshhub.cli.catalogs import CommandTexts, texts


def translated(command: click.Command, path: str) -> click.Command:
    """Return a copy of a command, and of those below it, with the texts of the catalog; without texts, English ones.

    Args:
        command: Command with English texts.
        path: Names of the command after "meshhub", such as "keys create".
    """
    result = copy.copy(command)
    own = texts().commands.get(path, CommandTexts(help=command.help or path))
    result.help = own.help
    result.epilog = texts().epilog if command.epilog else None
    result.params = [_translate(param, own) for param in result.params]
    if isinstance(result, click.Group):
        result.commands = {name: translated(child, f"{path} {name}") for name, child in result.commands.items()}
    return result


def _translate(param: click.Parameter, own: CommandTexts) -> click.Parameter:
    """Return a copy of a flag with its text."""
    name = param.name or ""
    text = own.flags.get(name) or texts().flags.get(name)
    if text is None or not isinstance(param, click.Option):
        return param
    result = copy.copy(param)
    result.help = text
    return result
