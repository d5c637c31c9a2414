"""`meshhub printers`: list the printers of storages with their states, and send files to them."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from meshhub.cli import terminal
from meshhub.cli.exits import BATCH_FAILED
from meshhub.cli.loading import load_registry
from meshhub.cli.texts import headings, tr
from meshhub.cli.verbosity import verbosity


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@verbosity
@click.pass_context
def printers(ctx: click.Context, as_json: bool) -> None:
    """List the printers on the network with their states, or send a file to one.

    \b
    meshhub printers                                              list
    meshhub printers send part.gcode moonraker://voron/part.gcode send

    Plug-ins open the addresses of printers. Ends with status 1 if a printer does not respond.
    """
    if ctx.invoked_subcommand is not None:
        return
    with load_registry() as registry:
        listed = registry.printers()
    if as_json:
        terminal.as_json(msgspec.to_builtins(listed))
    elif listed:
        terminal.table(headings("printer", "state"), [(each.address, each.state or each.error) for each in listed])
    else:
        terminal.inform(
            tr("no printers; install a plug-in for them, such as meshhub-printers, and name them in its configuration")
        )
    ctx.exit(BATCH_FAILED if any(printer.error for printer in listed) else 0)


@printers.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("address")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@verbosity
def send(file: Path, address: str, *, force: bool) -> None:
    """Send a file as it is to a printer.

    An address is moonraker://voron/part.gcode?print=true, for example, which also starts the print.

    \b
    meshhub printers send part.gcode octoprint://ender/part.gcode
    """
    with load_registry() as registry:
        registry.send(file, address, overwrite=force)
