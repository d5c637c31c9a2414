"""`meshhub explain`: the chain for a request and its possible losses, without running it."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import click

from meshhub.cli import terminal
from meshhub.cli.completing import complete_files, complete_paths, complete_plans
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.flags import RegistryCommand
from meshhub.cli.locale import language
from meshhub.cli.paths import read_from
from meshhub.cli.processes import bounded_hooks, create_engine
from meshhub.cli.report_text import FEATURES, translate, translate_notes
from meshhub.cli.texts import headings, tr
from meshhub.cli.verbosity import verbosity
from meshhub.errors import quote
from meshhub.model.chain import Chain, Request
from meshhub.model.plans import LOCAL, Caller
from meshhub.registry import Registry

_TIMEOUT_S = 90.0
"""Seconds for a plug-in to identify the file; the default of `meshhub convert`."""


@click.command(cls=RegistryCommand, epilog=EXIT_HELP)
@click.argument("source", metavar="INPUT", shell_complete=complete_files)
@click.argument("target", metavar="OUTPUT|FORMAT", shell_complete=complete_paths)
@click.option(
    "--plan",
    metavar="PLAN",
    shell_complete=complete_plans,
    help="Explain it for a customer of this plan (default: no restriction).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the chain as JSON.")
@verbosity
def explain(
    source: str, target: str, plan: str | None, as_json: bool, options: dict[str, Any], registry: Registry
) -> None:
    """Show the steps and losses of a conversion without running it.

    OUTPUT may be a file name, which need not exist, or only a format. With --plan, a conversion that
    the plan does not allow ends with the error that its customer gets.
    """
    registry = registry.using(create_engine(1), bounded_hooks(_TIMEOUT_S))
    click.get_current_context().call_on_close(registry.close)
    request = Request(target=PurePath(target).suffix or target, options=options)
    caller = _choose_caller(registry, plan)
    with registry.open_model(read_from(source), options) as opened:
        chain = registry.resolve(request, opened, caller)
    if as_json:
        terminal.as_json(chain)
    else:
        _print_chain(chain, registry)


def _choose_caller(registry: Registry, plan: str | None) -> Caller:
    """Return a caller with a plan, by its id; LOCAL by default."""
    if plan is None:
        return LOCAL
    if plan not in registry.plans:
        known = ", ".join(sorted(registry.plans))
        raise click.BadParameter(f"unknown plan {quote(plan)}; known are {known}", param_hint="--plan")
    return Caller(plan=registry.plans[plan])


def _print_chain(chain: Chain, registry: Registry) -> None:
    texts = registry.texts(language())
    rows = []
    for step in chain.steps:
        options = " ".join(f"{name}={value}" for name, value in step.options.items())
        frame = ""
        if step.frame:
            frame = tr(" in {unit}, {axis} up").format(unit=step.frame.unit, axis=step.frame.up.upper())
        labels = texts.operations if step.kind == "operation" else texts.formats
        label = labels.get(step.id, step.label) + frame
        rows.append((tr(step.kind), label, options, translate(step.because, registry), step.plugin))
    terminal.table(headings("step", "what", "options", "because", "plug-in"), rows)
    if chain.losses:
        click.echo(tr("could be lost, if the file has them:"))
        for loss in chain.losses:
            place = tr("(at {step})").format(step=loss.step)
            click.echo(f"  {tr(FEATURES[loss.feature])} {place}")
    else:
        click.echo(tr("nothing is lost"))
    terminal.print_notes(translate_notes(chain.notes, registry))
