"""`meshhub app`: the page on this machine, for its owner."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from meshhub.cli import terminal
from meshhub.cli.app_instance import Address, Instance, send_files
from meshhub.cli.completing import complete_sources
from meshhub.cli.loading import load_registry
from meshhub.cli.paths import list_inputs, readable_extensions
from meshhub.cli.signals import Ended
from meshhub.cli.texts import tr
from meshhub.cli.verbosity import verbosity
from meshhub.errors import MissingDependency, ServiceUnreachable, describe_missing, printable
from meshhub.model.installing import describe_install

if TYPE_CHECKING:
    from meshhub.cli.watch import Arrivals
    from meshhub.http import LocalApp

_END_AFTER_S = 60.0
"""Seconds: enough to load the page again, and to open a file that arrives next."""


_BROWSER_START_S = 60.0
"""Seconds in which a browser shows the page, even if it is started for the first time."""

_RETRY_S = 0.2
"""Seconds between two attempts to become the app."""

_HANDOVER_S = 10.0
"""Seconds in which an app that ends releases its lock."""


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True), metavar="[FILE]...", shell_complete=complete_sources)
@click.option(
    "--watch",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Show the models that appear in this folder and below.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option(
    "--end-after",
    type=click.FloatRange(min=0),
    default=_END_AFTER_S,
    show_default=True,
    metavar="SECONDS",
    help="Time after which the app ends when its last tab was closed.",
)
@click.option("--install-desktop-entry", is_flag=True, help='Add the app and "Open with meshhub" to a Linux desktop.')
@verbosity
@click.pass_context
def app(
    ctx: click.Context,
    files: Sequence[str],
    watch: Path | None,
    no_browser: bool,
    end_after: float,
    install_desktop_entry: bool,
) -> None:
    """Open the page on this machine, with models in it.

    It has no limits on size, number and formats, and saves results beside their inputs. Only this user can use it,
    by the address that the command opens. A second command opens its models in the app that runs. The app ends with
    its last tab, or with Ctrl-C.
    """
    if install_desktop_entry:
        from meshhub.cli.desktop_entry import install

        for path in install(load_registry()):
            terminal.print_line(printable(str(path)))
        return
    paths = [Path(path) for path in _list_files(files)]
    instance = Instance()
    deadline = time.monotonic() + _HANDOVER_S
    while not instance.acquire():
        if watch is not None:
            raise click.UsageError("meshhub app already runs; close it before it can watch a folder")
        try:
            _use_running(instance.find(), paths, no_browser)
        except ServiceUnreachable:
            # the other app may be about to end
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)
        else:
            return
    try:
        _run(instance, paths, watch, no_browser, end_after)
    except (Ended, KeyboardInterrupt):
        ctx.exit(0)
    finally:
        instance.release()


def _list_files(names: Sequence[str]) -> list[str]:
    """Return the files; a folder stands for the models in it."""
    if not any(Path(name).is_dir() for name in names):
        return list(names)
    registry = load_registry()
    return [path for name in names for path in list_inputs(registry, name)]


def _use_running(address: Address, paths: Sequence[Path], no_browser: bool) -> None:
    """Open files in the app that runs, in a new window if it has none."""
    tabs = send_files(address, paths)
    if tabs and paths:
        terminal.inform(tr("opened in the window of the running app"))
    else:
        _show(address, no_browser)


def _run(instance: Instance, paths: Sequence[Path], watch: Path | None, no_browser: bool, end_after_s: float) -> None:
    """Serve the app until it ends."""
    try:
        from meshhub.http import LocalApp, serve_app
    except ImportError as error:
        packages = [error.name or "a package"]
        raise MissingDependency(describe_missing("the app", packages, describe_install("meshhub[http]"))) from error
    local_app = LocalApp()
    arrivals = None if watch is None else _list_arrivals(watch)

    def start(port: int) -> None:
        address = Address(port, local_app.token)
        instance.publish(address)
        threading.Thread(target=_open_files, args=(local_app, paths, arrivals), daemon=True).start()
        if _show(address, no_browser):
            if not no_browser:
                # a browser may fail after its start
                local_app.expect_tab(_BROWSER_START_S)
        else:
            # a command in a script must not run forever
            local_app.expect_tab(0)

    serve_app(local_app, instance.read_ports(), end_after_s, start)


def _show(address: Address, no_browser: bool) -> bool:
    """Print and open the address. Return False if no browser was found; the app then ends without a tab."""
    from meshhub.cli.browsers import open_window

    # not wrapped: a terminal opens the whole address
    click.echo(address.url)
    if no_browser or open_window(address.url):
        return True
    terminal.inform(tr("no browser was found; open the address in one on this machine within the time of --end-after"))
    return False


def _list_arrivals(folder: Path) -> Arrivals:
    """Return the files that appear in a folder, without those that are in it now."""
    from meshhub.cli.watch import Arrivals

    arrivals = Arrivals(folder, readable_extensions(load_registry()))
    arrivals.skip_present()
    return arrivals


def _open_files(local_app: LocalApp, paths: Sequence[Path], arrivals: Arrivals | None) -> None:
    """Open files, and then those that arrive; in a thread, because large files are searched for their companions."""
    from meshhub.cli.watch import POLL_S

    for path in paths:
        try:
            local_app.open(path)
        except OSError as error:
            text = tr("{path} cannot be read: {reason}").format(path=path, reason=error.strerror)
            terminal.inform(printable(text))
    while arrivals is not None:
        for path in arrivals.poll():
            try:
                local_app.open_arrival(path)
            except OSError:
                # removed since the folder was listed
                continue
        time.sleep(POLL_S)
