"""`meshhub formats`, `operations` and `plugins`: the contents of the registry."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import click

from meshhub.cli import terminal
from meshhub.cli.disabling import disable, enable
from meshhub.cli.loading import load_registry
from meshhub.cli.locale import ENGLISH, language
from meshhub.cli.report_text import FEATURES
from meshhub.cli.texts import headings, labeled, tr
from meshhub.cli.verbosity import verbosity
from meshhub.model.chain import BUILT_IN
from meshhub.model.options import flag_of
from meshhub.model.plans import LOCAL
from meshhub.registry import Registry
from meshhub.supported import supported

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list_supported(registry: Registry, as_json: bool) -> Mapping[str, Any]:
    """Return the registry as plain data: English for programs, in the language of the locale for people."""
    return supported(registry, LOCAL, language=ENGLISH if as_json else language())


@click.command()
@_json
@verbosity
def formats(as_json: bool) -> None:
    """List the formats that can be read and written, with options."""
    listed: dict[str, Any] = dict(_list_supported(load_registry(), as_json)["formats"])
    if as_json:
        terminal.as_json(listed)
        return
    rows, remedies = [], []
    for name, entry in listed.items():
        write = (tr("yes") if entry["write"] else tr("no")) + (f" ({entry['requires']})" if entry["requires"] else "")
        flags = " ".join(map(flag_of, entry["options"]["properties"]))
        read = tr("yes") if entry["read"] else tr("no")
        rows.append((name, entry["label"], " ".join(entry["extensions"]), read, write, flags))
        if entry["remedy"]:
            remedies.append(tr("{name}: for more, {remedy}").format(name=name, remedy=entry["remedy"]))
    terminal.table(headings("format", "name", "extensions", "read", "write", "options"), rows)
    click.echo()
    features = next(iter(listed.values()))["features"] if listed else {}
    terminal.table(
        (tr("keeps"), *listed),
        [
            (tr(FEATURES[name]), *(_mark_feature(entry["features"][name]) for entry in listed.values()))
            for name in features
        ],
    )
    terminal.inform(tr("r: the reader keeps it, w: the writer, (w): the writer with an option, -: no"))
    for line in remedies:
        terminal.inform(line)


def _mark_feature(feature: Mapping[str, Any]) -> str:
    """Return the sides of a format that keep a feature, as letters."""
    write = "w" if feature["write"] else "(w)" if feature["options"] else ""
    return ("r" if feature["read"] else "") + write or "-"


@click.command()
@_json
@verbosity
def operations(as_json: bool) -> None:
    """List the operations in the order in which they run."""
    listed: list[Any] = list(_list_supported(load_registry(), as_json)["operations"])
    if as_json:
        terminal.as_json(listed)
        return
    rows = []
    for entry in listed:
        for name, field in entry["options"]["properties"].items():
            text = f"{field['title']}: {field.get('description', '')}".rstrip(": ")
            rows.append((entry["id"], entry["stage"], flag_of(name), text))
        if entry["remedy"]:
            rows.append(("", "", "", tr("not available: {remedy}").format(remedy=entry["remedy"])))
    terminal.table(headings("operation", "stage", "option", "what it does"), rows)


@click.command()
@_json
@verbosity
def recipes(as_json: bool) -> None:
    """List the recipes, which are named lists of options.

    `--recipe NAME` takes a listed one, and `--recipe FILE.toml` one in a file.
    """
    registry = load_registry()
    listed: dict[str, Any] = dict(_list_supported(registry, as_json)["recipes"])
    if as_json:
        terminal.as_json(listed)
        return
    rows = []
    for name, entry in listed.items():
        texts = (f"{option}={_format_value(value)}" for option, value in entry["options"].items())
        rows.append((name, entry["description"] or entry["label"], " ".join(texts)))
    terminal.table(headings("recipe", "purpose", "options"), rows)


@click.group(invoke_without_command=True)
@_json
@verbosity
@click.pass_context
def plugins(ctx: click.Context, as_json: bool) -> None:
    """List the loaded plug-ins and their faults, or disable some. Installed ones come before the built-in ones.

    \b
    meshhub plugins                 list
    meshhub plugins disable NAME    leave out a plug-in from now on
    meshhub plugins enable NAME     load it again
    """
    if ctx.invoked_subcommand is not None:
        return
    with contextlib.closing(load_registry()) as registry:
        listed: dict[str, Any] = dict(supported(registry, LOCAL))
        disabled = [{"name": plugin.name, "origin": plugin.origin} for plugin in registry.disabled_plugins]
    # a person looks for those that somebody installed; sorting keeps the order within both groups
    listed["plugins"] = sorted(listed["plugins"], key=lambda plugin: plugin["origin"] == BUILT_IN)
    if as_json:
        terminal.as_json({"plugins": listed["plugins"], "disabled": disabled, "faults": listed["faults"]})
    else:
        terminal.table(headings("plug-in", "from"), [(entry["name"], entry["origin"]) for entry in listed["plugins"]])
        for entry in disabled:
            click.echo(labeled("disabled", f"{entry['name']} ({entry['origin']})"))
        for fault in listed["faults"]:
            terminal.print_line(
                labeled("fault", f"{fault['plugin']} ({fault['origin']}): {fault['message']}"), err=True
            )
    ctx.exit(1 if listed["faults"] else 0)


plugins.add_command(disable)
plugins.add_command(enable)
