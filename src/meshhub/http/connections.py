"""One connection: no sender and no reader may hold it for nothing, and what is no HTTP is told so like every error."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from meshhub.http.context import request_id
from meshhub.http.errors import ErrorBody

log = logging.getLogger("meshhub.http")

HEADER_SECONDS = 15.0
"""How long a request's line and headers may take, from the connection or from their first byte."""

STALL_SECONDS = 60.0
"""How long an answer may wait without the reader taking any of it."""


class Connection(H11Protocol):
    """uvicorn's, which by itself waits for ever for headers and for readers."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        """As uvicorn makes it."""
        super().__init__(*arguments, **more)
        self._headers: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and expect headers."""
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_headers()
        self._stop_stall()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and see whether they complete the headers."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._expect_headers()
        else:
            self._stop_headers()

    def pause_writing(self) -> None:
        """The reader is slower than the answer."""
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The reader has caught up."""
        super().resume_writing()
        self._stop_stall()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Answer what is not HTTP; uvicorn would do so in plain text."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        own_id = request_id(None)
        log.info("what came from %s is not HTTP; answered 400, request %s", self.client, own_id)
        text = "the request is not valid HTTP/1.1: its first line, a header, Content-Length or a chunk is malformed, "
        body = msgspec.json.encode(
            ErrorBody(text + "or the headers are too long; let an HTTP library send it", "bad_request", own_id)
        )
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "x-request-id": own_id,
            "connection": "close",
        }
        for event in (
            h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect_headers(self) -> None:
        if self._headers is None:
            self._headers = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_headers(self) -> None:
        if self._headers is not None:
            self._headers.cancel()
            self._headers = None

    def _stop_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _watch_reader(self, unsent: int) -> None:
        self._stall = self.loop.call_later(STALL_SECONDS, self._stalled, unsent)

    def _stalled(self, unsent: int) -> None:
        now = self.transport.get_write_buffer_size()
        if now < unsent:
            self._watch_reader(now)
        else:
            # what waits to be sent is let go of, so that the request and its folder end
            self.transport.abort()
