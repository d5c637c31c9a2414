"""`meshhub check`: will it print?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import click

from meshhub.cli import terminal
from meshhub.cli.completing import complete_files
from meshhub.cli.each_file import examine_each
from meshhub.cli.exits import BATCH_FAILED, EXIT_HELP, describe_error
from meshhub.cli.flags import ReadingCommand
from meshhub.cli.locale import language as locale_language
from meshhub.cli.paths import STREAM, is_folder, list_inputs, read_from
from meshhub.cli.processes import bounded_hooks, create_engine, parse_timeout, timeout_option
from meshhub.cli.remote import check_remote_sources, open_client, waiting_at_limits
from meshhub.cli.report_text import format_bytes, translate, translate_notes
from meshhub.cli.server_flags import check_remote_timeout, server_option
from meshhub.cli.target_checks import suggesting_overwrite
from meshhub.cli.texts import labeled, localize, show_number, tr
from meshhub.cli.verbosity import verbosity
from meshhub.errors import format_number, printable
from meshhub.model.chain import Request
from meshhub.model.options import flag_of
from meshhub.model.verdict import SEVERITIES, Finding, Severity, Verdict, VerdictWord
from meshhub.pipeline.existing_files import Replacing
from meshhub.pipeline.numbered_places import number_places
from meshhub.pipeline.outputs import check_output, open_output, target_format
from meshhub.pipeline.storages import is_address
from meshhub.registry import Registry
from meshhub.reporting.collecting import CheckedModel, collect_model, describe_fix, read_as_checked, without_checks
from meshhub.reporting.texts import LANGUAGES
from meshhub.reporting.writing import check_report_name, render_report

MAX_PRINTED_PLACES = 3
"""Maximum places of a finding in the text; JSON has more."""

_COLORS: dict[str, str] = {"error": "red", "warning": "yellow", "info": "cyan"}

_VERDICTS: dict[VerdictWord, str] = {
    "ready": "ready",
    "check_this": "check this",
    "incomplete": "not fully checked",
    "will_not_print": "will not print",
}


@click.command(cls=ReadingCommand, purpose="check", topic="Checks", epilog=EXIT_HELP)
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER...", shell_complete=complete_files)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; a list for several files or a folder.")
@click.option(
    "--fail-on",
    type=click.Choice([*SEVERITIES, "never"]),
    default="error",
    show_default=True,
    help="End with status 1 if a finding is as bad as this.",
)
@timeout_option
@click.option(
    "--report",
    metavar="FILE",
    shell_complete=complete_files,
    help="Also write a report with pictures: .html, or .pdf with the extra report.",
)
@click.option(
    "--marked",
    metavar="FILE",
    shell_complete=complete_files,
    help="Also write the model with its faces in the colors of findings, and a ball at each place.",
)
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    default=locale_language,
    help="Language of the report.",
)
@click.option("-f", "--force", is_flag=True, help="Overwrite existing files of --report and --marked.")
@server_option
@verbosity
@click.pass_context
def check(  # noqa: PLR0913 - click passes each flag as a keyword
    ctx: click.Context,
    paths: tuple[str, ...],
    as_json: bool,
    fail_on: Severity | str,
    timeout: float,
    report: str | None,
    marked: str | None,
    language: str,
    force: bool,
    server: str | None,
    options: dict[str, Any],
    registry: Registry,
) -> None:
    """Check whether models print, and say what to do.

    Each finding lists its places and the options that fix it. With options of operations, each model is checked after
    them. A folder stands for its model files, `-` for standard input.

    \b
    meshhub check bracket.stl
    meshhub check bracket.stl --repair --fail-on warning
    meshhub check models/ --json
    meshhub check bracket.stl --report bracket.html --language de
    meshhub check bracket.stl --server https://meshhub.example
    """
    is_several = len(paths) > 1 or is_folder(paths[0])
    files = [file for path in paths for file in list_inputs(registry, path)]
    outputs = _Outputs(
        Path(report) if report is not None else None, Path(marked) if marked is not None else None, language, force
    )
    with terminal.errors_as_json(as_json):
        outputs.check(registry, server, files, is_several=is_several)
        check_model = (
            _open_service(ctx, registry, files, server, options)
            if server
            else _open_registry(ctx, registry, parse_timeout(timeout), options, outputs)
        )
    is_bad = False

    def examine(path: str) -> Verdict:
        nonlocal is_bad
        try:
            verdict = check_model(path)
        except Exception as error:
            outputs.models.append(CheckedModel(name=PurePath(path).name, error=describe_error(error)))
            raise
        is_bad |= fail_on != "never" and verdict.worse_than(fail_on)  # type: ignore[arg-type]
        return verdict

    kept = without_checks(registry, options)

    def show(path: str, verdict: Verdict) -> None:
        _print_verdict(path, verdict, kept, registry)

    results, status = examine_each(files, examine, show, as_json=as_json, is_several=is_several)
    if is_bad:
        status = status or BATCH_FAILED
    with terminal.errors_as_json(as_json):
        outputs.write(registry)
    if as_json:
        terminal.as_json(results if is_several else results[0])
    ctx.exit(status)


@dataclass
class _Outputs:
    """Files that a check writes beside its text.

    report:   report with pictures, which is written after the last check; None for none
    marked:   the model with its findings; None for none
    language: of the headings of the report
    force:    whether to overwrite existing files
    models:   checked models for the report
    """

    report: Path | None
    marked: Path | None
    language: str
    force: bool
    models: list[CheckedModel] = field(default_factory=list)

    def check(self, registry: Registry, server: str | None, files: Sequence[str], *, is_several: bool) -> None:
        """Check that the files can be written, before models are read. Raises click.UsageError, MeshhubError."""
        paths = [path for path in (self.report, self.marked) if path is not None]
        if paths and server is not None:
            raise click.UsageError("--report and --marked draw on this machine; leave out --server")
        if self.report is not None:
            check_report_name(self.report.name)
        if self.marked is not None:
            if is_several:
                raise click.UsageError("--marked writes one model; name one FILE")
            registry.check_request(Request(target=target_format(self.marked, None, registry.declarations)))
        inputs = [0 if file == STREAM else Path(file) for file in files if not is_address(file)]
        with suggesting_overwrite("--force"):
            for path in paths:
                check_output(path, Replacing(self.force, inputs))

    def run(self, registry: Registry, path: str, options: dict[str, Any], timeout_s: float | None) -> Verdict:
        """Check a model, write it with its findings, and add it to the report. Raises MeshhubError, OSError."""
        source = read_from(path)
        with suggesting_overwrite("--force"):
            verdict = registry.check(source, marked=self.marked, overwrite=self.force, timeout=timeout_s, **options)
        if self.marked is not None:
            places = show_number(sum(map(len, number_places(verdict))))
            terminal.inform(printable(tr("{path}: {count} places marked").format(path=self.marked, count=places)))
        if self.report is not None:
            name = PurePath(path).name if path != STREAM else "standard input"
            scene = read_as_checked(registry, source, options, timeout_s)
            self.models.append(collect_model(registry, scene, name, verdict, options, timeout_s))
        return verdict

    def write(self, registry: Registry) -> None:
        """Write the report, if a model could be checked. Raises MeshhubError, OSError."""
        if self.report is None or not any(model.verdict for model in self.models):
            return
        data = render_report(self.models, self.report.name, registry, self.language, date.today())
        with (
            suggesting_overwrite("--force"),
            open_output(self.report, {}, Replacing(self.force)) as target,
            target.open() as file,
        ):
            file.write(data)
        summary = tr("{path}: {count} checked, {size}").format(
            path=self.report, count=show_number(len(self.models)), size=format_bytes(len(data))
        )
        terminal.inform(printable(summary))


def _open_registry(
    ctx: click.Context, registry: Registry, timeout_s: float | None, options: dict[str, Any], outputs: _Outputs
) -> Callable[[str], Verdict]:
    """Return a function that checks a model on this machine, and writes the outputs of each."""
    registry = registry.using(create_engine(1), bounded_hooks(timeout_s))
    # a program that calls this command may continue afterwards
    ctx.call_on_close(registry.close)
    return lambda path: outputs.run(registry, path, options, timeout_s)


def _open_service(
    ctx: click.Context, registry: Registry, files: Sequence[str], server: str, options: dict[str, Any]
) -> Callable[[str], Verdict]:
    """Return a function that checks one of the files on a service. Raises click.UsageError, MeshhubError."""
    check_remote_timeout(ctx)
    check_remote_sources(registry, *files)
    client = ctx.with_resource(open_client(server))
    return lambda path: waiting_at_limits(lambda: client.check(path, options=options))


def _print_verdict(path: str, verdict: Verdict, options: Mapping[str, object], registry: Registry) -> None:
    say = partial(translate, registry=registry)
    verdict = verdict.translated(say, lambda note: translate_notes([note], registry)[0])
    color = {"ready": "green", "check_this": "yellow", "incomplete": "yellow", "will_not_print": "red"}[verdict.verdict]
    words = click.style(tr(_VERDICTS[verdict.verdict]), fg=color)
    click.echo(f"{click.style(printable(path), bold=True)}: {words}")
    for finding in verdict.findings:
        label = click.style(tr(finding.severity), fg=_COLORS[finding.severity])
        terminal.print_line(f"{label}{tr(': ')}{finding.spelled(flag_of)} [{finding.code}]", indent="  ")
        if finding.places:
            terminal.print_line(_describe_places(finding), indent="    ")
    fix = describe_fix("" if path == STREAM else path, verdict, options)
    if fix:
        # in one line, so that it can be copied
        click.echo("  " + labeled("try", fix))
    if verdict.estimate is not None:
        estimate = verdict.estimate
        words = say(f"{estimate.describe_weight()}; {estimate.describe_time()}")
        terminal.print_line(tr("takes {estimate}").format(estimate=words), indent="  ")
    terminal.print_notes(verdict.notes, indent="  ")


def _describe_places(finding: Finding) -> str:
    """Return the positions of the worst places."""
    # numbers of some languages have commas themselves
    separator = ", " if localize(".") == "." else " / "
    places = []
    for place in finding.places[:MAX_PRINTED_PLACES]:
        position = separator.join(localize(format_number(value, 4)) for value in place.position_mm)
        amount = "" if place.amount is None else f"{localize(format_number(place.amount, 3))} {finding.unit}".rstrip()
        places.append(f"{position} ({amount})" if amount else position)
    if more := finding.places_found - len(places):
        places.append(tr("and {count} more places").format(count=show_number(more)))
    return tr("at {places}").format(places="; ".join(places))
