"""Uploads: size limits, malformed forms, disk space and time limits."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from http_serving import Running, check_error, unzip_response
from meshhub.http.admission import disk
from meshhub.http.admission.disk import Disk
from meshhub.http.context import Context
from meshhub.http.server import middleware
from waiting import wait_until

MEGABYTE = 1 << 20
LIMIT = 20 * MEGABYTE
HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.toy"\r\n\r\n'
TAIL = b'\r\n--b\r\nContent-Disposition: form-data; name="target"\r\n\r\ntoy\r\n--b--\r\n'
KIND = "multipart/form-data; boundary=b"


def build_form(content: bytes) -> bytes:
    return HEAD + content + TAIL


def send_form(service: Running, body: bytes, path: str = "/convert", kind: str = KIND) -> httpx.Response:
    return service.client.post(path, content=body, headers={"Content-Type": kind})


def split(body: bytes, size: int = 65_536) -> Iterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


def build_part(name: str, value: bytes, more: bytes = b"") -> bytes:
    return b'--b\r\nContent-Disposition: form-data; name="%s"\r\n%s\r\n%s\r\n' % (name.encode(), more, value)


FILE = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.toy"\r\n\r\ntoy\r\n'
TARGET = build_part("target", b"toy")
END = b"--b--\r\n"


def test_a_file_of_exactly_the_maximum_size_is_accepted(service: Running) -> None:
    assert service.convert(b"toy" + b" " * (LIMIT - 3)).status_code == 200
    body = check_error(service.convert(b"toy" + b" " * (LIMIT - 2)), 413, "file_too_large")
    assert str(LIMIT) in body["error"]


@pytest.mark.parametrize("chunked", [False, True])
def test_413_reaches_httpx(service: Running, chunked: bool) -> None:
    body = build_form(b"toy" + bytes(40 * MEGABYTE))
    answer = service.client.post("/convert", content=split(body) if chunked else body, headers={"Content-Type": KIND})
    check_error(answer, 413, "file_too_large")


def test_413_reaches_a_client_that_stops_reading_after_a_failed_write(service: Running) -> None:
    """asyncio drops received data when a write fails, so the server reads the upload to its end."""

    async def pieces() -> AsyncIterator[bytes]:
        for piece in split(build_form(bytes(60 * MEGABYTE))):
            yield piece

    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(timeout=300) as client:
            return await client.post(f"{service.url}/convert", content=pieces(), headers={"Content-Type": KIND})

    check_error(asyncio.run(asked()), 413, "file_too_large")


@pytest.mark.parametrize("chunked", [False, True])
def test_413_reaches_a_client_that_writes_everything_before_it_reads(service: Running, chunked: bool) -> None:
    body = build_form(b"toy" + bytes(40 * MEGABYTE))
    head = b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: " + KIND.encode() + b"\r\n"
    if chunked:
        pieces = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in split(body, MEGABYTE))
        answer = service.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")
    else:
        answer = service.raw(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    status, _, rest = answer.partition(b"\r\n")
    assert b" 413 " in status
    assert json.loads(rest.rpartition(b"\r\n\r\n")[2])["error_code"] == "file_too_large"


@pytest.mark.parametrize("more", [(), ("-H", "Transfer-Encoding: chunked"), ("-H", "Expect:")])
def test_413_reaches_curl(service: Running, tmp_path: Path, more: tuple[str, ...]) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl here")
    large = tmp_path / "large.toy"
    large.write_bytes(b"toy" + bytes(21 * MEGABYTE))
    command = [
        curl,
        "-sS",
        *more,
        "-F",
        f"file=@{large}",
        "-F",
        "target=toy",
        "-w",
        "\n%{http_code}",
        service.url + "/convert",
    ]
    result = subprocess.run(command, capture_output=True, timeout=300)
    assert result.returncode == 0, result.stderr
    body, _, status = result.stdout.rpartition(b"\n")
    assert status == b"413"
    assert json.loads(body)["error_code"] == "file_too_large"


def test_curl_converts(service: Running, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl here")
    (tmp_path / "häuser.toy").write_bytes(b"toy")
    command = [curl, "-sS", "-OJ", "-F", "file=@häuser.toy", "-F", "target=ply", service.url + "/convert"]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=300)
    assert len(list(tmp_path.glob("*.ply"))) == 1


def test_the_total_size_of_a_request_is_limited(service: Running) -> None:
    """Each file is within its limit, their total is not; with and without Content-Length."""
    files = [("files", (f"{n}.toy", b"toy" + bytes(19 * MEGABYTE))) for n in range(4)]
    check_error(service.client.post("/convert-many", files=files, data={"target": "toy"}), 413, "file_too_large")
    part = HEAD.replace(b'"file"', b'"files"') + bytes(19 * MEGABYTE) + b"\r\n"
    body = split(part * 4 + TARGET + END, MEGABYTE)
    answer = service.client.post("/convert-many", content=body, headers={"Content-Type": KIND})
    check_error(answer, 413, "too_many_files")


def test_other_errors_reach_a_client_that_writes_everything_before_it_reads(service: Running) -> None:
    body = build_form(b"toy" + bytes(10 * MEGABYTE))
    for path, header, status in (
        (b"/nowhere", b"", b" 404 "),
        (b"/plan", b"", b" 405 "),
        (b"/convert", b"X-Api-Key: wrong\r\n", b" 401 "),
    ):
        answer = service.raw(
            b"POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
            % (path, header, KIND.encode(), len(body))
            + body
        )
        assert status in answer.partition(b"\r\n")[0]


def test_a_connection_stays_open_after_a_rejected_body_was_read(service: Running) -> None:
    with httpx.Client(base_url=service.url) as client:
        for _ in range(3):
            answer = client.post("/convert", files={"file": ("a.toy", b"toy empty")}, data={"target": "toy"})
            assert answer.status_code == 422
            assert answer.headers.get("connection") != "close"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", KIND),
        (b"nonsense", KIND),
        (FILE + TARGET, KIND),
        ((FILE + TARGET + END)[:-9], KIND),
        (FILE + TARGET + END, "multipart/form-data"),
        (FILE + TARGET + END, "multipart/form-data; boundary="),
        (FILE + TARGET + END, "multipart/form-data; boundary=" + "b" * 300),
        (FILE + TARGET + END, "application/x-www-form-urlencoded"),
        (FILE + TARGET + END, ""),
        (FILE + TARGET + END, "text/plain; boundary=b"),
        (FILE + build_part("target", b"\xff\xfe\xfa") + END, KIND),
        (FILE + build_part("target", b"toy", b"Content-Type: text/plain; charset=klingon\r\n") + END, KIND),
        (FILE + build_part("target", b"toy", b"Content-Type: text/plain; charset=hex\r\n") + END, KIND),
        (FILE + build_part("target", b"dG95", b"Content-Transfer-Encoding: base64\r\n") + END, KIND),
        (FILE + build_part("target", b"x" * 20_000) + END, KIND),
        (FILE + b"".join(build_part(f"field{n}", b"") for n in range(200)) + END, KIND),
        (FILE + b"--b\r\nContent-Disposition: attachment\r\n\r\nx\r\n" + END, KIND),
        (FILE + b"--b\r\nnonsense\r\n\r\nx\r\n" + END, KIND),
        (FILE + b"--b\r\nContent-Length: 7\r\nContent-Disposition: form-data; name=t\r\n\r\nx\r\n" + END, KIND),
        (FILE + b"--b\r\n" + b"X-A: b\r\n" * 20 + b"\r\nx\r\n" + END, KIND),
        (FILE + b"--b\r\nX: " + b"y" * 9000, KIND),
    ],
)
def test_malformed_forms_are_rejected(service: Running, body: bytes, kind: str) -> None:
    check_error(send_form(service, body, kind=kind), 400, "invalid_multipart")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (TARGET + END, "missing_field"),
        (FILE + END, "missing_field"),
        (FILE + build_part("target", b"  ") + END, "missing_field"),
        (FILE.replace(b"a.toy", b"").replace(b"\r\ntoy", b"\r\n") + TARGET + END, "missing_field"),
        (END, "missing_field"),
        (FILE + TARGET + TARGET + END, "bad_request"),
        (FILE + FILE + TARGET + END, "bad_request"),
        (FILE.replace(b'"file"', b'"model"').replace(b"toy\r\n", b"\xff\r\n") + TARGET + END, "missing_field"),
        (FILE + TARGET + build_part("", b"x") + END, "invalid_option"),
        (FILE + TARGET + build_part("\u202e\0", b"x") + END, "invalid_option"),
    ],
)
def test_missing_and_repeated_fields_are_rejected(service: Running, body: bytes, code: str) -> None:
    check_error(send_form(service, body), 400, code)


def test_text_fields_are_decoded_by_their_charset(service: Running) -> None:
    target = build_part("target", "toy".encode("utf-16"), b"Content-Type: text/plain; charset=UTF-16\r\n")
    assert send_form(service, FILE + target + END).status_code == 200


def test_preamble_and_epilogue_are_ignored(service: Running) -> None:
    assert send_form(service, b"preamble\r\n" + FILE + TARGET + END + b"epilogue").status_code == 200


def test_a_boundary_may_be_split_between_chunks(service: Running) -> None:
    body = FILE + TARGET + END
    answer = service.client.post(
        "/convert", content=iter([body[n : n + 1] for n in range(len(body))]), headers={"Content-Type": KIND}
    )
    assert answer.status_code == 200


@settings(max_examples=60)
@given(data=st.data())
def test_no_form_is_answered_with_500(service: Running, data: st.DataObject) -> None:
    whole = FILE + TARGET + build_part("toy_size", b"3") + END
    at = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(at, min(len(whole), at + 20)))
    body = whole[:at] + data.draw(st.binary(max_size=20)) + whole[end:]
    answer = send_form(service, body)
    assert answer.status_code in (200, 400, 413, 415, 422), answer.text
    if answer.status_code != 200:
        assert answer.json()["error_code"]


def test_uploads_wait_for_disk(serve: Any) -> None:
    full = serve(keep_free_bytes=1 << 60)
    answer = full.convert()
    assert int(answer.headers["retry-after"]) > 0
    assert "disk" in check_error(answer, 503, "server_busy")["error"]
    assert full.get("/plan").status_code == 200
    assert "disk" in check_error(full.get("/health/ready"), 503, "server_busy")["error"]


@pytest.mark.parametrize("gone", [errno.ENOSPC, errno.EROFS, errno.EMFILE])
def test_a_full_disk_answers_503(service: Running, monkeypatch: pytest.MonkeyPatch, gone: int) -> None:
    mkdir = Path.mkdir

    def full(self: Path, *arguments: Any, **more: Any) -> None:
        if self.name == "out-1":
            raise OSError(gone, os.strerror(gone), str(self))
        mkdir(self, *arguments, **more)

    def nothing(**more: Any) -> str:
        raise OSError(gone, os.strerror(gone), more["dir"])

    monkeypatch.setattr(Path, "mkdir", full)
    answer = service.many(("a.toy", b"toy"), ("b.toy", b"toy"))
    (failed,) = json.loads(unzip_response(answer)["errors.json"])
    assert (failed["file"], failed["error_code"]) == ("b.toy", "server_busy")
    monkeypatch.setattr(tempfile, "mkdtemp", nothing)
    assert str(service.temporary) not in check_error(service.convert(), 503, "server_busy")["error"]


def test_file_fields_without_a_file_create_no_files(serve: Any) -> None:
    running: Running = serve()
    chosen = b'--b\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%s\r\n'
    body = chosen % (b"", b"") * 100 + chosen % (b"a.toy", b"toy" * 100_000)
    head = b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\nContent-Type: %s\r\n\r\n" % KIND.encode()

    def sizes() -> list[int]:
        file_sizes = []
        for path in running.temporary.rglob("upload-*"):
            with contextlib.suppress(FileNotFoundError):
                file_sizes.append(path.stat().st_size)
        return file_sizes

    with socket.create_connection(("127.0.0.1", running.port), timeout=300) as slow:
        slow.sendall(head + body)
        wait_until(lambda: any(size > 1000 for size in sizes()))
        assert len(sizes()) == 1


def test_unsent_bodies_reserve_no_disk_space(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Received bytes reserve space; announced and chunked bodies do not before they arrive."""
    running: Running = serve(keep_free_bytes=0)
    state: Any = running.server.config.app.state.service  # type: ignore[union-attr]
    free = 100 * MEGABYTE
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, free))  # type: ignore[attr-defined]
    head = b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n" % KIND.encode()
    with contextlib.ExitStack() as stack:
        for length in (b"Content-Length: 19999999", b"Transfer-Encoding: chunked"):
            for _ in range(5):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=300))
                start = HEAD + b"toy"
                start = start if b"Length" in length else b"%x\r\n%s\r\n" % (len(start), start)
                slow.sendall(head + length + b"\r\n\r\n" + start)
        wait_until(lambda: state.resources.disk.promised == 10 * MEGABYTE)
        assert running.convert(b"toy" + b" " * 10 * MEGABYTE).status_code == 200
        free = 40 * MEGABYTE
        assert "disk" in check_error(running.convert(b"toy" + b" " * 19 * MEGABYTE), 503, "server_busy")["error"]
        # without Content-Length, the request is rejected as soon as it does not fit
        body = split(build_form(b"toy" + b" " * 19 * MEGABYTE))
        free = 25 * MEGABYTE
        check_error(running.client.post("/convert", content=body, headers={"Content-Type": KIND}), 503, "server_busy")
        # finished uploads free their space
        free = 0
        assert running.get("/health/ready").status_code == 200
    wait_until(lambda: state.resources.disk.promised == 0)
    free = -1
    check_error(running.get("/health/ready"), 503, "server_busy")


def test_a_slow_upload_is_rejected(serve: Any) -> None:
    slow = serve(plan_limits={"free": {"request_timeout_seconds": 0.2, "requests_per_minute": 1000}}, drain_seconds=0.1)
    answer = slow.raw(
        b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 5000\r\n\r\n%s"
        % (KIND.encode(), FILE)
    )
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert b"took longer" in answer


def test_a_client_that_disconnects_during_its_upload_leaves_no_files(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(
            b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 5000\r\n\r\n%s"
            % (KIND.encode(), FILE)
        )
    wait_until(lambda: not service.leftovers())


class SmallDisk:
    """Simulated disk of limited size that holds only the files of a service."""

    def __init__(self, size: int, folder: Path) -> None:
        self.size = size
        self.folder = folder

    def usage(self, _: object) -> Any:
        used = 0
        # `os.walk` passes over folders that the service removes meanwhile
        for folder, _, names in os.walk(self.folder):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    used += (Path(folder) / name).stat().st_size
        return shutil._ntuple_diskusage(self.size, used, self.size - used)  # type: ignore[attr-defined]


@pytest.mark.parametrize("chunked", [False, True])
def test_uploads_that_fit_on_the_disk_succeed(serve: Any, monkeypatch: pytest.MonkeyPatch, chunked: bool) -> None:
    """Eight concurrent uploads on a disk with space for 4.5: the first ones succeed, others wait or get 503."""
    # on a loaded machine, the first uploads take longer than others wait by default
    monkeypatch.setattr(disk, "_SPACE_TIMEOUT_S", 60.0)
    running: Running = serve(keep_free_bytes=0)
    monkeypatch.setattr(shutil, "disk_usage", SmallDisk(200 * MEGABYTE, running.temporary).usage)
    body = build_form(b"toy" + b" " * 19 * MEGABYTE)

    def upload(_: int) -> httpx.Response:
        content = split(body) if chunked else body
        return httpx.post(f"{running.url}/convert", content=content, headers={"Content-Type": KIND}, timeout=300)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(upload, range(8)))
    assert sum(answer.status_code == 200 for answer in answers) >= 4
    for answer in answers:
        if answer.status_code != 200:
            assert "disk" in check_error(answer, 503, "server_busy")["error"]
            assert int(answer.headers["retry-after"]) > 0
    state: Any = running.server.config.app.state.service  # type: ignore[union-attr]
    wait_until(lambda: state.resources.disk.promised == 0)
    assert upload(0).status_code == 200


def test_the_first_upload_displaces_later_ones(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_SPACE_TIMEOUT_S", 60.0)
    running: Running = serve(keep_free_bytes=0)
    monkeypatch.setattr(shutil, "disk_usage", SmallDisk(32 * MEGABYTE, running.temporary).usage)
    state: Any = running.server.config.app.state.service  # type: ignore[union-attr]
    body = build_form(b"toy" + b" " * 10 * MEGABYTE)
    head = b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    head %= KIND.encode(), len(body)
    address = ("127.0.0.1", running.port)
    with (
        socket.create_connection(address, timeout=300) as first,
        socket.create_connection(address, timeout=300) as later,
    ):
        first.sendall(head + body[: 5 * MEGABYTE])
        wait_until(lambda: state.resources.disk.promised >= 5 * MEGABYTE)
        later.sendall(head + body[: 9 * MEGABYTE])
        wait_until(lambda: state.resources.disk.promised >= 14 * MEGABYTE)
        first.sendall(body[5 * MEGABYTE :])
        assert first.recv(16).startswith(b"HTTP/1.1 200 ")
        assert later.recv(16).startswith(b"HTTP/1.1 503 ")


def test_an_upload_waits_for_room(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_SPACE_TIMEOUT_S", 60.0)
    running: Running = serve(keep_free_bytes=0)
    monkeypatch.setattr(shutil, "disk_usage", SmallDisk(30 * MEGABYTE, running.temporary).usage)
    state: Any = running.server.config.app.state.service  # type: ignore[union-attr]
    head = b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
    with ThreadPoolExecutor(1) as threads:
        with socket.create_connection(("127.0.0.1", running.port), timeout=300) as first:
            first.sendall(head % (KIND.encode(), 9 * MEGABYTE) + HEAD + b"toy" + bytes(8 * MEGABYTE))
            wait_until(lambda: state.resources.disk.promised >= 8 * MEGABYTE)
            second = threads.submit(running.convert, b"toy" + b" " * 10 * MEGABYTE)
            wait_until(lambda: any(hold.is_waiting for hold in state.resources.disk._reservations.values()))
        # the first client has disconnected
        assert second.result().status_code == 200


def test_a_slow_download_ends_at_the_request_timeout(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads single bytes never stalls, but its answer occupies the disk."""
    monkeypatch.setattr(middleware, "_MIN_DOWNLOAD_S", 0.5)
    monkeypatch.setattr(middleware, "_MIN_DOWNLOAD_BYTES_PER_S", 1 << 30)
    running: Running = serve()
    state: Any = running.server.config.app.state.service  # type: ignore[union-attr]
    limit_download = middleware._Exchange._limit_download

    def limit_download_now(self: Any, headers: dict[bytes, bytes]) -> None:
        # a request timeout that is short enough for a test would also end the conversion on a loaded machine
        self._context.deadline = 0.0
        limit_download(self, headers)

    monkeypatch.setattr(middleware._Exchange, "_limit_download", limit_download_now)
    body = HEAD + b"toy\r\n" + build_part("toy_weight", b"80000000") + TARGET + END
    with socket.create_connection(("127.0.0.1", running.port), timeout=300) as slow:
        head = b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
        slow.sendall(head % (KIND.encode(), len(body)) + body)
        assert slow.recv(9) == b"HTTP/1.1 "
        assert [hold.total > 80_000_000 for hold in state.resources.disk._reservations.values()] == [True]

        def reads() -> bool:
            with contextlib.suppress(ConnectionError):
                slow.recv(1)
            return running.leftovers() == []

        wait_until(reads)
        wait_until(lambda: not state.resources.disk._reservations)


def test_unread_answers_count_as_disk_space_of_their_caller(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The caller with the most disk space is displaced; unread answers count too."""
    free = 100

    async def scenario() -> None:
        nonlocal free
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, free))  # type: ignore[attr-defined]
        disk = Disk(lambda: tmp_path, 0)
        download, upload, other = Context("", "a"), Context("", "a"), Context("", "b")
        download.identity = upload.identity = "ip:a"
        other.identity = "ip:b"
        await disk.reserve(download, 10, required=10)
        disk.record_response(download, 40)
        await disk.reserve(upload, 10, required=10)
        free = 15
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60) as timeout:
                upload.receiving = timeout
                asking = asyncio.ensure_future(disk.reserve(other, 10, required=10))
                await asyncio.Event().wait()
        assert disk.is_rejected(upload)
        upload.cleanup.close()
        await asking
        assert disk.promised == 10
        download.cleanup.close()
        other.cleanup.close()
        assert disk.promised == 0

    asyncio.run(scenario())
