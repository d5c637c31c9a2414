"""What clients send, and how: forms, kept and fresh connections, and the ways to misbehave on a socket."""

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

PATIENCE = 300.0
"""Seconds after which an answer that does not come is a wrong one."""

_AT_ONCE = 64 << 10


@dataclass(frozen=True)
class Answer:
    """What came back: the status, the headers by their names in small letters, the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The `error_code`, or "" when the body is no error."""
        with contextlib.suppress(ValueError):
            told = json.loads(self.body)
            if isinstance(told, dict) and told.get("request_id") == self.headers.get("x-request-id"):
                return str(told.get("error_code", ""))
        return ""

    def shown(self) -> str:
        """Enough of it to see what went wrong."""
        return f"{self.status} {self.code or self.headers.get('content-type')} {len(self.body)} B {self.body[:200]!r}"


@dataclass(frozen=True)
class Form:
    """A multipart form: files as (field, name, content), texts by field."""

    files: tuple[tuple[str, str, bytes], ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> tuple[str, bytes]:
        """The Content-Type and the body."""
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


class Wire:
    """The connections of one client, from an address of its own."""

    def __init__(self, port: int, address: str) -> None:
        """`address` is where it calls from: any of 127.0.0.0/8."""
        self.port = port
        self.address = address
        self._kept: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Hang up."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def ask(
        self,
        method: str,
        path: str,
        form: Form | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        fresh: bool = False,
        chunked: bool = False,
    ) -> Answer:
        """A request and its whole answer, on the kept connection unless it should be `fresh`."""
        kind, body = form.encoded() if form is not None else ("", b"")
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
    ) -> Answer:
        """As `ask`, with any body."""
        told = {**(headers or {}), **({"Content-Type": kind} if kind else {})}
        if fresh:
            told["Connection"] = "close"
        used = self._usable(fresh)
        try:
            return self._exchange(method, path, body, told, chunked)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # the server may let go of an idle connection just as it is used again
            self.close()
            if not used:
                raise
            return self._exchange(method, path, body, told, chunked)

    def _usable(self, fresh: bool) -> bool:
        """Whether there is a connection from before."""
        if self._kept is not None and (fresh or _ended(self._kept.sock)):
            self.close()
        return self._kept is not None

    def _exchange(self, method: str, path: str, body: bytes, headers: dict[str, str], chunked: bool) -> Answer:
        if self._kept is None:
            self._kept = http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=PATIENCE, source_address=(self.address, 0)
            )
        try:
            if chunked:
                self._kept.request(method, path, _pieces(body), headers, encode_chunked=True)
            else:
                self._kept.request(method, path, body or None, headers)
            came = self._kept.getresponse()
            answer = Answer(came.status, {name.lower(): value for name, value in came.getheaders()}, came.read())
        except BaseException:
            self.close()
            raise
        if came.will_close:
            self.close()
        return answer

    # what a client should not do

    def raw(self, sent: bytes) -> bytes:
        """Everything that comes back for these bytes."""
        with self._socket() as line:
            with contextlib.suppress(ConnectionError):
                line.sendall(sent)
            return _rest(line)

    def leave_while_sending(
        self, path: str, form: Form, headers: Mapping[str, str], share: float, *, rude: bool
    ) -> None:
        """Send a share of a request and be gone."""
        sent = _request(path, form, headers)
        with self._socket() as line:
            with contextlib.suppress(ConnectionError):
                line.sendall(sent[: int(len(sent) * share)])
            _hang_up(line, rude)

    def leave_while_waiting(
        self, path: str, form: Form, headers: Mapping[str, str], seconds: float, *, rude: bool
    ) -> None:
        """Send a request, and be gone before its answer."""
        with self._socket() as line:
            with contextlib.suppress(ConnectionError):
                line.sendall(_request(path, form, headers))
            select.select([line], [], [], seconds)
            _hang_up(line, rude)

    def leave_while_reading(self, path: str, form: Form, headers: Mapping[str, str], count: int, *, rude: bool) -> None:
        """Read some of an answer, and be gone."""
        with self._socket(receives=4096) as line, contextlib.suppress(ConnectionError):
            line.sendall(_request(path, form, headers))
            line.recv(count)
            _hang_up(line, rude)

    def slowly(
        self, path: str, form: Form, headers: Mapping[str, str], *, up: float = 0.0, down: float = 0.0
    ) -> Answer:
        """A whole request whose bytes take some seconds on their way up, and some on their way down."""
        sent = _request(path, form, headers)
        with self._socket(receives=4096 if down else 0) as line:
            pieces = 20 if up else 1
            size = -(-len(sent) // pieces)
            for start in range(0, len(sent), size):
                line.sendall(sent[start : start + size])
                time.sleep(up / pieces)
            if down:
                time.sleep(down)
            came = http.client.HTTPResponse(line)
            came.begin()
            return Answer(came.status, {name.lower(): value for name, value in came.getheaders()}, came.read())

    def _socket(self, receives: int = 0) -> socket.socket:
        line = socket.socket()
        line.settimeout(PATIENCE)
        if receives:
            # before the connection is made, or the window is large already
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        line.bind((self.address, 0))
        line.connect(("127.0.0.1", self.port))
        return line


def parsed(raw: bytes) -> Answer:
    """An answer from a socket's bytes."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.split()[1]) if first.startswith("HTTP/1.1 ") else 0, headers, body)


def _request(path: str, form: Form, headers: Mapping[str, str]) -> bytes:
    kind, body = form.encoded()
    told: dict[str, Any] = {
        "Host": "127.0.0.1", "Connection": "close", **headers, "Content-Type": kind, "Content-Length": len(body),
    }  # fmt: skip
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _AT_ONCE):
        yield body[start : start + _AT_ONCE]


def _rest(line: socket.socket) -> bytes:
    came = b""
    with contextlib.suppress(ConnectionError):
        while piece := line.recv(_AT_ONCE):
            came += piece
    return came


def _ended(line: socket.socket | None) -> bool:
    """Whether the other end has hung up."""
    return line is None or bool(select.select([line], [], [], 0)[0])


def _hang_up(line: socket.socket, rude: bool) -> None:
    """End a connection, with a reset when it is done rudely."""
    if rude:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()
