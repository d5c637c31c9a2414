"""Limits and logs of the processes that a command starts."""

from __future__ import annotations

import click

from meshhub.cli.verbosity import is_verbose
from meshhub.engine.hook_process import HookProcess
from meshhub.engine.logs import Kind

MAX_TIMEOUT_S = 1e9
"""Maximum seconds; clocks and polls of the system overflow not far above."""


def parse_timeout(seconds: float) -> float | None:
    """Return the limit that `--timeout` sets; None for 0, which means no limit."""
    if not 0 <= seconds < MAX_TIMEOUT_S:
        raise click.BadParameter("must be a number of seconds; 0 for no limit", param_hint="--timeout")
    return seconds or None


def worker_log() -> Kind | None:
    """Return how workers log: with --verbose to standard error, with the tracebacks of plug-ins."""
    return "text" if is_verbose() else None


def bounded_hooks(timeout_s: float | None, method: str | None = "fork") -> HookProcess:
    """Return a process for third parties' sniffers and hooks, each limited to `timeout_s` seconds.

    `method` is the start method of `Isolated`.
    """
    return HookProcess(sniff_s=timeout_s, hook_s=timeout_s, method=method, log=worker_log(), has_details=True)
