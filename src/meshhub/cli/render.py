"""`meshhub render`: a picture of a model, or of a model before and after operations."""

from __future__ import annotations

import sys
from typing import Any

import click

from meshhub.cli import report_text, terminal
from meshhub.cli.completing import complete_files
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.flags import ReadingCommand
from meshhub.cli.outputs import check_distinct
from meshhub.cli.paths import STREAM, read_from
from meshhub.cli.processes import bounded_hooks, create_engine, parse_timeout
from meshhub.cli.target_checks import suggesting_overwrite
from meshhub.cli.texts import localize, show_number, tr
from meshhub.cli.verbosity import verbosity
from meshhub.errors import printable
from meshhub.model.report import Report
from meshhub.model.source import Target
from meshhub.registry import Registry


@click.command(cls=ReadingCommand, purpose="render", topic="Picture", epilog=EXIT_HELP)
@click.argument("model", shell_complete=complete_files)
@click.argument("picture", shell_complete=complete_files)
@click.option("-f", "--force", is_flag=True, help="Overwrite an existing picture.")
@click.option("--timeout", type=float, default=90.0, show_default=True, metavar="SECONDS", help="Limit; 0 for none.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on standard output.")
@verbosity
def render(
    model: str, picture: str, options: dict[str, Any], registry: Registry, *, force: bool, timeout: float, as_json: bool
) -> None:
    """Draw a picture of a model as PNG, without a display. `-` is standard input or output.

    With options of operations, the picture shows the model before and after them, and the palette of the result.

    \b
    meshhub render bracket.stl bracket.png
    meshhub render bracket.stl bracket.png --view iso,front,top --size 1600x1200
    meshhub render part.step part.png --color-by surface
    meshhub render model.glb model.png --reduce-colors 4
    """
    limit = parse_timeout(timeout)
    if picture == STREAM and as_json:
        raise click.UsageError("standard output cannot hold both the picture and the JSON report; name a PICTURE file")
    registry = registry.using(create_engine(1), bounded_hooks(limit))
    with terminal.errors_as_json(as_json), registry, suggesting_overwrite("--force"):
        check_distinct(model, picture)
        target = Target() if picture == STREAM else picture
        report = registry.render(read_from(model), target, timeout=limit, overwrite=force, **options)
    if isinstance(target, Target):
        _write_to_standard_output(target.read())
    if as_json:
        terminal.as_json(report)
    else:
        _print_report(picture, report, registry)


def _write_to_standard_output(data: bytes) -> None:
    if sys.stdout is None or sys.stdout.isatty():
        raise click.UsageError("standard output is a terminal or closed; redirect it, or name a PICTURE file")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _print_report(picture: str, report: Report, registry: Registry) -> None:
    name = tr("standard output") if picture == STREAM else picture
    source = report.source
    size = report_text.format_size(source.size_mm)
    faces = f"{show_number(source.faces)} {tr('faces')}"
    summary = f"{faces}, {size}, {report_text.format_bytes(report.target.bytes)}"
    terminal.inform(printable(f"{name}: {summary}, {localize(f'{report.seconds:.2f} s')}"))
    terminal.print_timings(report)
    terminal.print_notes(report_text.translate_notes(report.notes, registry), indent="  ")
