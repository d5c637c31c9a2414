"""Outermost ASGI layer: request ids, headers of every response, HEAD, unread bodies, the access log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from litestar import Litestar, Request, Response

from meshhub.engine.logs import FIELDS, REQUEST
from meshhub.http.admission.addresses import LOCAL, client_address
from meshhub.http.context import Context, attach_context, choose_request_id, hide_job_id
from meshhub.http.errors import answer_error
from meshhub.http.headers import common_headers
from meshhub.http.responses.reports import translate_report
from meshhub.http.server.compression import Compressor
from meshhub.http.server.connections import ABORT
from meshhub.http.server.origins import cors_headers, find_access, find_rejection, preflight_headers
from meshhub.http.state import ServiceState

access = logging.getLogger("meshhub.http.access")

_MIN_DOWNLOAD_S = 5.0
"""Minimum seconds that a client has to receive a response, even if the response is sent just before the deadline."""

_MIN_DOWNLOAD_BYTES_PER_S = 1 << 20
"""Bytes per second (8 Mbit/s) for which the time is extended; a slower client has until the deadline."""

Message = dict[str, Any]


class MeshhubApp(Litestar):
    """Litestar application that gives every request a context, and completes every response."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request or the lifespan of the service."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        state: ServiceState = self.state.service
        headers = _decode_headers(scope)
        peer = scope.get("client")
        forwarded = [value for name, value in headers if name == "x-forwarded-for"]
        context = Context(
            choose_request_id(dict(headers).get("x-request-id")),
            client_address(peer[0] if peer else None, forwarded, state.trusted),
        )
        own_address = client_address(peer[0] if peer else None, (), ())
        context.is_address_shared = context.address == own_address and (bool(forwarded) or own_address == LOCAL)
        method, path = scope["method"], _strip_prefix(scope["path"], state.settings.root_path)
        context.is_head = method == "HEAD"
        exchange = _Exchange(context, scope, receive, send, state)
        # answer HEAD like GET, without the body
        scope = {
            **scope,
            "method": "GET" if method == "HEAD" else method,
            "path": path,
            "state": dict(scope.get("state", {})),
        }
        request = Request[Any, Any, Any](scope)
        context.texts = state.registry.texts(
            str(request.query_params.get("language") or request.headers.get("accept-language", ""))
        )
        attach_context(scope, context)
        REQUEST.set(context.request_id)
        try:
            early = await _answer_early(scope, dict(headers), context, state)
            if early is not None:
                await _send_whole(early, exchange)
            else:
                await super().__call__(scope, exchange.receive, exchange.send)
        finally:
            context.cleanup.close()
            status = 499 if context.has_client_left else exchange.status
            path = hide_job_id(path)
            state.metrics.count_request(path, status, exchange.bytes_in, exchange.bytes_out)
            _log_request(method, path, status, context, exchange)


async def _answer_early(
    scope: Any, headers: Mapping[str, str], context: Context, state: ServiceState
) -> Response[bytes] | None:
    """Return the response to a request that no endpoint handles: a wrong host or origin, a preflight, a redirect."""
    access = await find_access(headers, state)
    rejection = find_rejection(scope, headers, state, access)
    if rejection is not None:
        return answer_error(Request(scope), rejection)
    context.headers.update(cors_headers(headers, state, access))
    preflight = preflight_headers(scope, headers, access)
    if preflight is not None:
        return Response(b"", status_code=204, headers=preflight)
    if not scope["path"]:
        # links of the page are relative to the folder
        return Response(b"", status_code=308, headers={"Location": state.settings.root_path + "/"})
    return None


async def _send_whole(response: Response[bytes], exchange: _Exchange) -> None:
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.headers.items()]
    if response.content:
        headers.append((b"content-type", b"application/json"))
    if response.status_code != 204:
        headers.append((b"content-length", str(len(response.content)).encode()))
    await exchange.send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await exchange.send({"type": "http.response.body", "body": response.content})


def _strip_prefix(path: str, root_path: str) -> str:
    """Return the path without the prefix of the proxy; a proxy may also have removed it."""
    if root_path and (path == root_path or path.startswith(root_path + "/")):
        return path.removeprefix(root_path)
    return path


def _log_request(method: str, path: str, status: int, context: Context, exchange: _Exchange) -> None:
    """Write the access log line of a request, as a warning after a failure inside the service."""
    milliseconds = (time.monotonic() - context.started) * 1000
    plan = context.caller.plan.id if context.caller else "-"
    access.log(
        logging.WARNING if context.reason else logging.INFO,
        "%s %s %s %.0f ms %s %s%s%s%s",
        method,
        path[:200].encode("unicode_escape").decode("ascii"),
        status,
        milliseconds,
        context.address,
        plan,
        f" {context.key_id}" if context.key_id else "",
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
                "key": context.key_id,
                "error_code": context.error_code,
                "reason": context.reason,
                "bytes_in": exchange.bytes_in,
                "bytes_out": exchange.bytes_out,
            }
        },
    )


class _Exchange:
    """One request and its response, with the number of body bytes in each direction."""

    def __init__(self, context: Context, scope: Any, receive: Any, send: Any, state: ServiceState) -> None:
        headers = dict(_decode_headers(scope))
        self._context = context
        self._receive = receive
        self._send = send
        self._state = state
        self._is_head = scope["method"] == "HEAD"
        self._compressor = Compressor(headers.get("accept-encoding", ""))
        self._abort: Callable[[], None] | None = scope.get("extensions", {}).get(ABORT)
        self._has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        self._expects_continue = headers.get("expect", "").lower() == "100-continue"
        self.status = 0
        self.bytes_in = 0
        self.bytes_out = 0

    async def receive(self) -> Any:
        message: Message = await self._receive()
        if message["type"] == "http.disconnect":
            self._context.has_client_left = self.status == 0
        else:
            self._count_received(message)
            self._context.has_body_started = True
        return message

    async def send(self, message: Any) -> None:
        for part in self._compressor.handle(message):
            await self._send_part(part)

    async def _send_part(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = self._start_response(message)
        elif message["type"] == "http.response.body":
            if self._is_head:
                message = {**message, "body": b""}
            self.bytes_out += len(message.get("body", b""))
            if self._has_unread_body and not message.get("more_body", False):
                # send the response first, for clients that read while they send; then read the rest of the body,
                # because closing a connection with unread bytes resets it, and the response may be lost
                await self._send({**message, "more_body": True})
                # other requests may wait for the disk space of this one
                self._context.cleanup.close()
                await self._drain()
                message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    def _start_response(self, message: Message) -> Message:
        """Record the status, limit the time of the download, and add the headers that every response has."""
        self.status = message["status"]
        self._limit_download(dict(message["headers"]))
        closes = self._has_unread_body or self._state.resources.is_closing
        added = common_headers(self._context.request_id, closes=closes) | self._context.headers
        # the framework does not list HEAD, which this layer answers
        headers = [
            (name, value + b", HEAD" if name.lower() == b"allow" and _lacks_head(value) else value)
            for name, value in translate_report(message["headers"], self._context.texts)
        ]
        headers += [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in added.items()]
        return {**message, "headers": headers}

    def _limit_download(self, headers: dict[bytes, bytes]) -> None:
        """Drop the connection if the client has not received the response by the deadline of the request.

        The response occupies disk until then. Servers without the extension ABORT do not limit the time.
        """
        size = int(headers.get(b"content-length", 0))
        self._state.resources.disk.record_response(self._context, size)
        if self._context.deadline is None or self._abort is None:
            return
        loop = asyncio.get_running_loop()
        min_duration = _MIN_DOWNLOAD_S + size / _MIN_DOWNLOAD_BYTES_PER_S
        timer = loop.call_at(max(self._context.deadline, loop.time() + min_duration), self._drop)
        self._context.cleanup.callback(timer.cancel)

    def _drop(self) -> None:
        assert self._abort is not None
        self._context.reason = "the client did not receive the response before the deadline of the request"
        self._abort()

    @property
    def _has_unread_body(self) -> bool:
        """Whether the client still sends a body that the service does not need."""
        if self._context.has_client_left or self._context.is_body_read or not self._has_body:
            return False
        return self._context.has_body_started or not self._expects_continue

    async def _drain(self) -> None:
        """Read and discard the rest of the body, within the limits of the settings."""
        # why this way: docs/decisions/0013-refused-uploads.md
        settings = self._state.settings
        remaining = settings.drain_bytes
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.drain_seconds):
                while remaining > 0 and self._has_unread_body:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        return
                    self._count_received(message)
                    remaining -= len(message.get("body", b""))

    def _count_received(self, message: Message) -> None:
        self.bytes_in += len(message.get("body", b""))
        self._context.is_body_read = not message.get("more_body", False)


def _decode_headers(scope: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]


def _lacks_head(allow: bytes) -> bool:
    return b"GET" in allow and b"HEAD" not in allow
