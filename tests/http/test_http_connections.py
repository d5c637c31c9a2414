"""What holds a connection, and what is no HTTP at all."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from http_serving import Running, until

from meshhub.http import connections

FORM = (
    b'--b\r\nContent-Disposition: form-data; name="target"\r\n\r\ntoy\r\n'
    b'--b\r\nContent-Disposition: form-data; name="toy_weight"\r\n\r\n80000000\r\n'
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.toy"\r\n\r\ntoy\r\n--b--\r\n'
)


def asked(more: bytes) -> bytes:
    return b"POST /convert HTTP/1.1\r\nHost: here\r\n" + more + b"\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET /plan HTTP/1.1\r\n\r\n",
        b"GET /pl\x00an HTTP/1.1\r\nHost: here\r\n\r\n",
        asked(b"Content-Length: many\r\n"),
        asked(b"Content-Length: -1\r\n"),
        asked(b"Content-Length: 5\r\nContent-Length: 6\r\n"),
        asked(b"Transfer-Encoding: gzip\r\n"),
        asked(b"Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n") + b"zz\r\n",
    ],
)
def test_what_is_not_http_is_answered_like_every_error(service: Running, sent: bytes) -> None:
    head, _, body = service.raw(sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head.lower()
    told = json.loads(body)
    assert told["error_code"] == "bad_request"
    assert f"x-request-id: {told['request_id']}".encode() in head.lower()


@pytest.mark.parametrize("sent", [b"", b"GET /plan HTTP/1.1\r\nHost: he"])
def test_headers_that_never_end_are_not_waited_for(
    service: Running, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.1)
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(sent)
        assert ended(connection)


def test_nor_those_of_a_second_request(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.1)
    with socket.create_connection(("127.0.0.1", service.port), timeout=14) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: here\r\n\r\n")
        came = b""
        while b"live" not in came:
            piece = connection.recv(65_536)
            assert piece
            came += piece
        connection.sendall(b"GET /plan HTTP/1.1\r\n")
        assert ended(connection)


def test_a_body_may_take_longer_than_headers(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.1)
    form = FORM.replace(b"80000000", b"8")
    kind = b"Connection: close\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n" % len(form)
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(asked(kind) + form[:50])
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(20)
        connection.sendall(form[50:])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_a_reader_that_takes_nothing_is_left(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.1)
    running: Running = serve()
    kind = b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n" % len(FORM)
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.sendall(asked(kind) + FORM)
        assert connection.recv(16).startswith(b"HTTP/1.1 200")
        until(lambda: running.leftovers() == [])


def ended(connection: socket.socket) -> bool:
    """Whether the other side lets go before the socket's own timeout."""
    try:
        return connection.recv(65_536) == b""
    except ConnectionResetError:
        return True
