"""Calls of the checks of options that plug-ins declare."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from meshhub.errors import InvalidOption, MeshhubError, PluginError
from meshhub.model import options as opt
from meshhub.model.options import Value
from meshhub.pipeline.declarations import Declared, load, reference_of
from meshhub.pipeline.plugin_errors import describe_error
from meshhub.pipeline.questions import Question, Reply

log = logging.getLogger(__name__)

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
        raise _broken_check(declared, describe_error(error)) from error
    if problem is not None:
        raise _rejection(declared, problem.template, problem.options)


def ask_problem(options_type: type[Struct], options: Mapping[str, Value], timeout_s: float | None) -> Question:
    """Return the question for the check of an options Struct."""
    code, function = reference_of(options_type), "meshhub.pipeline.option_class_check:list_problem"
    return Question(function, code, (dict(options),), timeout_s)


def list_problem(options_type: str, options: Mapping[str, Value]) -> list[str]:
    """Return the message of the error that the check of an options Struct raises, and the options that it names."""
    problem = opt.find_problem(cast(type[Struct], load(options_type)), options)
    return [] if problem is None else [problem.template, *problem.options]


def take_problem(declared: Declared[Any], reply: Reply) -> None:
    """Raise the error of a check that ran elsewhere, if there is one. Raises InvalidOption, PluginError."""
    if reply.error:
        log.error("the check of options of plug-in %r (%s) %s", declared.plugin, declared.origin, reply.error)
        raise _broken_check(declared, reply.error)
    if reply.result:
        message, *names = reply.result
        raise _rejection(declared, message, names)


def _rejection(declared: Declared[Any], template: str, names: Sequence[str]) -> InvalidOption:
    """Return the error of a check, with the options to which it may refer."""
    own = (field.name for field in opt.option_fields(declared.capability.options))
    return InvalidOption(template, options=tuple(names) or tuple(own))


def _broken_check(declared: Declared[Any], details: str) -> MeshhubError:
    """Return the error of a check that failed, with a note about its cause."""
    failure = PluginError(
        f"the check of options of plug-in {declared.plugin!r} ({declared.origin}) failed, so the request was rejected; "
        "report it to its maintainer"
    )
    failure.details = details
    return failure
