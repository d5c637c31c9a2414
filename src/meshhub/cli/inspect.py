"""`meshhub inspect`: is it printable?"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, cast

import click

from meshhub.cli import report_text, terminal
from meshhub.cli.completing import complete_files
from meshhub.cli.each_file import examine_each
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.flags import ReadingCommand
from meshhub.cli.paths import STREAM, is_folder, list_inputs, read_from
from meshhub.cli.processes import bounded_hooks, create_engine, parse_timeout, timeout_option
from meshhub.cli.texts import count, localize, show_number, tr
from meshhub.cli.verbosity import is_quiet, verbosity
from meshhub.errors import MeshhubError, printable
from meshhub.model.options import flag_of
from meshhub.model.report import Inspection
from meshhub.model.source import Target
from meshhub.registry import Registry

if TYPE_CHECKING:
    from meshhub.cli.terminal_pictures import Protocol

_PICTURE_S = 10.0
"""Seconds to draw a picture; the facts are already printed."""

_PICTURE_SIZE = "480x360"

_SURFACE_ROWS = ("volume", "holes", "non-manifold edges", "inconsistent edges", "watertight")
"""Facts about surfaces, which say nothing about toolpaths."""


@click.command(cls=ReadingCommand, purpose="inspect", epilog=EXIT_HELP)
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...", shell_complete=complete_files)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; a list for several files or a folder.")
@timeout_option
@click.option(
    "--picture",
    type=click.Choice(["auto", "no", "kitty", "iterm2"]),
    default="auto",
    show_default=True,
    help="Show a small picture, if the terminal can.",
)
@verbosity
@click.pass_context
def inspect(
    ctx: click.Context,
    paths: tuple[str, ...],
    as_json: bool,
    timeout: float,
    picture: str,
    options: dict[str, Any],
    registry: Registry,
) -> None:
    """Inspect models: size, bodies, holes, whether they are closed.

    A folder stands for its model files, `-` for standard input.
    """
    is_several = len(paths) > 1 or is_folder(paths[0])
    files = [file for path in paths for file in list_inputs(registry, path)]
    limit = parse_timeout(timeout)
    registry = registry.using(create_engine(1), bounded_hooks(limit))
    # a program that calls this command may continue afterwards
    ctx.call_on_close(registry.close)
    protocol = None if as_json or is_quiet() or picture == "no" else _choose_protocol(picture)

    def print_result(path: str, inspection: Inspection) -> None:
        _print_inspection(path, inspection, registry)
        if protocol is not None and path != STREAM:
            _print_picture(path, registry, options, protocol)

    results, status = examine_each(
        files,
        lambda path: registry.inspect(read_from(path), timeout=limit, **options),
        print_result,
        as_json=as_json,
        is_several=is_several,
    )
    if as_json:
        terminal.as_json(results if is_several else results[0])
    ctx.exit(status)


def _choose_protocol(picture: str) -> Protocol | None:
    """Return how to show a picture; None without a terminal that can."""
    if picture != "auto":
        return cast("Protocol", picture)
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    from meshhub.cli.terminal_pictures import find_protocol

    return find_protocol()


def _print_picture(path: str, registry: Registry, options: dict[str, Any], protocol: Protocol) -> None:
    """Print a small picture of a model; none if drawing fails, because the facts are already there."""
    from meshhub.cli.terminal_pictures import encode_picture

    target = Target()
    with contextlib.suppress(MeshhubError):
        registry.render(read_from(path), target, timeout=_PICTURE_S, size=_PICTURE_SIZE, **options)
        click.echo(encode_picture(target.read(), protocol))


def _print_inspection(path: str, inspection: Inspection, registry: Registry) -> None:
    model, source = inspection.model, inspection.source
    advice = _advise_repair(registry)
    frame = ""
    if source.frame:
        frame = tr("{unit}, {axis} up").format(unit=source.frame.unit, axis=source.frame.up.upper())
    volume = tr("none, the surface is not closed")
    if model.volume_mm3 is not None:
        volume = f"{localize(f'{model.volume_mm3:,.1f}')} mm³"
        if model.volume_mm3 < 0:
            volume += f", {tr('inside out')}{advice}"
    cavities = f" ({count(model.cavities, 'cavity', 'cavities')})" if model.cavities else ""
    edges = f" ({count(model.open_edges, 'open edge', 'open edges')})" if model.open_edges else ""
    rows = {
        "format": f"{source.format} ({frame}), {report_text.format_bytes(source.bytes)}",
        "size": report_text.format_size(model.size_mm),
        "faces": show_number(model.faces),
        "parts": show_number(model.parts),
        "bodies": show_number(model.bodies) + cavities,
        "volume": volume,
        "holes": show_number(model.holes) + edges,
        "non-manifold edges": show_number(model.nonmanifold_edges),
        "inconsistent edges": show_number(model.inconsistent_edges),
        "watertight": tr("yes") if model.watertight else tr("no") + advice,
        "carries": ", ".join(tr(report_text.FEATURES[name]) for name in model.features) or tr("triangles only"),
    }
    if "layers_mm" in inspection.figures:
        # overlapping lines of a toolpath are not defects
        for name in _SURFACE_ROWS:
            del rows[name]
    click.echo(click.style(printable(path), bold=True))
    terminal.table(("", ""), [(tr(label), value) for label, value in rows.items()])
    for line in report_text.list_features(inspection.feature_table):
        terminal.print_line(line)
    terminal.print_notes(report_text.translate_notes(inspection.notes, registry))


def _advise_repair(registry: Registry) -> str:
    """Return the advice for a model that is not closed; "" if no installed operation repairs meshes."""
    operations = registry.declarations.operations
    names = (item.capability.solves.get("open_mesh") for item in operations if not item.missing)
    name = next(filter(None, names), None)
    return "" if name is None else tr(": convert it with {flag}").format(flag=flag_of(name))
