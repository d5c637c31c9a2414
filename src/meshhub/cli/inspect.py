"""`meshhub inspect`: is it printable?"""

from __future__ import annotations

from typing import Any

import click

from meshhub.cli import report_text, terminal
from meshhub.cli.completing import complete_files
from meshhub.cli.each_file import examine_each
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.flags import ReadingCommand
from meshhub.cli.paths import is_folder, list_inputs, read_from
from meshhub.cli.processes import bounded_hooks, parse_timeout, worker_log
from meshhub.cli.verbosity import verbosity
from meshhub.engine.isolated import Isolated
from meshhub.errors import printable
from meshhub.model.options import flag_of
from meshhub.model.report import Inspection
from meshhub.registry import Registry


@click.command(cls=ReadingCommand, epilog=EXIT_HELP)
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...", shell_complete=complete_files)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; a list for several files or a folder.")
@click.option(
    "--timeout", type=float, default=90.0, show_default=True, metavar="SECONDS", help="Limit per file; 0 for none."
)
@verbosity
@click.pass_context
def inspect(
    ctx: click.Context,
    paths: tuple[str, ...],
    as_json: bool,
    timeout: float,
    options: dict[str, Any],
    registry: Registry,
) -> None:
    """Inspect models: size, bodies, holes, whether they are closed.

    A folder stands for its model files, `-` for standard input.
    """
    is_several = len(paths) > 1 or is_folder(paths[0])
    files = [file for path in paths for file in list_inputs(registry, path)]
    limit = parse_timeout(timeout)
    registry = registry.using(Isolated(method="fork", log=worker_log()), bounded_hooks(registry, limit))
    # a program that calls this command may continue afterwards
    ctx.call_on_close(registry.close)
    results, status = examine_each(
        files,
        lambda path: registry.inspect(read_from(path), timeout=limit, **options),
        lambda path, inspection: _print_inspection(path, inspection, registry),
        as_json=as_json,
        is_several=is_several,
    )
    if as_json:
        terminal.as_json(results if is_several else results[0])
    ctx.exit(status)


def _print_inspection(path: str, inspection: Inspection, registry: Registry) -> None:
    model, source = inspection.model, inspection.source
    advice = _advise_repair(registry)
    frame = f"{source.frame.unit}, {source.frame.up.upper()} up" if source.frame else ""
    volume = f"{model.volume_mm3:,.1f} mm³" if model.volume_mm3 is not None else "none, the surface is not closed"
    if model.volume_mm3 is not None and model.volume_mm3 < 0:
        volume += f", inside out{advice}"
    rows = {
        "format": f"{source.format} ({frame}), {report_text.format_bytes(source.bytes)}",
        "size": report_text.format_size(model.size_mm),
        "faces": f"{model.faces:,}",
        "parts": f"{model.parts:,}",
        "bodies": f"{model.bodies:,}" + (f" ({model.cavities:,} cavities)" if model.cavities else ""),
        "volume": volume,
        "holes": f"{model.holes:,}" + (f" ({model.open_edges:,} open edges)" if model.open_edges else ""),
        "non-manifold edges": f"{model.nonmanifold_edges:,}",
        "inconsistent edges": f"{model.inconsistent_edges:,}",
        "watertight": "yes" if model.watertight else f"no{advice}",
        "carries": ", ".join(model.features) or "triangles only",
    }
    click.echo(click.style(printable(path), bold=True))
    terminal.table(("", ""), rows.items())
    for line in report_text.list_features(inspection.feature_table):
        terminal.print_line(line)
    terminal.print_notes(inspection.notes)


def _advise_repair(registry: Registry) -> str:
    """Return the advice for a model that is not closed; "" if no installed operation repairs meshes."""
    operations = registry.declarations.operations
    names = [operation.capability.repairs_meshes for operation in operations if not operation.missing]
    name = next(filter(None, names), None)
    return "" if name is None else f": convert it with {flag_of(name)}"
