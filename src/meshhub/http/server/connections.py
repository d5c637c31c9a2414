"""One connection: no sender and no reader may hold it for nothing, and what is no HTTP is told so like every error."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from meshhub.engine.logs import REQUEST
from meshhub.http.admission.addresses import Network, is_trusted, rate_identity
from meshhub.http.context import request_id
from meshhub.http.errors import RETRY_AFTER, ErrorBody

log = logging.getLogger("meshhub.http")

HEADER_SECONDS = 15.0
"""How long a request's line and headers may take, from the connection or from their first byte."""

STALL_SECONDS = 60.0
"""How long an answer may wait without the reader taking any of it."""

MOST_HEADER_BYTES = 64 << 10
"""Of a request's line and headers together, and of the line before a chunk."""

TINY_CHUNKS = 1000
"""So many chunks of a body may be as small as they like."""

_SMALL_CHUNK = 64
"""Bytes that they must have on average from then on: to parse one takes as long as many kilobytes in one piece, and
nobody else is served meanwhile."""

UNCOUNTED = "-"
"""What connections of trusted proxies and of Unix sockets stand under."""

ASK_SECONDS = 0.2
"""After this, and then ever more seldom, a client that sends no more is asked whether it still listens."""

_SELDOM_SECONDS = 5.0
_PATIENCE = 1.5
"""The longest wait between two looks at a client that cannot be asked: 3 seconds in all."""


ABORT = "meshhub.abort"
"""Extension of the ASGI scope: drops the connection with all that waits to be sent."""


class Peers:
    """How many connections each address has, IPv6 by /64. A trusted proxy's are of many callers, and not counted."""

    def __init__(self, most: int, trusted: Sequence[Network]) -> None:
        """`most` connections of one address are taken."""
        self._most = most
        self._trusted = trusted
        self._open: Counter[str] = Counter()

    def come(self, peer: str) -> str:
        """Count a connection; what it is counted by, or "" when it is one too many."""
        address = rate_identity(peer) if peer and not is_trusted(peer, self._trusted) else UNCOUNTED
        if address != UNCOUNTED and self._open[address] >= self._most:
            return ""
        self._open[address] += 1
        return address

    def leave(self, address: str) -> None:
        """The connection is over."""
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]


class _Parsed(h11.Connection):
    """h11's, which takes bodies in chunks of a single byte as long as they come."""

    _chunks = _chunked = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """What comes next. Raises RemoteProtocolError also for chunks that are tiny by the thousand."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._chunked = 0
        elif isinstance(event, h11.Data):
            # a body of known length has none, however its bytes arrive
            self._chunks += event.chunk_end
            self._chunked += len(event.data)
            if self._chunks > TINY_CHUNKS and self._chunked < _SMALL_CHUNK * self._chunks:
                raise h11.RemoteProtocolError("the chunks are too small")
        return event


class Connection(H11Protocol):
    """uvicorn's, which by itself waits for ever for headers and readers, and takes half a farewell for a whole one."""

    def __init__(self, *arguments: Any, peers: Peers, **more: Any) -> None:
        """As uvicorn makes it; `peers` counts the connections of each address."""
        super().__init__(*arguments, **more)
        self.conn = _Parsed(h11.SERVER, MOST_HEADER_BYTES)
        self._peers = peers
        self._counted = ""
        self._headers: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._asking: asyncio.TimerHandle | None = None
        self._ended = False
        self._app = self.app
        self.app = self._with_abort

    async def _with_abort(self, scope: Any, receive: Any, send: Any) -> None:
        """Call the application with the extension ABORT."""
        scope = {**scope, "extensions": {**scope.get("extensions", {}), ABORT: self.transport.abort}}
        await self._app(scope, receive, send)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and expect headers."""
        super().connection_made(transport)
        self._expect_headers()
        self._counted = self._peers.come(self.client[0] if self.client else "")
        if not self._counted:
            self._refuse(503, "server_busy", "too many connections are open from your address; close some")

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_headers()
        self._stop_stall()
        if self._asking is not None:
            self._asking.cancel()
        if self._counted:
            self._peers.leave(self._counted)
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more: it left, or it has said all and waits for the answer, as `nc` does."""
        if self.cycle is None or self.cycle.more_body or self.cycle.response_complete:
            return False
        if not self._ended:
            self._ended = True
            self._ask_again_in(ASK_SECONDS)
        return True

    def on_response_complete(self) -> None:
        """Go on to the next request, or close what brings no more."""
        super().on_response_complete()
        if self._ended and self.cycle.response_complete:
            self.transport.close()

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
        text = (
            "the request is not valid HTTP/1.1: its first line, a header, Content-Length or a chunk is malformed, "
            "the headers are too long, or the chunks too small; let an HTTP library send it"
        )
        self._refuse(400, "bad_request", text)

    def _refuse(self, status: int, code: str, text: str) -> None:
        """Answer without the application, and close."""
        own_id = request_id(None)
        told_by = REQUEST.set(own_id)
        log.info("answered %d %s to %s: %s", status, code, self.client[0] if self.client else "local", text)
        REQUEST.reset(told_by)
        body = msgspec.json.encode(ErrorBody(text, code, own_id))
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "x-request-id": own_id,
            "connection": "close",
            **({"retry-after": str(RETRY_AFTER[code])} if code in RETRY_AFTER else {}),
        }
        for event in (
            h11.Response(status_code=status, headers=list(headers.items()), reason=HTTPStatus(status).phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _ask_again_in(self, seconds: float) -> None:
        self._asking = self.loop.call_later(seconds, self._ask, seconds)

    def _ask(self, waited: float) -> None:
        """See whether a client that sends no more still listens.

        Both look alike until something is sent: who has left answers it with a reset. So an interim
        answer is sent, which RFC 9110 §15.2 lets every client of HTTP/1.1 expect. One of HTTP/1.0 cannot be
        asked, and has three seconds.
        """
        if self.transport.is_closing() or self.cycle.response_started:
            return
        held = self.transport.get_extra_info("socket")
        unasked = self.scope["http_version"] == "1.0"
        if (unasked and waited > _PATIENCE) or held.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
            return
        if not unasked:
            interim = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            self.transport.write(self.conn.send(interim) or b"")
        self._ask_again_in(min(2 * waited, _SELDOM_SECONDS))

    def _expect_headers(self) -> None:
        if self._headers is None:
            self._headers = self.loop.call_later(HEADER_SECONDS, self._headers_late)

    def _headers_late(self) -> None:
        """Answer a request whose headers do not end; close a connection that has sent nothing."""
        if self.conn.trailing_data[0]:
            text = f"the headers of the request did not end within {HEADER_SECONDS:g} s; send it again"
            self._refuse(408, "request_timeout", text)
        else:
            self.transport.abort()

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
