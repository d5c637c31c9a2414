"""The flags `-q` and `-v`, which every command takes before or after its name."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

VERBOSE_FLAGS = ("-v", "--verbose")
QUIET_FLAGS = ("-q", "--quiet")

_KEY = "meshhub.verbosity"
"""Key of "quiet" or "verbose" in the data that all contexts of a command share."""


def verbosity(function: F) -> F:
    """Add `-q` and `-v` to a command."""
    quiet = click.option(
        *QUIET_FLAGS,
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_callback,
        help="Print only results and errors.",
    )
    verbose = click.option(
        *VERBOSE_FLAGS,
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_callback,
        help="Log choices, timings and tracebacks to standard error.",
    )
    return quiet(verbose(function))


def is_quiet() -> bool:
    """Return whether the command prints only results and errors."""
    return _get_verbosity() == "quiet"


def is_verbose() -> bool:
    """Return whether the command logs what it does."""
    return _get_verbosity() == "verbose"


def be_verbose(context: click.Context) -> None:
    """Log to standard error, in this process and in workers."""
    if context.meta.get(_KEY) == "quiet":
        raise click.UsageError("give either --quiet or --verbose", context)
    context.meta[_KEY] = "verbose"
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("meshhub").setLevel(logging.DEBUG)


def _callback(context: click.Context, option: click.Parameter, is_set: bool) -> None:
    if not is_set or context.resilient_parsing:
        return
    if option.name == "verbose":
        be_verbose(context)
    elif context.meta.get(_KEY) == "verbose":
        raise click.UsageError("give either --quiet or --verbose", context)
    else:
        context.meta[_KEY] = "quiet"


def _get_verbosity() -> str:
    context = click.get_current_context(silent=True)
    return "" if context is None else context.meta.get(_KEY, "")
