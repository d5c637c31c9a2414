"""`meshhub inspect`: is it printable?"""

from __future__ import annotations

from typing import Any

import click
import msgspec

from meshhub.cli import show
from meshhub.cli.exits import BATCH_FAILED, EXIT_HELP, code_of, explained, told_and_done
from meshhub.cli.files import bounded_hooks, deadline, read_from, worker_log
from meshhub.cli.flags import ReadingCommand
from meshhub.engine.isolated import Isolated
from meshhub.errors import printable
from meshhub.model.report import Inspection
from meshhub.registry import Registry


@click.command(cls=ReadingCommand, epilog=EXIT_HELP)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output, a list when there are several files.")
@click.option("--timeout", type=float, default=90.0, show_default=True, metavar="SECONDS", help="0 is no deadline.")
@click.pass_context
def inspect(
    ctx: click.Context,
    paths: tuple[str, ...],
    as_json: bool,
    timeout: float,
    options: dict[str, Any],
    registry: Registry,
) -> None:
    """Look at model files: size, bodies, holes, whether they are closed. `-` reads standard input."""
    limit = deadline(timeout)
    registry = registry.using(Isolated(method="fork", log=worker_log()), bounded_hooks(limit))
    # a command may be called within a program that goes on
    ctx.call_on_close(registry.close)
    told: list[object] = []
    status = 0
    for path in paths:
        try:
            found = registry.inspect(read_from(path), timeout=limit, **options)
        except Exception as error:
            status = told_and_done(error) if len(paths) == 1 else BATCH_FAILED
            told.append({"file": path, "error": explained(error), "error_code": code_of(error)})
            if not as_json and len(paths) > 1:
                click.echo(printable(f"error: {path}: {explained(error)}"), err=True)
            continue
        told.append({"file": path, **msgspec.to_builtins(found)})
        if not as_json:
            _print(path, found)
    if as_json:
        show.as_json(told[0] if len(told) == 1 else told)
    ctx.exit(status)


def _print(path: str, found: Inspection) -> None:
    model, source = found.model, found.source
    frame = f"{source.frame.unit}, {source.frame.up.upper()} up" if source.frame else ""
    volume = f"{model.volume_mm3:,.1f} mm³" if model.volume_mm3 is not None else "not closed, so it has none"
    if model.volume_mm3 is not None and model.volume_mm3 < 0:
        volume += ", inside out: convert it with --repair"
    rows = {
        "format": f"{source.format} ({frame}), {show.size(source.bytes)}",
        "size": show.millimetres(model.size_mm),
        "faces": f"{model.faces:,}",
        "parts": f"{model.parts:,}",
        "bodies": f"{model.bodies:,}" + (f" ({model.cavities:,} cavities)" if model.cavities else ""),
        "volume": volume,
        "holes": f"{model.holes:,}" + (f" ({model.open_edges:,} open edges)" if model.open_edges else ""),
        "non-manifold edges": f"{model.nonmanifold_edges:,}",
        "inconsistent edges": f"{model.inconsistent_edges:,}",
        "watertight": "yes" if model.watertight else "no: convert it with --repair",
        "carries": ", ".join(model.features) or "triangles only",
    }
    click.echo(click.style(printable(path), bold=True))
    show.table(("", ""), rows.items())
    for note in found.notes:
        click.echo(show.note_line(note), err=True)
