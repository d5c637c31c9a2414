"""Limits and logs of the processes that a command starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from meshhub.cli.verbosity import is_verbose
from meshhub.pipeline.hooks import Hooks

if TYPE_CHECKING:
    from meshhub.engine.isolated import Isolated
    from meshhub.engine.logs import Kind

MAX_TIMEOUT_S = 1e9
"""Maximum seconds; clocks and polls of the system overflow not far above."""

_MEMORY_RATIO = 0.9
"""Share of the memory of this machine or container that the conversions of a command may use together."""


def parse_timeout(seconds: float) -> float | None:
    """Return the limit that `--timeout` sets; None for 0, which means no limit."""
    if not 0 <= seconds < MAX_TIMEOUT_S:
        raise click.BadParameter("must be a number of seconds; 0 for no limit", param_hint="--timeout")
    return seconds or None


timeout_option = click.option(
    "--timeout", type=float, default=90.0, show_default=True, metavar="SECONDS", help="Limit per file; 0 for none."
)


def worker_log() -> Kind | None:
    """Return how workers log: with --verbose to standard error, with the tracebacks of plug-ins."""
    return "text" if is_verbose() else None


def create_engine(workers: int | None = None, *, queue: int | None = 64, method: str | None = "fork") -> Isolated:
    """Return an engine whose conversions may use most of the memory of this machine, because its user runs no others.

    The parameters are those of `Isolated`.
    """
    from meshhub.engine.isolated import Isolated
    from meshhub.engine.limits import Limits
    from meshhub.service.machine import cores, memory

    share = int((memory() or 0) * _MEMORY_RATIO) // (workers or cores())
    limits = Limits(memory_bytes=max(share, Limits().memory_bytes))
    return Isolated(workers=workers, queue=queue, limits=limits, method=method, log=worker_log())


def bounded_hooks(timeout_s: float | None) -> Hooks:
    """Return hooks of which each is limited to `timeout_s` seconds."""
    return Hooks(sniff_s=timeout_s, hook_s=timeout_s)
