"""`meshhub explain`: the chain for a request, and what would be lost, without running it."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import click

from meshhub.cli import show
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.files import bounded_hooks, read_from
from meshhub.cli.flags import RegistryCommand
from meshhub.model.chain import Request
from meshhub.registry import Registry

_TIMEOUT_S = 90.0
"""Seconds for a plug-in to look at the file, as `meshhub convert` gives it by default."""


@click.command(cls=RegistryCommand, epilog=EXIT_HELP)
@click.argument("source", metavar="INPUT")
@click.argument("target", metavar="OUTPUT|FORMAT")
@click.option("--json", "as_json", is_flag=True, help="The chain as JSON.")
def explain(source: str, target: str, as_json: bool, options: dict[str, Any], registry: Registry) -> None:
    """Show the steps a conversion would take, why, and what could be lost; nothing is converted.

    OUTPUT may be a file name, which need not exist, or just a format.
    """
    registry = registry.using(registry.engine, bounded_hooks(_TIMEOUT_S))
    click.get_current_context().call_on_close(registry.close)
    wanted = PurePath(target).suffix or target
    chain = registry.resolve(Request(target=wanted, options=options), read_from(source))
    if as_json:
        show.as_json(chain)
        return
    rows = []
    for step in chain.steps:
        given = " ".join(f"{name}={value}" for name, value in step.options.items())
        frame = f" in {step.frame.unit}, {step.frame.up.upper()} up" if step.frame else ""
        rows.append((step.kind, step.label + frame, given, step.because, step.plugin))
    show.table(("step", "what", "options", "because", "plug-in"), rows)
    if chain.losses:
        click.echo("could be lost, if the file has them:")
        for loss in chain.losses:
            click.echo(f"  {loss.feature} (at {loss.step})")
    else:
        click.echo("nothing is lost")
    for note in chain.notes:
        click.echo(show.note_line(note), err=True)
