"""`meshhub work`: a worker of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from meshhub.cli.signals import Ended
from meshhub.cli.verbosity import verbosity
from meshhub.errors import MissingDependency, describe_missing
from meshhub.model.installing import describe_install


@click.command()
@click.option(
    "--workers",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Parallel jobs; overrides MESHHUB_WORKERS and the settings file.",
)
@verbosity
@click.pass_context
def work(ctx: click.Context, workers: int | None) -> None:
    """Run the jobs of a cluster, until SIGTERM or Ctrl-C.

    The settings jobs_database_url and jobs_storage_url name the cluster; they are those of the services. After the
    signal, running jobs have shutdown_seconds to end, and then return to the queue; a second signal
    returns them at once. worker_address serves health and metrics.
    """
    if workers is not None:
        os.environ["MESHHUB_WORKERS"] = str(workers)
    try:
        _import_work()()
    except Ended:
        # if SIGTERM arrives before the worker starts, the status is the same as later
        ctx.exit(0)


def _import_work() -> Callable[[], None]:
    try:
        from meshhub.http.server.working import work
    except ImportError as error:
        remedy = describe_install("meshhub[http,cluster]")
        raise MissingDependency(describe_missing("a worker", [error.name or "a package"], remedy)) from error
    return work
