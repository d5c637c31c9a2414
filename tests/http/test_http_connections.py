"""What holds a connection, and what is no HTTP at all."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from http_serving import Running, all_of, until
from meshhub.http.admission.addresses import networks
from meshhub.http.server import connections

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


def in_chunks(pieces: list[bytes]) -> bytes:
    """A request whose body comes in these chunks."""
    kind = b"Connection: close\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n"
    return asked(kind) + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


def test_a_body_in_tiny_chunks_holds_up_nobody(service: Running) -> None:
    form = FORM.replace(b"80000000", b"8")
    chunks = [b"x"] * (connections.MIN_CHECKED_CHUNK_COUNT + 1)
    head, _, body = service.raw(in_chunks(chunks)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error_code"] == "bad_request"

    assert service.raw(in_chunks([form[at : at + 1] for at in range(len(form))])).startswith(b"HTTP/1.1 200 ")
    lines = [b"-" * 62 + b"\r\n"] * (2 * connections.MIN_CHECKED_CHUNK_COUNT)
    assert service.raw(in_chunks([*lines, form])).startswith(b"HTTP/1.1 200 ")


def late(came: bytes) -> bool:
    """Return whether an answer says that the headers did not end in time."""
    head, _, body = came.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    answer = json.loads(body)
    assert f"x-request-id: {answer['request_id']}".encode() in head
    return head.startswith(b"HTTP/1.1 408 ") and answer["error_code"] == "request_timeout"


def test_headers_that_never_end_are_not_waited_for(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 0.1)
    for sent in (b"GE", b"GET /plan HTTP/1.1\r\nHost: he", b"GET /plan HTTP/1.1\r\nHost: here\r\n"):
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
            connection.sendall(sent)
            assert late(all_of(connection))


def test_a_connection_that_sends_nothing_is_closed(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 0.1)
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        assert ended(connection)


def test_nor_those_of_a_second_request(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 0.1)
    with socket.create_connection(("127.0.0.1", service.port), timeout=14) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: here\r\n\r\n")
        came = b""
        while b"live" not in came:
            piece = connection.recv(65_536)
            assert piece
            came += piece
        connection.sendall(b"GET /plan HTTP/1.1\r\n")
        assert late(all_of(connection))


def test_a_body_may_take_longer_than_headers(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 0.1)
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
    monkeypatch.setattr(connections, "STALL_TIMEOUT_S", 0.1)
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


def whole(content: bytes, version: bytes = b"1.1") -> bytes:
    """A request of one go."""
    form = FORM.replace(b"80000000", b"8").replace(b"\r\n\r\ntoy\r\n--b--", b"\r\n\r\n%s\r\n--b--" % content)
    kind = b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n" % len(form)
    return asked(kind).replace(b"HTTP/1.1", b"HTTP/" + version) + form


def half_closed(running: Running, sent: bytes) -> socket.socket:
    """A connection that will send no more, as `nc -N` leaves it."""
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=20)
    connection.sendall(sent)
    connection.shutdown(socket.SHUT_WR)
    return connection


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_who_has_said_all_gets_the_answer(service: Running, version: bytes) -> None:
    with half_closed(service, whole(b"toy", version)) as connection:
        assert b'{"faces": 12}' in all_of(connection)
    with half_closed(service, b"GET /plan HTTP/%s\r\nHost: here\r\n\r\n" % version) as connection:
        assert b'"plan":"free"' in all_of(connection)


def test_so_does_who_asked_for_two_things(service: Running) -> None:
    with half_closed(service, b"GET /plan HTTP/1.1\r\nHost: here\r\n\r\n" * 2) as connection:
        assert all_of(connection).count(b'"plan":"free"') == 2


def test_who_waits_long_is_asked_and_gets_the_answer(serve: Any, engine: Any, tmp_path: Path) -> None:
    running: Running = serve(engine)
    go = tmp_path / "go"
    with half_closed(running, whole(b"toy wait %s" % bytes(go))) as connection:
        interim = connection.recv(25)
        assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"[: len(interim)]
        go.write_text("go")
        came = interim + all_of(connection)
    assert came.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"").startswith(b"HTTP/1.1 200 ")


def test_the_job_of_one_who_leaves_after_all_is_stopped(serve: Any, engine: Any, tmp_path: Path) -> None:
    running: Running = serve(engine)
    go = tmp_path / "go"
    with half_closed(running, whole(b"toy wait %s" % bytes(go))) as connection:
        assert connection.recv(25)
    until(lambda: running.leftovers() == [])
    assert not go.exists()
    with half_closed(running, whole(b"toy wait %s" % bytes(go), b"1.0")) as connection:
        # nothing may be sent to see whether it listens: HTTP/1.0 knows no interim answers
        assert all_of(connection) == b""
    until(lambda: running.leftovers() == [])


def test_half_a_request_is_none(service: Running) -> None:
    with half_closed(service, whole(b"toy")[:-20]) as connection:
        assert all_of(connection) == b""
    until(lambda: service.leftovers() == [])


def test_one_address_has_so_many_connections(serve: Any) -> None:
    running: Running = serve(connections_per_address=5)
    running.client.close()
    with contextlib.ExitStack() as stack:

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=20))

        def asked() -> bytes:
            connection = connected()
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"GET /plan HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
                return all_of(connection)
            return b""

        until(lambda: b" 200 " in asked())
        idle = [connected() for _ in range(5)]
        sixth = connected()
        head, _, body = all_of(sixth).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: " in head
        assert json.loads(body)["error_code"] == "server_busy"
        idle[0].close()
        until(lambda: b" 200 " in asked())


def test_a_trusted_proxy_has_as_many_as_it_likes() -> None:
    peers = connections.Peers(1, networks(["10.0.0.0/8"]))
    for _ in range(3):
        assert peers.add("10.1.2.3") == peers.add("") == connections.UNCOUNTED
    first = peers.add("2001:db8::1")
    assert first
    assert peers.add("2001:db8::2") == ""
    assert peers.add("2001:db8:1::") != ""
    peers.remove(first)
    assert peers.add("2001:db8::2") == first
