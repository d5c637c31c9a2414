"""The outermost layer: request ids, headers of every answer, HEAD, refused bodies, the access log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

from litestar import Litestar

from meshhub.engine.logs import FIELDS, REQUEST
from meshhub.http.admission.addresses import client_address
from meshhub.http.context import Context, place, request_id
from meshhub.http.server.connections import ABORT
from meshhub.http.state import Shared

access = logging.getLogger("meshhub.http.access")

_DOWNLOAD_S = 5.0
"""Seconds that a client always has for an answer, also when it comes at the end of the request's time."""

_DOWNLOAD_BYTES_PER_S = 1 << 20
"""And a second more for each of these: 8 Mbit/s. A slower client has what is left of the request's time."""

Message = dict[str, Any]


class Service(Litestar):
    """A Litestar application in which every request has a context, and every answer reaches its client."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One connection, or the life of the service."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        shared: Shared = self.state.shared
        headers = _headers(scope)
        peer = scope.get("client")
        forwarded = [value for name, value in headers if name == "x-forwarded-for"]
        context = Context(
            request_id(dict(headers).get("x-request-id")),
            client_address(peer[0] if peer else None, forwarded, shared.trusted),
        )
        method, path = scope["method"], scope["path"]
        exchange = _Exchange(context, scope, receive, send, shared)
        # whatever answers GET answers HEAD alike, without the body
        scope = {**scope, "method": "GET" if method == "HEAD" else method, "state": dict(scope.get("state", {}))}
        place(scope, context)
        REQUEST.set(context.request_id)
        try:
            await super().__call__(scope, exchange.receive, exchange.send)
        finally:
            context.cleanup.close()
            status = 499 if context.gone else exchange.status
            milliseconds = (time.monotonic() - context.started) * 1000
            plan = context.caller.plan.id if context.caller else "-"
            shared.metrics.answered(path, status, exchange.came, exchange.went)
            # one line for a request, with what is wrong in the service when something is
            access.log(
                logging.WARNING if context.reason else logging.INFO,
                "%s %s %s %.0f ms %s %s%s%s",
                method,
                path[:200].encode("unicode_escape").decode("ascii"),
                status,
                milliseconds,
                context.address,
                plan,
                f" {context.error_code}" if context.error_code else "",
                f": {context.reason}" if context.reason else "",
                extra={
                    FIELDS: {
                        "method": method,
                        "path": path[:200],
                        "status": status,
                        "milliseconds": round(milliseconds, 1),
                        "address": context.address,
                        "plan": plan,
                        "key": context.caller.id if context.caller else "",
                        "error_code": context.error_code,
                        "reason": context.reason,
                        "bytes_in": exchange.came,
                        "bytes_out": exchange.went,
                    }
                },
            )


class _Exchange:
    """One request and its answer."""

    def __init__(self, context: Context, scope: Any, receive: Any, send: Any, shared: Shared) -> None:
        headers = dict(_headers(scope))
        self._context = context
        self._receive = receive
        self._send = send
        self._shared = shared
        self._head = scope["method"] == "HEAD"
        self._abort: Callable[[], None] | None = scope.get("extensions", {}).get(ABORT)
        self._has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        self._waits = headers.get("expect", "").lower() == "100-continue"
        self.status = 0
        self.came = 0
        self.went = 0

    async def receive(self) -> Any:
        message: Message = await self._receive()
        if message["type"] == "http.disconnect":
            self._context.gone = self.status == 0
        else:
            self.came += len(message.get("body", b""))
            self._context.body_started = True
            self._context.body_read = not message.get("more_body", False)
        return message

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._limit_download(dict(message["headers"]))
            own = {"x-request-id": self._context.request_id, **self._context.headers}
            if self._unread or self._shared.jobs.closing:
                own["connection"] = "close"
            # the framework knows nothing of the HEAD that is answered here
            said = [
                (name, value + b", HEAD" if name.lower() == b"allow" and _lacks_head(value) else value)
                for name, value in message["headers"]
            ]
            added = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in own.items()]
            message = {**message, "headers": [*said, *added]}
        elif message["type"] == "http.response.body":
            if self._head:
                message = {**message, "body": b""}
            self.went += len(message.get("body", b""))
            if self._unread and not message.get("more_body", False):
                # the answer first, for clients that listen while they send; then the rest of the body is
                # taken, because a connection closed on unread bytes is reset, and the answer may be lost
                await self._send({**message, "more_body": True})
                await self._drain()
                message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    def _limit_download(self, headers: dict[bytes, bytes]) -> None:
        """Drop the connection when the request's time is up and its answer is still not taken.

        Until then the answer lies on the disk. Servers without the extension let the client take its time.
        """
        size = int(headers.get(b"content-length", 0))
        self._shared.jobs.disk.answer(self._context, size)
        if self._context.deadline is None or self._abort is None:
            return
        loop = asyncio.get_running_loop()
        at_least = _DOWNLOAD_S + size / _DOWNLOAD_BYTES_PER_S
        timer = loop.call_at(max(self._context.deadline, loop.time() + at_least), self._drop)
        self._context.cleanup.callback(timer.cancel)

    def _drop(self) -> None:
        assert self._abort is not None
        self._context.reason = "the client did not take the answer in the time of the request"
        self._abort()

    @property
    def _unread(self) -> bool:
        """Whether the client still sends a body that nobody wants."""
        if self._context.gone or self._context.body_read or not self._has_body:
            return False
        return self._context.body_started or not self._waits

    async def _drain(self) -> None:
        settings = self._shared.settings
        left = settings.drain_bytes
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.drain_seconds):
                while left > 0 and self._unread:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        return
                    self.came += len(message.get("body", b""))
                    left -= len(message.get("body", b""))
                    self._context.body_read = not message.get("more_body", False)


def _headers(scope: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]


def _lacks_head(allowed: bytes) -> bool:
    return b"GET" in allowed and b"HEAD" not in allowed
