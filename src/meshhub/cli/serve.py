"""`meshhub serve`: the HTTP service."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from meshhub.cli.signals import Ended
from meshhub.cli.verbosity import verbosity
from meshhub.errors import MissingDependency, describe_missing
from meshhub.model.installing import describe_install


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 chooses a free port.")
@click.option(
    "--unix-socket",
    type=click.Path(dir_okay=False),
    metavar="PATH",
    help="Unix socket to listen on, instead of host and port.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Parallel conversions; overrides MESHHUB_WORKERS and the settings file.",
)
@verbosity
@click.pass_context
def serve(ctx: click.Context, host: str, port: int, unix_socket: str | None, workers: int | None) -> None:
    """Serve conversions over HTTP until SIGTERM or Ctrl-C.

    Settings come from MESHHUB_… variables and from the file that MESHHUB_SETTINGS names; `meshhub
    config` shows them. Sockets that systemd passes replace host and port. A second signal ends
    the service without waiting for running conversions.
    """
    if workers is not None:
        os.environ["MESHHUB_WORKERS"] = str(workers)
    try:
        _import_serve()(host, port, unix_socket=unix_socket)
    except Ended:
        # if SIGTERM arrives before the service listens, the status is the same as later
        ctx.exit(0)


def _import_serve() -> Callable[..., None]:
    try:
        from meshhub.http import serve
    except ImportError as error:
        packages = [error.name or "a package"]
        raise MissingDependency(
            describe_missing("the HTTP service", packages, describe_install("meshhub[http]"))
        ) from error
    return serve
