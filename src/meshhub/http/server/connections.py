"""Connections: timeouts for idle senders and readers, limits per address, and JSON errors for non-HTTP input."""

# why this way: docs/decisions/0017-connections.md
from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from meshhub.engine.logs import REQUEST
from meshhub.http.admission.addresses import Trusted, count_networks, is_trusted
from meshhub.http.context import choose_request_id
from meshhub.http.errors import RETRY_AFTER, ErrorBody
from meshhub.http.headers import common_headers

log = logging.getLogger("meshhub.http")

HEADER_TIMEOUT_S = 15.0
"""Seconds to receive the request line and headers; bounds connections that send nothing."""

STALL_TIMEOUT_S = 60.0
"""Seconds without progress of a download before the connection is dropped."""

MAX_REQUEST_HEAD_BYTES = 64 << 10
"""Maximum bytes of the request line and headers together, and of the line before a chunk, while they are incomplete.

More are accepted if they arrive in one read (up to 256 KB).
"""

MIN_CHECKED_CHUNK_COUNT = 1000
"""Chunks of a body whose size is not checked, because small bodies may use tiny chunks."""

_MIN_MEAN_CHUNK_BYTES = 64
"""Mean bytes of further chunks. A chunk takes as long to parse as kilobytes in one piece, and blocks other requests.
"""

UNCOUNTED = "-"
"""Key of connections without a limit: those of trusted proxies and Unix sockets."""

ABORT = "meshhub.abort"
"""ASGI scope extension: drops the connection and discards unsent data."""


class Peers:
    """Number of connections of each address (IPv6: also of its networks). Those of trusted proxies are not limited."""

    def __init__(self, limit: int, trusted: Sequence[Trusted]) -> None:
        """Allow `limit` connections of one address."""
        self._limit = limit
        self._trusted = trusted
        self._counts: Counter[str] = Counter()

    def add(self, peer: str) -> str:
        """Count a connection; return the key to pass to `remove`, or "" if the limit is reached."""
        if not peer or is_trusted(peer, self._trusted):
            return UNCOUNTED
        counted = count_networks(peer)
        if any(self._counts[identity] >= self._limit * factor for identity, factor in counted):
            return ""
        self._counts.update(identity for identity, _ in counted)
        return counted[0].identity

    def remove(self, key: str) -> None:
        """Count a closed connection."""
        if key == UNCOUNTED:
            return
        for identity, _ in count_networks(key.partition("/")[0]):
            self._counts[identity] -= 1
            if self._counts[identity] <= 0:
                del self._counts[identity]


_AMBIGUOUS_LINE = re.compile(rb"(?<!\r)\n|\n[ \t]")
"""Bare LF, or a header continued on the next line; rejected, because programs split such headers differently. """

_LENGTH_LINE = re.compile(rb"\ncontent-length:[^\r]*", re.IGNORECASE)
"""Each header Content-Length as it was sent; h11 merges equal ones."""

_AUTHORITY = re.compile(rb"(?:\[[0-9a-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})+)(?::[0-9]*)?", re.IGNORECASE)
"""Host and port of RFC 3986 §3.2. RFC 9110 §4.2.4: a user name is an error."""

_ABSOLUTE_FORM = re.compile(rb"https?://(?P<host>[^/?#]*)(?P<path>[/?][^#]*)?", re.IGNORECASE)
"""Request target that proxies send."""


class _Parser(h11.Connection):
    """h11 parser that accepts targets in absolute form and rejects ambiguous headers and thousands of tiny chunks."""

    _chunk_count = _body_bytes = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event. Raises RemoteProtocolError also for ambiguous headers and tiny chunks."""
        unread = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunk_count = self._body_bytes = 0
            _check_framing(event, unread[: len(unread) - len(self.trailing_data[0])])
            _check_host(event)
            return _to_origin_form(event)
        if isinstance(event, h11.Data):
            # chunk_end is never set for a body with Content-Length
            self._chunk_count += event.chunk_end
            self._body_bytes += len(event.data)
            is_tiny = self._body_bytes < _MIN_MEAN_CHUNK_BYTES * self._chunk_count
            if self._chunk_count > MIN_CHECKED_CHUNK_COUNT and is_tiny:
                raise h11.RemoteProtocolError("the chunks are too small")
        return event


def _check_framing(request: h11.Request, head: bytes) -> None:
    """Raise RemoteProtocolError if another server could find a different end of the request in its head.

    If a proxy saw a different end, the rest of the body would be a request that the proxy has not checked.
    """
    names = {name for name, _ in request.headers}
    # RFC 9112 §6.1: both together are an attempt at request smuggling, and HTTP/1.0 does not define Transfer-Encoding
    is_coded = b"transfer-encoding" in names
    if is_coded and (b"content-length" in names or request.http_version < b"1.1"):
        raise h11.RemoteProtocolError("Transfer-Encoding with Content-Length or in HTTP/1.0")
    lengths = _LENGTH_LINE.findall(head)
    if len(lengths) > 1 or any(b"," in length for length in lengths):
        raise h11.RemoteProtocolError("several values of Content-Length")
    if _AMBIGUOUS_LINE.search(head):
        raise h11.RemoteProtocolError("a line ends in a bare LF or is continued")


def _check_host(request: h11.Request) -> None:
    """Raise RemoteProtocolError for a header Host that names no host (RFC 9112 §3.2); h11 rejects several and none."""
    for name, value in request.headers:
        # empty: RFC 9110 §7.2, for a target without an authority
        if name == b"host" and value and not _is_authority(value):
            raise h11.RemoteProtocolError("the header Host is neither a host nor a host and port")


def _to_origin_form(request: h11.Request) -> h11.Request:
    """Return a request with its target as a path. Raises RemoteProtocolError for an invalid target.

    The host in an absolute target replaces that of the header (RFC 9112 §3.2.2), so it is subject to the same check.
    """
    if request.target.startswith(b"/") or (request.target, request.method) == (b"*", b"OPTIONS"):
        return request
    match = _ABSOLUTE_FORM.fullmatch(request.target)
    if match is None or not _is_authority(match["host"]):
        raise h11.RemoteProtocolError("the target is neither a path nor an address with http: or https:")
    path = match["path"] or b"/"
    return h11.Request(
        method=request.method,
        target=path if path.startswith(b"/") else b"/" + path,
        headers=[(b"host", match["host"]), *(header for header in request.headers if header[0] != b"host")],
        http_version=request.http_version,
    )


def _is_authority(text: bytes) -> bool:
    """Return whether a text is a host, perhaps with a port in range; an address in brackets must be one of IPv6."""
    if _AUTHORITY.fullmatch(text) is None:
        return False
    try:
        parts = urlsplit(b"//" + text)
        if text.startswith(b"["):
            ipaddress.IPv6Address((parts.hostname or b"").decode())
        _ = parts.port
    except ValueError:
        return False
    return True


class Connection(H11Protocol):
    """uvicorn connection with timeouts for headers and readers."""

    def __init__(self, *arguments: Any, peers: Peers, **keywords: Any) -> None:
        """Create the connection as uvicorn does; `peers` counts the connections of each address."""
        super().__init__(*arguments, **keywords)
        self.conn = _Parser(h11.SERVER, MAX_REQUEST_HEAD_BYTES)
        self._peers = peers
        self._peer_key = ""
        self._header_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._app = self.app
        self.app = self._call_app

    async def _call_app(self, scope: Any, receive: Any, send: Any) -> None:
        """Call the application with the extension ABORT."""
        extensions = {**scope.get("extensions", {}), ABORT: self.transport.abort}
        await self._app({**scope, "extensions": extensions}, receive, send)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for headers, and reject the connection if its address has too many."""
        super().connection_made(transport)
        self._start_header_timer()
        self._peer_key = self._peers.add(self.client[0] if self.client else "")
        if not self._peer_key:
            self._reject(503, "server_busy", "too many connections are open from your address; close some")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and release the connection's place."""
        self._stop_header_timer()
        self._stop_stall_timer()
        if self._peer_key:
            self._peers.remove(self._peer_key)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes, and stop the timeout for headers when they are complete."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._start_header_timer()
        else:
            self._stop_header_timer()

    def pause_writing(self) -> None:
        """Watch the client's progress: it reads slower than the service sends."""
        super().pause_writing()
        self._start_stall_timer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop watching: the client has read enough."""
        super().resume_writing()
        self._stop_stall_timer()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Send a JSON error for invalid HTTP; uvicorn's own is plain text."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        message = (
            "invalid HTTP/1.1: the request line, a header, Host, Content-Length or a chunk is malformed, ambiguous, "
            "too long or too small; send it with an HTTP library"
        )
        self._reject(400, "bad_request", message)

    def _reject(self, status: int, code: str, message: str) -> None:
        """Send an error without the application, and close the connection."""
        if self.cycle is not None:
            # the application may respond before the connection is closed
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        request_id = choose_request_id(None)
        token = REQUEST.set(request_id)
        log.info("answered %d %s to %s: %s", status, code, self.client[0] if self.client else "local", message)
        REQUEST.reset(token)
        body = msgspec.json.encode(ErrorBody(message, code, request_id))
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            **common_headers(request_id, closes=True),
            **({"retry-after": str(RETRY_AFTER[code])} if code in RETRY_AFTER else {}),
        }
        for event in (
            h11.Response(status_code=status, headers=list(headers.items()), reason=HTTPStatus(status).phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_TIMEOUT_S, self._handle_header_timeout)

    def _handle_header_timeout(self) -> None:
        """Answer a request with incomplete headers; close a connection that has sent nothing."""
        if self.conn.trailing_data[0]:
            message = f"the request headers were not complete within {HEADER_TIMEOUT_S:g} s; send the request again"
            self._reject(408, "request_timeout", message)
        else:
            self.transport.abort()

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _start_stall_timer(self, unsent_bytes: int) -> None:
        self._stall_timer = self.loop.call_later(STALL_TIMEOUT_S, self._check_progress, unsent_bytes)

    def _check_progress(self, unsent_bytes: int) -> None:
        remaining = self.transport.get_write_buffer_size()
        if remaining < unsent_bytes:
            self._start_stall_timer(remaining)
        else:
            # discard the unsent data, so that the request ends and its folder is removed
            self.transport.abort()
