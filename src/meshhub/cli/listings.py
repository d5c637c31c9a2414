"""`meshhub formats`, `operations` and `plugins`: what the registry holds."""

from __future__ import annotations

import contextlib
from typing import Any

import click
import msgspec

from meshhub.cli import show
from meshhub.engine.hook_process import HookProcess
from meshhub.engine.plugin_records import PluginRecords
from meshhub.model.plans import LOCAL
from meshhub.registry import Registry
from meshhub.supported import supported

_json = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")


def _options(properties: dict[str, Any]) -> str:
    return " ".join("--" + name.replace("_", "-") for name in properties)


@click.command()
@_json
def formats(as_json: bool) -> None:
    """List the formats that can be read and written, with their options."""
    told = supported(Registry(), LOCAL)
    if as_json:
        show.as_json(told["formats"])
        return
    rows, remedies = [], []
    for name, one in told["formats"].items():
        write = ("yes" if one["write"] else "no") + (f" ({one['requires']})" if one["requires"] else "")
        options = _options(one["options"]["properties"])
        rows.append((name, one["label"], " ".join(one["extensions"]), "yes" if one["read"] else "no", write, options))
        if one["remedy"]:
            remedies.append(f"{name}: for more, {one['remedy']}")
    show.table(("format", "name", "extensions", "read", "write", "options"), rows)
    for line in remedies:
        click.echo(line, err=True)


@click.command()
@_json
def operations(as_json: bool) -> None:
    """List the operations in the order they run, with their options."""
    told = supported(Registry(), LOCAL)
    if as_json:
        show.as_json(told["operations"])
        return
    rows = []
    for one in told["operations"]:
        for name, field in one["options"]["properties"].items():
            text = f"{field['title']}: {field.get('description', '')}".rstrip(": ")
            rows.append((one["id"], one["stage"], "--" + name.replace("_", "-"), text))
        if one["remedy"]:
            rows.append(("", "", "", f"not available: {one['remedy']}"))
    show.table(("operation", "stage", "option", "what it does"), rows)


@click.command()
@_json
@click.pass_context
def plugins(ctx: click.Context, as_json: bool) -> None:
    """List the plug-ins that are loaded, and what is wrong with any of them."""
    records = PluginRecords()
    # plug-ins that hang, or end the process, when they are loaded are listed as faults
    with contextlib.closing(Registry(hooks=HookProcess(method="fork", records=records))) as registry:
        told = supported(registry, LOCAL)
    told["faults"] += msgspec.to_builtins(records.faults())
    if as_json:
        show.as_json({"plugins": told["plugins"], "faults": told["faults"]})
    else:
        show.table(("plug-in", "from"), [(one["name"], one["origin"]) for one in told["plugins"]])
        for fault in told["faults"]:
            click.echo(f"fault: {fault['plugin']} ({fault['origin']}): {fault['message']}", err=True)
    ctx.exit(1 if told["faults"] else 0)
