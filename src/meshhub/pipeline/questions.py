"""Questions to code of plug-ins that may hang or crash: sniffers, and checks of options."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from meshhub.pipeline.declarations import load
from meshhub.pipeline.plugin_errors import InvalidDeclaration, describe_failure, own_traceback, summarize_failure

_MAX_TRACEBACK_CHARS = 20_000
"""Maximum characters of a traceback, because a recursion has a thousand frames."""


class Question(Struct, frozen=True):
    """Call of code of a plug-in."""

    run: str
    """Function of the host that calls it, as "package.module:function"; its result is JSON."""

    code: str
    """Code of the plug-in, as "package.module:name": the first argument of that function."""

    arguments: tuple[Any, ...]
    """Further arguments of that function."""

    timeout_s: float | None = None
    """Seconds from the import of the code until its process is killed; None for no deadline."""


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of a call, or how it failed."""

    has_begun: bool = False
    """Whether the call only begins, and its reply follows."""

    result: Any = None
    """Result; None for a call that failed."""

    error: str = ""
    """How it failed, as a predicate: "raised KeyError: 'x' (acme.py:3)"; "" for a result."""

    summary: str = ""
    """The same without the text of an exception, which may contain paths and secrets."""

    traceback: str = ""
    """Traceback of the exception in the plug-in, with the exception; "" without one."""

    seconds: float = 0.0
    """Seconds that a process took for it."""

    is_lost: bool = False
    """Whether its process ended or was killed."""


Ask: TypeAlias = Callable[[Sequence[Question]], list[Reply]]
"""Returns the reply to each question."""


def answer(question: Question) -> Reply:
    """Call the code of a plug-in in this process."""
    try:
        return Reply(result=load(question.run)(question.code, *question.arguments))
    except KeyboardInterrupt:
        # perhaps that of the user
        raise
    except BaseException as error:
        return Reply(error=describe_failure(error), summary=summarize_failure(error), traceback=_format(error))


def answer_all(questions: Sequence[Question]) -> list[Reply]:
    """Call the code of plug-ins in this process, without a deadline."""
    return [answer(question) for question in questions]


def _format(error: BaseException) -> str:
    """Return an exception with its traceback in the plug-in."""
    if isinstance(error, InvalidDeclaration):
        return ""
    return "".join(traceback.format_exception(type(error), error, own_traceback(error)))[-_MAX_TRACEBACK_CHARS:]
