"""Connections: timeouts, closed sockets, limits per address, and input that is not HTTP."""

from __future__ import annotations

import contextlib
import email
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from http_serving import Running, receive_all
from meshhub.http.admission.addresses import networks
from meshhub.http.headers import RESPONSE_HEADERS, TAGS
from meshhub.http.intake import reception
from meshhub.http.server import connections
from waiting import wait_until

FORM = (
    b'--b\r\nContent-Disposition: form-data; name="target"\r\n\r\ntoy\r\n'
    b'--b\r\nContent-Disposition: form-data; name="toy_weight"\r\n\r\n80000000\r\n'
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.toy"\r\n\r\ntoy\r\n--b--\r\n'
)


def build_head(more: bytes) -> bytes:
    return b"POST /convert HTTP/1.1\r\nHost: here\r\n" + more + b"\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET /plan HTTP/1.1\r\n\r\n",
        b"GET /pl\x00an HTTP/1.1\r\nHost: here\r\n\r\n",
        build_head(b"Content-Length: many\r\n"),
        build_head(b"Content-Length: -1\r\n"),
        build_head(b"Content-Length: 5\r\nContent-Length: 6\r\n"),
        build_head(b"Transfer-Encoding: gzip\r\n"),
        build_head(b"Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n") + b"zz\r\n",
    ],
)
def test_input_that_is_not_http_gets_a_json_error(service: Running, data: bytes) -> None:
    head, _, body = service.raw(data).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head.lower()
    payload = json.loads(body)
    assert payload["error_code"] == "bad_request"
    assert f"x-request-id: {payload['request_id']}".encode() in head.lower()
    headers = email.message_from_bytes(head.partition(b"\r\n")[2])
    for header in RESPONSE_HEADERS:
        assert header.name in headers or header.statuses or header.tags != TAGS


@pytest.mark.parametrize(
    "request_head",
    [
        build_head(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + b"0\r\n\r\n",
        build_head(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") + b"0\r\n\r\n",
        build_head(b"Content-Length: 5\r\nContent-Length: 5\r\n"),
        build_head(b"Content-Length: 5, 5\r\n"),
        build_head(b"Content-Length: +5\r\n"),
        build_head(b"Content-Length: 0x5\r\n"),
        build_head(b"Content-Length : 5\r\n"),
        build_head(b"Transfer-Encoding : chunked\r\n"),
        build_head(b"Transfer-Encoding: chunked, identity\r\n"),
        build_head(b"Transfer-Encoding: identity, chunked\r\n"),
        build_head(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
        build_head(b"Transfer-Encoding: \x0bchunked\r\n"),
        build_head(b"Transfer-Encoding:\r\n chunked\r\n"),
        build_head(b"X-Note: a\r\n\tb\r\nContent-Length: 5\r\n"),
        build_head(b"X-Note: a\nContent-Length: 5\r\n"),
        build_head(b"X-Note: a\rContent-Length: 5\r\n"),
        build_head(b"Content-Length: 5\r\n").replace(b"\r\n", b"\n"),
        build_head(b"Transfer-Encoding: chunked\r\n").replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n",
        build_head(b"Transfer-Encoding: chunked\r\n") + b"5;\n0\r\n",
        build_head(b"Transfer-Encoding: chunked\r\n") + b"5\nhello\r\n0\r\n\r\n",
        build_head(b"Transfer-Encoding: chunked\r\n") + b"5\r\nhelloXX0\r\n\r\n",
        build_head(b"Transfer-Encoding: chunked\r\n") + b"-5\r\nhello\r\n0\r\n\r\n",
        build_head(b"Host: there\r\n"),
        b"GET http://user:secret@localhost/plan HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http:///plan HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET ftp://localhost/plan HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET plan HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://localhost/plan HTTP/1.1\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_a_request_whose_end_is_ambiguous_hides_no_second_one(service: Running, request_head: bytes) -> None:
    hidden = b"GET /plan HTTP/1.1\r\nHost: here\r\n\r\n"
    answer = service.raw(request_head + b"hello" + hidden)
    assert answer.count(b"HTTP/1.1 ") == 1
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error_code"] == "bad_request"


def test_an_extension_of_a_chunk_is_ignored(service: Running) -> None:
    data = build_chunked_request([FORM.replace(b"80000000", b"8")])
    length = data.index(b"\r\n", data.index(b"\r\n\r\n") + 4)
    answer = service.raw(data[:length] + b";name=value" + data[length:])
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"http://localhost/plan", None),
        (b"HTTP://127.0.0.1:8000/plan?a=http://x/", None),
        (b"https://[::1]:8000/plan", None),
        (b"http://localhost", "/"),
        (b"http://localhost?a=1", "/"),
        (b"http://localhost/nowhere", "/nowhere"),
    ],
)
def test_a_target_may_be_an_address(service: Running, version: bytes, target: bytes, path: str | None) -> None:
    request = b"GET %s HTTP/%s\r\nHost: localhost\r\nConnection: close\r\n\r\n" % (target, version)
    head, _, body = service.raw(request).partition(b"\r\n\r\n")
    if path == "/nowhere":
        assert head.startswith(b"HTTP/1.1 404 ")
        assert f"'{path}'" in json.loads(body)["error"]
    else:
        assert head.startswith(b"HTTP/1.1 200 ")
        assert path == "/" or json.loads(body)["plan"] == "free"


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        # the host of the target counts, not that of the header
        (b"http://evil.example/plan", b"localhost", 421),
        (b"http://evil.example@/plan", b"localhost", 400),
        (b"http://localhost:99999x/plan", b"localhost", 400),
        (b"http://localhost:65536/plan", b"localhost", 400),
        (b"http://localhost:80:80/plan", b"localhost", 400),
        (b"http://local host/plan", b"localhost", 400),
        (b"http://[::1/plan", b"localhost", 400),
        (b"http://::1]/plan", b"localhost", 400),
        (b"http://[1:2]/plan", b"localhost", 400),
        (b"http://localhost:/plan", b"localhost", 200),
        (b"http://localhost/plan", b"evil.example", 200),
        (b"/plan", b"evil.example", 421),
    ],
)
def test_the_host_of_a_target_is_checked(service: Running, target: bytes, host: bytes, status: int) -> None:
    answer = service.raw(b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target, host))
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert status != 421 or json.loads(answer.partition(b"\r\n\r\n")[2])["error_code"] == "host_not_allowed"


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [b"localhost", b"localhost"],
        [b"local host"],
        [b"localhost:80:80"],
        [b"localhost:65536"],
        [b"localhost:x"],
        [b"user@localhost"],
        [b"http://localhost"],
        [b"localhost/plan"],
        [b"[::1"],
        [b"::1"],
        [b"[1:2]"],
        [b"local%host"],
        [b":80"],
    ],
)
@pytest.mark.parametrize("target", [b"/plan", b"http://localhost/plan"])
def test_an_invalid_host_is_rejected(service: Running, target: bytes, hosts: list[bytes]) -> None:
    """RFC 9112 §3.2."""
    lines = b"".join(b"Host: %s\r\n" % host for host in hosts)
    head, _, body = service.raw(b"GET %s HTTP/1.1\r\n%s\r\n" % (target, lines)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    payload = json.loads(body)
    assert payload["error_code"] == "bad_request"
    assert "Host" in payload["error"]


@pytest.mark.parametrize("host", [b"localhost", b"LOCALHOST:80", b"127.0.0.1:", b"[::1]:8000", b"a_b"])
def test_a_valid_host_is_accepted(service: Running, host: bytes) -> None:
    answer = service.raw(b"GET /plan HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host)
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("settings", [{}, {"allowed_hosts": ["models.example"]}])
def test_probes_without_host_reach_health_alone(serve: Any, settings: dict[str, Any]) -> None:
    running: Running = serve(**settings)
    for path, status in ((b"/health/live", 200), (b"/health/ready", 200), (b"/plan", 421), (b"/metrics", 421)):
        assert running.raw(b"GET %s HTTP/1.0\r\n\r\n" % path).startswith(b"HTTP/1.1 %d " % status)
    foreign = b"GET /health/live HTTP/1.0\r\nHost: evil.example\r\n\r\n"
    assert running.raw(foreign).startswith(b"HTTP/1.1 421 ")


def test_a_response_after_that_error_is_dropped(service: Running, caplog: pytest.LogCaptureFixture) -> None:
    """The service responds at once, before the connection of the malformed chunk is closed."""
    head = b"POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in range(5):
        assert service.raw(head + b"zz\r\n").startswith(b"HTTP/1.1 400 ")
    service.get("/plan")
    assert "Exception in ASGI application" not in caplog.text


def build_chunked_request(pieces: list[bytes]) -> bytes:
    """Return a request whose body consists of these chunks."""
    kind = b"Connection: close\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n"
    return build_head(kind) + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


def test_a_body_in_tiny_chunks_is_parsed_in_bounded_time(service: Running) -> None:
    form = FORM.replace(b"80000000", b"8")
    chunks = [b"x"] * (connections.MIN_CHECKED_CHUNK_COUNT + 1)
    head, _, body = service.raw(build_chunked_request(chunks)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error_code"] == "bad_request"

    assert service.raw(build_chunked_request([form[at : at + 1] for at in range(len(form))])).startswith(
        b"HTTP/1.1 200 "
    )
    lines = [b"-" * 62 + b"\r\n"] * (2 * connections.MIN_CHECKED_CHUNK_COUNT)
    assert service.raw(build_chunked_request([*lines, form])).startswith(b"HTTP/1.1 200 ")


def is_timeout(answer: bytes) -> bool:
    """Return whether an answer is the JSON error for a request that did not arrive in time."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    error = json.loads(body)
    assert f"x-request-id: {error['request_id']}".encode() in head
    return head.startswith(b"HTTP/1.1 408 ") and error["error_code"] == "request_timeout"


def test_unfinished_headers_time_out_with_408(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 0.5)
    for head in (b"GE", b"GET /plan HTTP/1.1\r\nHost: he", b"GET /plan HTTP/1.1\r\nHost: here\r\n"):
        with socket.create_connection(("127.0.0.1", service.port), timeout=300) as connection:
            connection.sendall(head)
            assert is_timeout(receive_all(connection))


def test_a_connection_that_sends_nothing_is_closed(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 0.5)
    with socket.create_connection(("127.0.0.1", service.port), timeout=300) as connection:
        assert is_closed(connection)


def test_unfinished_headers_of_a_second_request_time_out_with_408(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 0.5)
    with socket.create_connection(("127.0.0.1", service.port), timeout=300) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: here\r\n\r\n")
        data = b""
        while b"live" not in data:
            piece = connection.recv(65_536)
            assert piece
            data += piece
        connection.sendall(b"GET /plan HTTP/1.1\r\n")
        assert is_timeout(receive_all(connection))


def test_a_body_may_take_longer_than_headers(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 0.5)
    form = FORM.replace(b"80000000", b"8")
    kind = b"Connection: close\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n" % len(form)
    with socket.create_connection(("127.0.0.1", service.port), timeout=300) as connection:
        connection.sendall(build_head(kind) + form[:50])
        connection.settimeout(0.8)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(60)
        connection.sendall(form[50:])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", ["/convert", "/jobs"])
def test_a_body_that_stalls_times_out_with_408(serve: Any, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(reception, "BODY_TIMEOUT_S", 0.1)
    running: Running = serve(drain_seconds=0.1)
    kind = b"Content-Type: multipart/form-data; boundary=b\r\n"
    for body in (
        kind + b"Content-Length: 9999\r\n\r\n",
        kind + b"Content-Length: 9999\r\n\r\n" + FORM[:-20],
        kind + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(FORM), FORM),
    ):
        with socket.create_connection(("127.0.0.1", running.port), timeout=300) as connection:
            connection.sendall(b"POST %s HTTP/1.1\r\nHost: here\r\n" % path.encode() + body)
            assert is_timeout(receive_all(connection))
    wait_until(lambda: running.leftovers() == [])


def test_the_connection_of_a_client_that_does_not_read_is_closed(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_TIMEOUT_S", 0.1)
    running: Running = serve()
    kind = b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n" % len(FORM)
    with socket.create_connection(("127.0.0.1", running.port), timeout=300) as connection:
        connection.sendall(build_head(kind) + FORM)
        assert connection.recv(16).startswith(b"HTTP/1.1 200")
        wait_until(lambda: running.leftovers() == [])


def is_closed(connection: socket.socket) -> bool:
    """Return whether the server closes the connection before the timeout of the socket."""
    try:
        return connection.recv(65_536) == b""
    except ConnectionResetError:
        return True


def build_request(content: bytes, version: bytes = b"1.1") -> bytes:
    """Return a complete request with a form."""
    form = FORM.replace(b"80000000", b"8").replace(b"\r\n\r\ntoy\r\n--b--", b"\r\n\r\n%s\r\n--b--" % content)
    kind = b"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n" % len(form)
    return build_head(kind).replace(b"HTTP/1.1", b"HTTP/" + version) + form


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_the_conversion_of_a_closed_connection_is_stopped(
    serve: Any, engine: Any, tmp_path: Path, version: bytes
) -> None:
    running: Running = serve(engine)
    go = tmp_path / "go"
    with socket.create_connection(("127.0.0.1", running.port), timeout=300) as connection:
        connection.sendall(build_request(b"toy wait %s" % bytes(go), version))
        wait_until(lambda: running.leftovers() != [])
        # as proxies do, the service takes the end of input for the end of the connection
        connection.shutdown(socket.SHUT_WR)
        assert receive_all(connection) == b""
    wait_until(lambda: running.leftovers() == [])
    assert not go.exists()


def test_an_incomplete_request_on_a_half_closed_connection_is_dropped(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=300) as connection:
        connection.sendall(build_request(b"toy")[:-20])
        connection.shutdown(socket.SHUT_WR)
        assert receive_all(connection) == b""
    wait_until(lambda: service.leftovers() == [])


def test_connections_per_address_are_limited(serve: Any) -> None:
    running: Running = serve(connections_per_address=5)
    running.client.close()
    with contextlib.ExitStack() as stack:

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=300))

        def build_head() -> bytes:
            connection = connected()
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"GET /plan HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
                return receive_all(connection)
            return b""

        wait_until(lambda: b" 200 " in build_head())
        idle = [connected() for _ in range(5)]
        sixth = connected()
        head, _, body = receive_all(sixth).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: " in head
        assert json.loads(body)["error_code"] == "server_busy"
        idle[0].close()
        wait_until(lambda: b" 200 " in build_head())


def test_connections_of_a_trusted_proxy_are_not_limited() -> None:
    peers = connections.Peers(1, networks(["10.0.0.0/8"]))
    for _ in range(3):
        assert peers.add("10.1.2.3") == peers.add("") == connections.UNCOUNTED
    first = peers.add("2001:db8::1")
    assert first
    assert peers.add("2001:db8::2") == ""
    assert peers.add("2001:db8:1::") != ""
    peers.remove(first)
    assert peers.add("2001:db8::2") == first


def test_connections_of_a_large_ipv6_network_are_limited() -> None:
    peers = connections.Peers(1, ())
    keys = [peers.add(f"2001:db8:1:{number:x}::1") for number in range(100)]
    accepted = [key for key in keys if key]
    assert len(accepted) == 4
    assert peers.add("2001:db8:2::1")
    for key in accepted:
        peers.remove(key)
    assert peers.add("2001:db8:1:50::1")
