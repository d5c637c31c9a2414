"""Calls of the checks of options that plug-ins declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from meshhub.errors import InvalidOption, MeshhubError, PluginError
from meshhub.model import options as opt
from meshhub.model.options import Value
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.plugin_errors import describe_error

CheckOptions = Callable[[Declared[Any], Mapping[str, Value]], None]
"""Checks the options of a capability. Raises InvalidOption, PluginError."""


def check_here(declared: Declared[Any], options: Mapping[str, Value]) -> None:
    """Call the check of a capability's options in this process.

    Raises:
        InvalidOption: The check rejects the options.
        PluginError: The check failed.
    """
    try:
        problem = opt.find_problem(declared.capability.options, options)
    except (Exception, SystemExit) as error:
        raise broken_check(declared, error) from error
    raise_problem(declared, problem)


def raise_problem(declared: Declared[Any], problem: InvalidOption | None) -> None:
    """Raise the error of a check, if there is one, with the options to which it may refer."""
    if problem is not None:
        names = (field.name for field in opt.option_fields(declared.capability.options))
        raise InvalidOption(problem.template, options=problem.options or tuple(names))


def broken_check(declared: Declared[Any], error: BaseException) -> MeshhubError:
    """Return the error of a check that failed, with a note about its cause."""
    failure = PluginError(
        f"the check of options of plug-in {declared.plugin!r} ({declared.origin}) failed, so the request was rejected; "
        "report it to its maintainer"
    )
    failure.details = describe_error(error)
    return failure
