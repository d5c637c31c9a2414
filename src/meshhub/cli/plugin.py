"""`meshhub plugin new`: the distribution of a new plug-in."""

from __future__ import annotations

import errno
import re
import shutil
import tempfile
from pathlib import Path

import click

from meshhub.cli import terminal
from meshhub.cli.loading import load_registry
from meshhub.cli.plugin_files import NewPlugin, list_files
from meshhub.cli.verbosity import verbosity
from meshhub.errors import quote
from meshhub.registry import Registry

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FORMAT = re.compile(r"[a-z][a-z0-9]{0,15}")

_MAX_NAME_LENGTH = 40
"""Maximum characters of a name, which becomes a part of the names of folders, modules and options."""


@click.group()
def plugin() -> None:
    """Write plug-ins."""


@plugin.command()
@click.argument("name")
@click.option("--reader", metavar="EXT", help="Read files with this extension.")
@click.option("--writer", metavar="EXT", help="Write files with this extension.")
@click.option("--operation", metavar="NAME", help="Add an operation.")
@click.option("--check", metavar="NAME", help="Add a check of models.")
@click.option("--recipe", metavar="NAME", help="Add a recipe.")
@click.option("--policy", is_flag=True, help="Add a plan, a review of requests and a listener.")
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Folder to create (default: meshhub-NAME in this folder)."
)
@verbosity
def new(  # noqa: PLR0913 - click passes each flag as a keyword
    name: str,
    reader: str | None,
    writer: str | None,
    operation: str | None,
    check: str | None,
    recipe: str | None,
    policy: bool,
    folder: Path | None,
) -> None:
    """Write the distribution of a plug-in. It installs, converts and passes its tests.

    \b
    meshhub plugin new acme --reader tri --writer tri
    cd meshhub-acme && pip install -e . pytest && pytest

    It contains pyproject.toml, the package, tests with the conformance kit, README, LICENSE and a file
    for CI. Nothing is overwritten.
    """
    name = name.removeprefix("meshhub-")
    reader, writer = (None if text is None else text.lower().removeprefix(".") for text in (reader, writer))
    parts = NewPlugin(name, reader, writer, operation, check, recipe, policy)
    if not any((reader, writer, operation, check, recipe, policy)):
        raise click.UsageError(
            "choose what the plug-in adds: --reader, --writer, --operation, --check, --recipe or --policy"
        )
    _check_names(parts)
    _check_conflicts(load_registry(), parts)
    place = folder or Path(f"meshhub-{name}")
    _write_files(place, list_files(parts))
    terminal.inform(f"{place}: pip install -e . pytest, then pytest")


def _check_names(parts: NewPlugin) -> None:
    """Reject names that modules and options cannot have."""
    for text, pattern, parameter, rule in (
        (parts.name, _NAME, "NAME", "lower-case words of letters and digits, joined by -"),
        (parts.operation, _NAME, "--operation", "lower-case words of letters and digits, joined by -"),
        (parts.check, _NAME, "--check", "lower-case words of letters and digits, joined by -"),
        (parts.recipe, _NAME, "--recipe", "lower-case words of letters and digits, joined by -"),
        (parts.reader, _FORMAT, "--reader", "at most 16 lower-case letters and digits"),
        (parts.writer, _FORMAT, "--writer", "at most 16 lower-case letters and digits"),
    ):
        if text is not None and not (pattern.fullmatch(text) and len(text) <= _MAX_NAME_LENGTH):
            raise click.BadParameter(f"{quote(text)} must be {rule}; a letter comes first", param_hint=parameter)


def _check_conflicts(registry: Registry, parts: NewPlugin) -> None:
    """Reject names that exist on this machine, because they would make the plug-in a fault."""
    if parts.name in {plugin.name for plugin in registry.plugins} | {plugin.plugin for plugin in registry.faults}:
        raise click.BadParameter(f"a plug-in {parts.name!r} is installed; choose another name", param_hint="NAME")
    for format_id, parameter in ((parts.reader, "--reader"), (parts.writer, "--writer")):
        if format_id is not None and registry.declarations.format_of(format_id) is not None:
            raise click.BadParameter(f"the format {format_id!r} exists already", param_hint=parameter)
    if parts.operation is not None and parts.operation in registry.operations:
        raise click.BadParameter(f"the operation {parts.operation!r} exists already", param_hint="--operation")
    if parts.check in {check.capability.id for check in registry.declarations.checks}:
        raise click.BadParameter(f"the check {parts.check!r} exists already", param_hint="--check")
    if parts.recipe is not None and parts.recipe in registry.recipes:
        raise click.BadParameter(f"the recipe {parts.recipe!r} exists already", param_hint="--recipe")
    if parts.policy and parts.name in registry.plans:
        raise click.BadParameter(f"a plan {parts.name!r} exists already; choose another name", param_hint="NAME")
    options = {f"{parts.writer}_decimals"} if parts.writer else set()
    options |= {parts.option} if parts.operation else set()
    options |= {parts.check_option} if parts.check else set()
    known = registry.options.keys() | registry.declarations.check_fields().keys()
    for option in sorted(options & known):
        raise click.UsageError(f"the option {option!r} exists already; choose other names")


def _write_files(place: Path, files: dict[str, str]) -> None:
    """Write the files into a new folder: all of them, or none."""
    if place.exists() or place.is_symlink():
        raise click.UsageError(f"{place} exists already; name another --folder")
    if not place.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is not a folder; create it first", str(place.parent))
    staged = Path(tempfile.mkdtemp(prefix=".meshhub-", dir=place.parent))
    try:
        for name, text in files.items():
            path = staged / "plugin" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (staged / "plugin").rename(place)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
