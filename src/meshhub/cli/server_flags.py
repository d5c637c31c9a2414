"""The flag `--server` of commands that can work on a service; `remote` does the work."""

from __future__ import annotations

import click
from click.core import ParameterSource

KEY = "MESHHUB_API_KEY"
"""Variable with the API key."""

KEY_FILE = "MESHHUB_API_KEY_FILE"
"""Variable with the path of a file that holds the API key."""

server_option = click.option(
    "--server",
    envvar="MESHHUB_SERVER",
    metavar="URL",
    help=f"Service to use (default: MESHHUB_SERVER); its API key is in {KEY}, or in the file that {KEY_FILE} names.",
)
"""Option for the address of a service. The key is not a flag, because a flag would show it in the list of processes."""


def check_remote_timeout(ctx: click.Context) -> None:
    """Reject a deadline for work on a service. Raises click.UsageError."""
    if ctx.get_parameter_source("timeout") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--server takes no --timeout: the plan of the service limits the time")
