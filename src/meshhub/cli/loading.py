"""Load the plug-ins for a command, so that a broken one neither ends nor holds it, nor writes into its output."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib import metadata

import click

from meshhub.engine.hook_process import HookProcess
from meshhub.engine.plugin_records import PluginRecords
from meshhub.errors import printable
from meshhub.pipeline.hooks import Hooks
from meshhub.pipeline.loading import Fault
from meshhub.registry import Registry


class _RecordedHooks(Hooks):
    """Leaves out the distributions that an earlier command found broken; probes none, for commands that only list."""

    def refusal(self, point: metadata.EntryPoint) -> str:
        """Return the recorded reason why an entry point must not be loaded, or ""."""
        return PluginRecords().recorded_refusal(point)


def load_registry(*, probe: bool) -> Registry:
    """Load the plug-ins; what they print goes to standard error.

    Args:
        probe: Whether to load each new version of a third party's distribution in a process of its own first.
    """
    hooks = HookProcess(method="fork", records=PluginRecords()) if probe else _RecordedHooks()
    with _output_to_stderr():
        return Registry(hooks=hooks)


def print_faults(faults: tuple[Fault, ...]) -> None:
    """Print the defects of plug-ins, with their distributions, on standard error."""
    for fault in faults:
        click.echo(printable(f"fault: {fault.plugin} ({fault.origin}): {fault.message}"), err=True)


@contextlib.contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Lead standard output, also that of native code and child processes, to standard error."""
    try:
        output = os.dup(1)
    except OSError:
        # closed
        yield
        return
    try:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            os.dup2(2, 1)
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)
