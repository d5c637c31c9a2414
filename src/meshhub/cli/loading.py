"""Load the plug-ins for a command; a broken one cannot write to the output of the command."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator

from meshhub.cli import terminal
from meshhub.errors import printable
from meshhub.pipeline.loading import DESCRIPTOR_OUTPUT, Fault, find_entry_points
from meshhub.registry import Registry


def load_registry() -> Registry:
    """Load the plug-ins; their output goes to standard error."""
    if not find_entry_points():
        # built-in plug-ins print nothing
        with _collecting_later():
            return Registry(entry_points=False)
    with _output_to_stderr(), _collecting_later():
        return Registry()


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
