"""`meshhub jobs`: submit jobs to a service, follow them, and get their results."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from meshhub.cli import terminal
from meshhub.cli.completing import complete_files, complete_targets
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.flags import ReadingCommand
from meshhub.cli.loading import load_registry
from meshhub.cli.progress import show_progress
from meshhub.cli.remote import open_client, print_result, relay_progress
from meshhub.cli.server_flags import server_option
from meshhub.cli.target_checks import is_foreign_model, suggesting_overwrite
from meshhub.cli.texts import tr
from meshhub.cli.verbosity import is_quiet, is_verbose, verbosity
from meshhub.errors import printable
from meshhub.model.options import OptionField
from meshhub.registry import Registry
from meshhub.reporting.texts import LANGUAGES
from meshhub.service.jobs.job import ReportKind

if TYPE_CHECKING:
    from meshhub.client import JobDescription
    from meshhub.service.jobs.job import JobKind


@click.group()
def jobs() -> None:
    """Submit jobs to a service, follow them, and get their results.

    \b
    meshhub jobs submit bracket.stl --to 3mf --repair
    meshhub jobs list
    meshhub jobs wait ID
    meshhub jobs result ID bracket.3mf
    meshhub jobs submit bracket.stl --check --report pdf
    meshhub jobs submit a.stl b.stl --combine --to 3mf
    """


class SubmitCommand(ReadingCommand):
    """Command with the options of conversions and of checks."""

    def fields(self, registry: Registry) -> dict[str, OptionField]:
        """Return the option fields by name; those of checks come first."""
        return super().fields(registry) | registry.declarations.fields()


@jobs.command(cls=SubmitCommand, purpose="check", topic="Checks", epilog=EXIT_HELP)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...", shell_complete=complete_files)
@click.option("--to", metavar="FORMAT", shell_complete=complete_targets, help="Target format; without it: inspect.")
@click.option("--check", is_flag=True, help="Check whether the model prints; the result is the verdict as JSON.")
@click.option("--report", type=click.Choice(get_args(ReportKind)), help="With --check: a report instead of JSON.")
@click.option("--language", type=click.Choice(LANGUAGES), default="en", help="Language of the report.")
@click.option("--combine", is_flag=True, help="Convert all MODELs to one file; each stays an object.")
@click.option("--webhook-url", metavar="URL", help="Address that the service informs of the end of the job.")
@click.option("--json", "as_json", is_flag=True, help="Print the job as JSON, not only its id.")
@server_option
@verbosity
def submit(  # noqa: PLR0913 - click passes each flag as a keyword
    models: tuple[str, ...],
    options: dict[str, Any],
    registry: Registry,  # noqa: ARG001 - the command class passes it
    *,
    to: str | None,
    check: bool,
    report: ReportKind | None,
    language: str,
    combine: bool,
    webhook_url: str | None,
    as_json: bool,
    server: str | None,
) -> None:
    """Submit a job, and print its id on standard output."""
    if check and to is not None:
        raise click.UsageError("--check writes no model; it takes no --to")
    if report is not None and not check:
        raise click.UsageError("--report needs --check")
    if combine and to is None:
        raise click.UsageError("--combine needs --to FORMAT")
    if len(models) > 1 and not combine:
        raise click.UsageError("several MODELs become one file with --combine; otherwise submit one job for each")
    kind: JobKind = "combine" if combine else "check" if check else "inspect" if to is None else "convert"
    with terminal.errors_as_json(as_json), open_client(server) as client:
        job = client.submit(
            list(models) if combine else models[0],
            target=to,
            kind=kind,
            webhook_url=webhook_url,
            report=report,
            language=language,
            options=options,
        )
    if as_json:
        terminal.as_json(job)
    else:
        click.echo(job.id)


@jobs.command("list")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="Jobs to list.")
@click.option("--before", metavar="ID", help="List jobs that are older than this one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@server_option
@verbosity
def list_(limit: int, before: str | None, as_json: bool, server: str | None) -> None:
    """List the jobs of the API key, the newest first."""
    with terminal.errors_as_json(as_json), open_client(server) as client:
        listed = client.list_jobs(limit=limit, before=before)
    if as_json:
        terminal.as_json(listed)
        return
    # no table, because its cells would break the ids
    for job in listed.jobs:
        names = ", ".join(file.name for file in job.files)
        click.echo(printable(f"{job.id}  {_format_time(job.created)}  {job.kind}  {job.state}  {names}"))
    if listed.next is not None:
        terminal.inform(tr("older jobs: --before {id}").format(id=listed.next))


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@server_option
@verbosity
def status(job_id: str, as_json: bool, server: str | None) -> None:
    """Print the state of a job."""
    with terminal.errors_as_json(as_json), open_client(server) as client:
        _print_job(client.get(job_id), as_json)


@jobs.command(epilog=EXIT_HELP)
@click.argument("job_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@server_option
@verbosity
def wait(job_id: str, as_json: bool, server: str | None) -> None:
    """Wait for the end of a job. The exit status is that of a local conversion."""
    with (
        terminal.errors_as_json(as_json),
        open_client(server) as client,
        show_progress(is_silent=as_json or is_quiet() or is_verbose()) as progress,
    ):
        job = client.wait(job_id, on_change=relay_progress(progress))
    _print_job(job, as_json)


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.argument("output", required=False, shell_complete=complete_files)
@click.option("-f", "--force", is_flag=True, help="Overwrite an existing file.")
@server_option
@verbosity
def result(job_id: str, output: str | None, force: bool, server: str | None) -> None:
    """Download the result of a job. Default: under its name, into this folder."""
    registry = load_registry()
    with open_client(server) as client, suggesting_overwrite("--force"):
        job = client.get(job_id)
        # the service chooses the name, which is never a path
        name = Path(job.result.name).name if job.result is not None else job_id
        target = Path(output or name)
        if force and output is None and is_foreign_model(registry, target):
            raise click.UsageError(f"{target} is not a result of meshhub; to replace it, name it: OUTPUT {target}")
        client.download(job_id, target, overwrite=force)
    print_result(target, job, registry)


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@server_option
@verbosity
def cancel(job_id: str, as_json: bool, server: str | None) -> None:
    """Cancel a job, or delete the result of a finished one."""
    with terminal.errors_as_json(as_json), open_client(server) as client:
        _print_job(client.cancel(job_id), as_json)


def _print_job(job: JobDescription, as_json: bool) -> None:
    if as_json:
        terminal.as_json(job)
        return
    words: list[str] = [job.state]
    if job.position is not None:
        words.append(f"place {job.position} in the queue")
    if job.missing_memory_bytes is not None:
        words.append(f"waits for a worker with {job.missing_memory_bytes / 2**30:.1f} GiB of memory")
    if job.progress is not None:
        fraction = f" {job.progress.fraction:.0%}" if job.progress.fraction is not None else ""
        words.append(f"{job.progress.label}{fraction} ({job.progress.index + 1} of {job.progress.count})")
    if job.error is not None:
        words.append(f"{job.error} [{job.error_code}]")
    click.echo(printable(": ".join((job.id, ", ".join(words)))))
