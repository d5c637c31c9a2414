"""Load the plug-ins for a command; a broken one cannot end or block the command, or write to its output."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from meshhub.cli import terminal
from meshhub.errors import printable
from meshhub.pipeline.hooks import Hooks
from meshhub.pipeline.loading import DESCRIPTOR_OUTPUT, Fault, find_entry_points
from meshhub.registry import Registry

if TYPE_CHECKING:
    from importlib import metadata


class _RecordedHooks(Hooks):
    """Hooks of a command that only lists: distributions with a recorded fault are left out, and none is probed."""

    def refusal(self, point: metadata.EntryPoint) -> str:
        """Return the recorded reason why an entry point must not be loaded, or ""."""
        from meshhub.engine.plugin_records import PluginRecords

        return PluginRecords().recorded_refusal(point)


def load_registry(*, probe: bool) -> Registry:
    """Load the plug-ins; their output goes to standard error.

    Args:
        probe: Whether to load each new version of a third-party distribution in a separate process first.
    """
    if not find_entry_points():
        # built-in plug-ins need no probe, and print nothing
        with _collecting_later():
            return Registry(entry_points=False)
    with _output_to_stderr(), _collecting_later():
        return Registry(hooks=_probing_hooks() if probe else _RecordedHooks())


def _probing_hooks() -> Hooks:
    from meshhub.engine.hook_process import HookProcess
    from meshhub.engine.plugin_records import PluginRecords

    return HookProcess(method="fork", records=PluginRecords())


def print_faults(faults: tuple[Fault, ...]) -> None:
    """Print the defects of plug-ins, with their distributions, on standard error."""
    for fault in faults:
        terminal.inform(printable(f"fault: {fault.plugin} ({fault.origin}): {fault.message}"))


@contextlib.contextmanager
def _collecting_later() -> Iterator[None]:
    """Collect no garbage for a moment, because declarations leave hardly any."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Redirect standard output to standard error, including output of native code and child processes."""
    try:
        output = os.dup(1)
    except OSError:
        # standard output is closed
        yield
        return
    with contextlib.ExitStack() as files:
        files.callback(os.close, output)
        files.callback(os.dup2, output, 1)
        import tempfile

        with contextlib.suppress(OSError):
            sys.stdout.flush()
            os.dup2(2, 1)
            # a file shows which plug-in printed
            file = files.enter_context(tempfile.TemporaryFile(buffering=0))
            os.dup2(file.fileno(), 1)
            files.callback(DESCRIPTOR_OUTPUT.reset, DESCRIPTOR_OUTPUT.set(file))
        yield
