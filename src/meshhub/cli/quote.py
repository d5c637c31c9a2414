"""`meshhub quote`: estimate and price of prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import click

from meshhub.cli import terminal
from meshhub.cli.completing import complete_files
from meshhub.cli.each_file import examine_each
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.flags import ReadingCommand
from meshhub.cli.paths import is_folder, list_inputs, read_from
from meshhub.cli.processes import bounded_hooks, create_engine, parse_timeout, timeout_option
from meshhub.cli.remote import check_remote_sources, open_client, waiting_at_limits
from meshhub.cli.report_text import format_size, translate, translate_notes
from meshhub.cli.server_flags import check_remote_timeout, server_option
from meshhub.cli.texts import count, localize, show_number, tr
from meshhub.cli.verbosity import verbosity
from meshhub.errors import printable
from meshhub.model.quote import Price, Quote
from meshhub.pipeline.rate_files import read_rates
from meshhub.registry import Registry


@click.command(cls=ReadingCommand, purpose="quote", topic="Quote and print", epilog=EXIT_HELP)
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...", shell_complete=complete_files)
@click.option(
    "--rates",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Rate card (TOML); without one, the quote has no price.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; a list for several files or a folder.")
@timeout_option
@server_option
@verbosity
@click.pass_context
def quote(  # noqa: PLR0913 - click passes each flag as a keyword
    ctx: click.Context,
    paths: tuple[str, ...],
    rates: str | None,
    as_json: bool,
    timeout: float,
    server: str | None,
    options: dict[str, Any],
    registry: Registry,
) -> None:
    """Estimate weight, support and time of prints, and their price.

    Each file is an order of its own. With options of operations, each model is quoted after them. A folder stands for
    its model files, `-` for standard input.

    \b
    meshhub quote bracket.stl
    meshhub quote bracket.stl --rates rates.toml --material pla --quantity 10
    meshhub quote bracket.stl --print-infill-percent 40 --slicer
    meshhub quote bracket.stl --server https://meshhub.example
    """
    is_several = len(paths) > 1 or is_folder(paths[0])
    files = [file for path in paths for file in list_inputs(registry, path)]
    with terminal.errors_as_json(as_json):
        quote_model = (
            _open_service(ctx, registry, files, server, rates, options)
            if server
            else _open_registry(ctx, registry, parse_timeout(timeout), rates, options)
        )
    results, status = examine_each(
        files,
        quote_model,
        partial(_print_quote, registry=registry),
        as_json=as_json,
        is_several=is_several,
    )
    if as_json:
        terminal.as_json(results if is_several else results[0])
    ctx.exit(status)


def _open_registry(
    ctx: click.Context, registry: Registry, timeout_s: float | None, rates: str | None, options: dict[str, Any]
) -> Callable[[str], Quote]:
    """Return a function that quotes a model on this machine. Raises MeshhubError."""
    card = read_rates(rates) if rates is not None else None
    registry = registry.using(create_engine(1), bounded_hooks(timeout_s))
    # a program that calls this command may continue afterwards
    ctx.call_on_close(registry.close)
    return lambda path: registry.quote(read_from(path), rates=card, timeout=timeout_s, **options)


def _open_service(
    ctx: click.Context,
    registry: Registry,
    files: Sequence[str],
    server: str,
    rates: str | None,
    options: dict[str, Any],
) -> Callable[[str], Quote]:
    """Return a function that quotes one of the files on a service. Raises click.UsageError, MeshhubError."""
    if rates is not None:
        raise click.UsageError("--server uses the rate card of the service; omit --rates")
    check_remote_timeout(ctx)
    check_remote_sources(registry, *files)
    client = ctx.with_resource(open_client(server))
    return lambda path: waiting_at_limits(lambda: client.quote(path, options=options))


def _print_quote(path: str, result: Quote, registry: Registry) -> None:
    estimate = result.estimate
    say = partial(translate, registry=registry)
    click.echo(click.style(printable(path), bold=True))
    volume, area = (show_number(value, 4) for value in (estimate.volume_mm3 / 1000, estimate.area_mm2))
    surface = tr("surface {area} mm²").format(area=area)
    lines = [
        (tr("size"), format_size(estimate.size_mm)),
        (tr("volume"), f"{volume} cm³, {surface}"),
        (tr("weight"), say(estimate.describe_weight())),
        (tr("time"), tr("{time}, by {method}").format(time=say(estimate.describe_time()), method=tr(estimate.method))),
    ]
    if len(estimate.parts) > 1:
        lines += [
            (tr("part"), printable(f"{part.name or number}: {show_number(part.weight_g, 3)} g"))
            for number, part in enumerate(estimate.parts, 1)
        ]
    width = max(len(label) for label, _ in lines) + 2
    for label, text in lines:
        terminal.print_line(f"{label:{width}}{text}", indent="  ")
    if result.price is not None:
        _print_price(result.price)
    terminal.print_notes(translate_notes(result.notes, registry), indent="  ")


def _print_price(price: Price) -> None:
    pieces = count(price.quantity, "piece", "pieces")
    summands: list[tuple[str, Decimal]] = [
        (tr("material"), price.material),
        (tr("machine time"), price.machine_time),
        (tr("energy"), price.energy),
        (tr("failed pieces"), price.failures),
        (tr("setup"), price.setup),
        *((printable(wage.step), wage.amount) for wage in price.wages),
        (tr("packaging"), price.packaging),
        (tr("quantity discount"), price.quantity_discount),
        (tr("margin"), price.margin),
        (tr("up to the minimum"), price.minimum_surcharge),
        (tr("rounding"), price.rounding),
        (tr("tax"), price.tax),
    ]
    for label, amount in summands:
        if amount:
            click.echo(f"  {label:20}{localize(f'{amount:,}'):>12} {price.currency}")
    total = click.style(f"  {pieces:20}{localize(f'{price.total:,}'):>12} {price.currency}", bold=True)
    each = tr(", {price} each").format(price=localize(f"{price.per_piece:,}")) if price.quantity > 1 else ""
    click.echo(total + each)
