"""`meshhub usage`: export the usage ledger of jobs."""

from __future__ import annotations

import contextlib
import csv
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from meshhub.cli import terminal
from meshhub.cli.job_store import open_store
from meshhub.cli.verbosity import verbosity

if TYPE_CHECKING:
    from meshhub.service.jobs.job import Usage

COLUMNS = (
    "finished", "key_id", "caller", "plan", "kind", "state", "attempts", "bytes_in", "bytes_out", "cpu_seconds",
    "job_id",
)  # fmt: skip
"""Columns of an export, in order."""

_TIME = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])


@click.group()
def usage() -> None:
    """Export the usage of jobs, for bills and statistics."""


@usage.command()
@click.option("--since", type=_TIME, help="Only jobs that ended at this time (UTC) or later.")
@click.option("--until", type=_TIME, help="Only jobs that ended before this time (UTC).")
@click.option("--key", "key_id", metavar="ID", help="Only jobs of this API key.")
@click.option("--json/--csv", "as_json", default=False, help="Print JSON, or CSV with a header line (the default).")
@verbosity
def export(since: datetime | None, until: datetime | None, key_id: str | None, *, as_json: bool) -> None:
    """Print one row for each job that ran and ended, the oldest first.

    \b
    meshhub usage export --since 2026-10-01 --until 2026-11-01 > october.csv

    Times are UTC. A row has the id of its job only if the job belongs to a key, because the id of a job without a key
    gives access to it.
    """
    begin, end = _seconds(since), _seconds(until)
    with contextlib.closing(open_store()) as store:
        exists = store.exists()
        usage = store.list_usage(since=begin or 0.0, until=end, key_id=key_id) if exists else []
    if not exists:
        terminal.inform("this user has no jobs; run the command as the user of the service, with its settings")
    rows = [_describe(row) for row in usage]
    if as_json:
        terminal.as_json(rows)
        return
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _describe(row: Usage) -> dict[str, Any]:
    values = msgspec.to_builtins(row)
    values["finished"] = datetime.fromtimestamp(row.finished, UTC).isoformat(timespec="milliseconds")
    values["job_id"] = row.job_id if row.key_id else ""
    return {name: values[name] for name in COLUMNS}


def _seconds(time: datetime | None) -> float | None:
    """Return a time without a zone, which is UTC, in seconds since 1970."""
    return None if time is None else time.replace(tzinfo=UTC).timestamp()
