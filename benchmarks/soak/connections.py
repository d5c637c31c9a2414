"""Requests of a client: multipart forms, kept and new connections, and misbehavior on a socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import select
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

RESPONSE_TIMEOUT_S = 300.0
"""Seconds to wait for a response; a later one counts as wrong."""

_CHUNK_BYTES = 64 << 10


@dataclass(frozen=True)
class Response:
    """Response of the service; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The `error_code`, or "" if the body is not an error."""
        with contextlib.suppress(ValueError):
            payload = json.loads(self.body)
            if isinstance(payload, dict) and payload.get("request_id") == self.headers.get("x-request-id"):
                return str(payload.get("error_code", ""))
        return ""

    def describe(self) -> str:
        """Return the status, code and start of the body, for a fault."""
        return f"{self.status} {self.code or self.headers.get('content-type')} {len(self.body)} B {self.body[:200]!r}"


@dataclass(frozen=True)
class Form:
    """Multipart form: files as (field, name, content), texts by field."""

    files: tuple[tuple[str, str, bytes], ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> tuple[str, bytes]:
        """Return the Content-Type and the body."""
        boundary = secrets.token_hex(12)
        parts = []
        for name, value in self.texts.items():
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
            parts += [head.encode(), value.encode(), b"\r\n"]
        for name, filename, content in self.files:
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n'
            parts += [head.encode(), b"Content-Type: application/octet-stream\r\n\r\n", content, b"\r\n"]
        parts.append(f"--{boundary}--\r\n".encode())
        return f"multipart/form-data; boundary={boundary}", b"".join(parts)


class Connections:
    """Connections of one client, from its own address."""

    def __init__(self, port: int, address: str) -> None:
        """Connect from `address`, any of 127.0.0.0/8."""
        self.port = port
        self.address = address
        self._kept: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Close the kept connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def request(
        self,
        method: str,
        path: str,
        form: Form | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        fresh: bool = False,
        chunked: bool = False,
    ) -> Response:
        """Send a request and return its response; `fresh` opens a new connection."""
        kind, body = form.encode() if form is not None else ("", b"")
        return self.send(method, path, kind, body, headers, fresh=fresh, chunked=chunked)

    def send(
        self,
        method: str,
        path: str,
        kind: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        fresh: bool = False,
        chunked: bool = False,
    ) -> Response:
        """Send a request with any body; otherwise as `request`."""
        all_headers = {**(headers or {}), **({"Content-Type": kind} if kind else {})}
        if fresh:
            all_headers["Connection"] = "close"
        is_reused = self._prepare(fresh)
        try:
            return self._exchange(method, path, body, all_headers, chunked)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # the server may close an idle connection at the moment of its reuse
            self.close()
            if not is_reused:
                raise
            return self._exchange(method, path, body, all_headers, chunked)

    def _prepare(self, fresh: bool) -> bool:
        """Close the kept connection if it is unusable; return whether the next request reuses it."""
        if self._kept is not None and (fresh or _is_closed_by_peer(self._kept.sock)):
            self.close()
        return self._kept is not None

    def _exchange(self, method: str, path: str, body: bytes, headers: dict[str, str], chunked: bool) -> Response:
        if self._kept is None:
            self._kept = http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=RESPONSE_TIMEOUT_S, source_address=(self.address, 0)
            )
        try:
            if chunked:
                self._kept.request(method, path, _split(body), headers, encode_chunked=True)
            else:
                self._kept.request(method, path, body or None, headers)
            raw = self._kept.getresponse()
            response = Response(raw.status, {name.lower(): value for name, value in raw.getheaders()}, raw.read())
        except BaseException:
            self.close()
            raise
        if raw.will_close:
            self.close()
        return response

    # misbehavior of clients

    def exchange_raw(self, data: bytes) -> bytes:
        """Send bytes and return everything that comes back."""
        with self._socket() as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            return _receive_all(connection)

    def leave_while_sending(
        self, path: str, form: Form, headers: Mapping[str, str], share: float, *, abrupt: bool
    ) -> None:
        """Send a share of a request and disconnect."""
        data = _encode_request(path, form, headers)
        with self._socket() as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data[: int(len(data) * share)])
            _disconnect(connection, abrupt)

    def leave_while_waiting(
        self, path: str, form: Form, headers: Mapping[str, str], seconds: float, *, abrupt: bool
    ) -> None:
        """Send a request and disconnect before the response."""
        with self._socket() as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(_encode_request(path, form, headers))
            select.select([connection], [], [], seconds)
            _disconnect(connection, abrupt)

    def leave_while_reading(
        self, path: str, form: Form, headers: Mapping[str, str], count: int, *, abrupt: bool
    ) -> None:
        """Read a part of a response and disconnect."""
        with self._socket(receive_buffer_bytes=4096) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(_encode_request(path, form, headers))
            connection.recv(count)
            _disconnect(connection, abrupt)

    def send_slowly(
        self, path: str, form: Form, headers: Mapping[str, str], *, upload_s: float = 0.0, download_s: float = 0.0
    ) -> Response:
        """Send a request over `upload_s` seconds, or wait `download_s` seconds before reading the response."""
        data = _encode_request(path, form, headers)
        with self._socket(receive_buffer_bytes=4096 if download_s else 0) as connection:
            count = 20 if upload_s else 1
            size = -(-len(data) // count)
            for start in range(0, len(data), size):
                connection.sendall(data[start : start + size])
                time.sleep(upload_s / count)
            if download_s:
                time.sleep(download_s)
            raw = http.client.HTTPResponse(connection)
            raw.begin()
            return Response(raw.status, {name.lower(): value for name, value in raw.getheaders()}, raw.read())

    def _socket(self, receive_buffer_bytes: int = 0) -> socket.socket:
        connection = socket.socket()
        connection.settimeout(RESPONSE_TIMEOUT_S)
        if receive_buffer_bytes:
            # before connecting: the connection fixes the TCP window
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        connection.bind((self.address, 0))
        connection.connect(("127.0.0.1", self.port))
        return connection


def parse_response(raw: bytes) -> Response:
    """Parse the bytes that a socket received."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Response(int(first.split()[1]) if first.startswith("HTTP/1.1 ") else 0, headers, body)


def _encode_request(path: str, form: Form, headers: Mapping[str, str]) -> bytes:
    kind, body = form.encode()
    all_headers: dict[str, Any] = {
        "Host": "127.0.0.1", "Connection": "close", **headers, "Content-Type": kind, "Content-Length": len(body),
    }  # fmt: skip
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in all_headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def _split(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _CHUNK_BYTES):
        yield body[start : start + _CHUNK_BYTES]


def _receive_all(connection: socket.socket) -> bytes:
    received = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(_CHUNK_BYTES):
            received += chunk
    return received


def _is_closed_by_peer(connection: socket.socket | None) -> bool:
    """Return whether the server has closed the connection."""
    return connection is None or bool(select.select([connection], [], [], 0)[0])


def _disconnect(connection: socket.socket, abrupt: bool) -> None:
    """Close a connection, with a reset if `abrupt`."""
    if abrupt:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
