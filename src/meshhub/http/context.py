"""What the service knows about one request, from its first byte to its last."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from typing import Any

from meshhub.model.plans import Caller

_SHAPE = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
_PLACE = "meshhub"


class Context:
    """Lives as long as its request.

    cleanup:   what is let go of when the request is over, however it ends
    headers:   added to the answer, whatever it is
    identity:  what the caller is counted by
    reason:    what the log says of an answer that is the service's own trouble
    body_read: whether the whole body has been received
    deadline:  when the whole request is to be over, of the loop's clock; None: no deadline
    """

    def __init__(self, request_id: str, address: str) -> None:
        """`address` is the client's, as trusted proxies tell it."""
        self.request_id = request_id
        self.address = address
        self.caller: Caller | None = None
        self.identity = ""
        self.reason = ""
        self.deadline: float | None = None
        self.remaining: int | None = None
        self.resets_in: int | None = None
        self.started = time.monotonic()
        self.cleanup = contextlib.ExitStack()
        self.headers: dict[str, str] = {}
        self.error_code = ""
        self.body_started = False
        self.body_read = False
        self.gone = False


def request_id(sent: str | None) -> str:
    """The id that the client sent, when it is harmless to log and echo; else a new one."""
    if sent is not None and _SHAPE.fullmatch(sent):
        return sent
    return secrets.token_hex(16)


def place(scope: Any, context: Context) -> None:
    """Keep the context in the request's scope."""
    scope.setdefault("state", {})[_PLACE] = context


def context_of(scope: Any) -> Context:
    """The context of the request."""
    found: Context = scope["state"][_PLACE]
    return found
