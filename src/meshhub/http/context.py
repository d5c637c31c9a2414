"""Context of one request, from its first byte to the last byte of the response."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import time
from typing import Any

from meshhub.model.plans import Caller
from meshhub.model.translations import Texts
from meshhub.service.keys import Publishable

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
_JOB_ID = re.compile(r"(?<=^/jobs/)[^/]+")
_STATE_KEY = "meshhub"


class Context:
    """State of one request.

    Attributes:
        texts: Texts in the language of the request.
        caller: Set when the API key has been checked.
        key_id: Id of the API key that was sent, valid or not, for the log; "" without a well-formed key.
        identity: Rate limit key of the caller.
        publishable: Bounds of the publishable key of the caller; None without one.
        is_address_shared: Whether several callers may have this address: those of a proxy that is not trusted.
        headers: Headers of the response, for every status.
        cleanup: Callbacks that run when the request ends, also after a failure.
        error_code: Code of an error response, for the log.
        reason: Failure inside the service, for the log.
        deadline: When the whole request must end, in the event loop's clock; None: no deadline.
        receiving: Timeout whose expiry ends the reception of the body; None before and after.
        remaining: Requests left in the rate limit's window; None without a rate limit.
        resets_in: Seconds until the rate limit's window allows another request; None without a rate limit.
        started: Monotonic time of the first byte.
        has_body_started: Whether a part of the body has been received.
        is_body_read: Whether the whole body has been received.
        is_head: Whether the client asked for the headers only.
        has_client_left: Whether the client left before the response began.
    """

    def __init__(self, request_id: str, address: str) -> None:
        """Start a request from the client's `address`, as trusted proxies report it."""
        self.request_id = request_id
        self.address = address
        self.texts = Texts()
        self.caller: Caller | None = None
        self.is_address_shared = False
        self.key_id = ""
        self.identity = ""
        self.publishable: Publishable | None = None
        self.headers: dict[str, str] = {}
        self.cleanup = contextlib.ExitStack()
        self.error_code = ""
        self.reason = ""
        self.deadline: float | None = None
        self.receiving: asyncio.Timeout | None = None
        self.remaining: int | None = None
        self.resets_in: int | None = None
        self.started = time.monotonic()
        self.has_body_started = False
        self.is_body_read = False
        self.is_head = False
        self.has_client_left = False


def hide_job_id(path: str) -> str:
    """Return a path with `{job_id}`, as in the OpenAPI document, instead of the id of a job.

    The id gives access to the job of a caller without a key, so it must not appear in logs and metrics.
    """
    return _JOB_ID.sub("{job_id}", path)


def choose_request_id(header: str | None) -> str:
    """Return the id that the client sent, if it is safe to log and to send back; otherwise a new one."""
    if header is not None and _REQUEST_ID.fullmatch(header):
        return header
    return secrets.token_hex(16)


def attach_context(scope: Any, context: Context) -> None:
    """Store the context in the ASGI scope of the request."""
    scope.setdefault("state", {})[_STATE_KEY] = context


def context_of(scope: Any) -> Context:
    """Return the context of the request with this ASGI scope."""
    context: Context = scope["state"][_STATE_KEY]
    return context


def caller_of(connection: Any) -> Caller:
    """Return the caller, as the access check determined it."""
    caller = context_of(connection.scope).caller
    assert caller is not None
    return caller
