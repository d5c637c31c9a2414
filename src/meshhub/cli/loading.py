"""Load the plug-ins for a command; a broken one cannot end or block the command, or write to its output."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata

from meshhub.cli import terminal
from meshhub.engine.hook_process import HookProcess
from meshhub.engine.plugin_records import PluginRecords
from meshhub.errors import printable
from meshhub.pipeline.hooks import Hooks
from meshhub.pipeline.loading import DESCRIPTOR_OUTPUT, Fault
from meshhub.registry import Registry


class _RecordedHooks(Hooks):
    """Hooks of a command that only lists: distributions with a recorded fault are left out, and none is probed."""

    def refusal(self, point: metadata.EntryPoint) -> str:
        """Return the recorded reason why an entry point must not be loaded, or ""."""
        return PluginRecords().recorded_refusal(point)


def load_registry(*, probe: bool) -> Registry:
    """Load the plug-ins; their output goes to standard error.

    Args:
        probe: Whether to load each new version of a third-party distribution in a separate process first.
    """
    hooks = HookProcess(method="fork", records=PluginRecords()) if probe else _RecordedHooks()
    with _output_to_stderr():
        return Registry(hooks=hooks)


def print_faults(faults: tuple[Fault, ...]) -> None:
    """Print the defects of plug-ins, with their distributions, on standard error."""
    for fault in faults:
        terminal.inform(printable(f"fault: {fault.plugin} ({fault.origin}): {fault.message}"))


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
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            os.dup2(2, 1)
            # a file shows which plug-in printed
            file = files.enter_context(tempfile.TemporaryFile(buffering=0))
            os.dup2(file.fileno(), 1)
            files.callback(DESCRIPTOR_OUTPUT.reset, DESCRIPTOR_OUTPUT.set(file))
        yield
