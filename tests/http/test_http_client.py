"""Python client and the commands that use a service."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

from http_serving import ASCII_STL, Running
from meshhub.cli import root
from meshhub.client import AsyncClient, Client, JobDescription
from meshhub.errors import (
    Cancelled,
    ConversionFailed,
    EngineError,
    InvalidKey,
    InvalidOption,
    MeshhubError,
    OutputExists,
    PremiumRequired,
    RequestError,
    ServerBusy,
    UnreadableFile,
    exit_status_of,
)

pytestmark = pytest.mark.once


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "my model.stl"
    path.write_bytes(ASCII_STL)
    return path


def test_a_model_is_converted_and_inspected(service: Running, model: Path, tmp_path: Path) -> None:
    states: list[JobDescription] = []
    with Client(service.url) as client:
        job = client.convert(model, tmp_path / "out.3mf", on_change=states.append, place_on_bed=True)
        assert client.inspect(model).source.format == "stl"
        assert client.inspect(("a.stl", ASCII_STL)).model.faces == 2
    assert job.state == states[-1].state == "done"
    assert job.target == "3mf"
    assert (tmp_path / "out.3mf").read_bytes().startswith(b"PK")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my model.stl", "out.3mf"]


def test_the_asynchronous_client_does_the_same(service: Running, model: Path, tmp_path: Path) -> None:
    async def work() -> JobDescription:
        async with AsyncClient(service.url) as client:
            assert (await client.inspect(model)).source.format == "stl"
            job = await client.submit(model, to="ply")
            assert (await client.wait(job.id)).state == "done"
            assert (await client.get(job.id)).result is not None
            await client.cancel(job.id)
            with pytest.raises(Cancelled):
                await client.wait(job.id)
            return await client.convert(model, tmp_path / "out.glb")

    assert asyncio.run(work()).state == "done"
    assert (tmp_path / "out.glb").read_bytes().startswith(b"glTF")


def test_errors_have_the_class_of_their_code(service: Running, tmp_path: Path) -> None:
    with Client(service.url) as client:
        with pytest.raises(PremiumRequired):
            client.submit(("a.toy", b"toy"), to="gilded")
        with pytest.raises(UnreadableFile, match="toy first"):
            client.convert(("a.toy", b"no"), tmp_path / "a.toy", to="toy")
        with pytest.raises(MeshhubError) as error:
            client.get("x" * 43)
        assert error.value.code == "job_not_found"
    with Client(service.url, key="wrong") as client, pytest.raises(InvalidKey):
        client.submit(("a.toy", b"toy"), to="toy")
    assert not (tmp_path / "a.toy").exists()


@pytest.mark.parametrize(
    ("status", "code", "kind", "exit_status"),
    [
        (404, "job_not_found", RequestError, 2),
        (410, "no_result", RequestError, 2),
        (413, "file_too_large", RequestError, 2),
        (422, "invalid_solid", ConversionFailed, 4),
        (422, "worker_lost", EngineError, 5),
        (429, "rate_limit_exceeded", ServerBusy, 5),
        (403, "code_of_a_review", RequestError, 2),
        (500, "code_of_a_plugin", MeshhubError, 70),
    ],
)
def test_errors_without_a_class_have_that_of_their_status(
    status: int, code: str, kind: type[MeshhubError], exit_status: int
) -> None:
    body = f'{{"error": "no", "error_code": "{code}", "request_id": "1"}}'.encode()
    with answering((status, body)) as url, Client(url) as client, pytest.raises(MeshhubError) as raised:
        client.get("x" * 43)
    assert (type(raised.value), raised.value.code) == (kind, code)
    assert exit_status_of(raised.value) == exit_status


@pytest.mark.parametrize("job_id", ["../plan", "x/y", "x?y", "x#y", "%2e%2e", "..", ".", "ü"])
def test_the_id_of_a_job_is_only_a_part_of_the_path(service: Running, job_id: str, tmp_path: Path) -> None:
    with Client(service.url) as client:
        for method in (client.get, client.wait, client.cancel, lambda id_: client.download(id_, tmp_path / "a")):
            with pytest.raises(MeshhubError) as error:
                method(job_id)
            # the server decodes a slash in a path
            assert error.value.code == ("not_found" if "/" in job_id else "job_not_found")


def test_a_service_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meshhub.client.protocol.RETRY_S", 0.01)
    with Client("http://127.0.0.1:1") as client, pytest.raises(ServerBusy) as error:
        client.submit(("a.toy", b"toy"), to="toy")
    # the reason is that of the system, and not the name of a class
    assert "the service at 127.0.0.1:1 cannot be reached: " in str(error.value)
    assert "ConnectError" not in str(error.value)
    assert "Errno" not in str(error.value)


@pytest.mark.parametrize("url", ["", "example.com", "ftp://example.com", "http://", "http://[::1"])
def test_an_invalid_address_is_rejected(url: str) -> None:
    for client in (Client, AsyncClient):
        with pytest.raises(InvalidOption, match="must look like"):
            client(url)


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines", "\ufffd"])
def test_a_malformed_key_is_rejected(key: str) -> None:
    with pytest.raises(InvalidKey, match="copy it again"):
        Client("http://127.0.0.1:1", key=key)


@contextlib.contextmanager
def answering(*answers: tuple[int, bytes]) -> Iterator[str]:
    """Serve these answers in order, and the last one again; yield the address."""
    rest = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = rest.pop(0) if len(rest) > 1 else rest[0]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_server_of_another_kind_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meshhub.client.protocol.RETRY_S", 0.01)
    with answering((200, b"<html>")) as url, Client(url) as client:
        for method in (client.get, client.wait):
            with pytest.raises(ServerBusy, match="check the address"):
                method("x" * 43)


def test_a_job_is_waited_for_while_a_proxy_has_no_service(
    service: Running, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("meshhub.client.protocol.RETRY_S", 0.01)
    with Client(service.url) as client:
        job = client.submit(model, to="3mf")
        client.wait(job.id)
        event = service.get(f"/jobs/{job.id}/events").content
    away = (502, b"<html>")
    with answering(away, away, (200, b""), (200, event)) as url, Client(url) as client:
        assert client.wait(job.id).state == "done"
    with answering(away, (200, event)) as url:
        assert asyncio.run(wait_for(url, job.id)).state == "done"


async def wait_for(url: str, job_id: str) -> JobDescription:
    async with AsyncClient(url) as client:
        return await client.wait(job_id)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(root, list(arguments))


def test_jobs_on_the_command_line(
    service: Running, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key, _ = service.keys.create("pro")
    (tmp_path / "key").write_text(key + "\n")
    monkeypatch.setenv("MESHHUB_SERVER", service.url)
    monkeypatch.setenv("MESHHUB_API_KEY_FILE", str(tmp_path / "key"))
    job_id = run("jobs", "submit", str(model), "--to", "3mf", "--place-on-bed").stdout.strip()
    assert run("jobs", "wait", job_id).exit_code == 0
    assert run("jobs", "status", job_id).stdout.startswith(f"{job_id}: done")
    shown = json.loads(run("jobs", "status", job_id, "--json").stdout)
    assert shown["files"][0]["name"] == "my model.stl"
    assert service.get(f"/jobs/{job_id}").status_code == 404
    target = tmp_path / "result.3mf"
    assert run("jobs", "result", job_id, str(target)).exit_code == 0
    assert target.stat().st_size == shown["result"]["bytes"]
    assert isinstance(run("jobs", "result", job_id, str(target)).exception, OutputExists)
    assert json.loads(run("jobs", "cancel", job_id, "--json").stdout)["state"] == "expired"
    for command in (("status", "x" * 43), ("wait", "x" * 43), ("cancel", "x" * 43), ("submit", "missing.stl")):
        answer = run("jobs", *command, "--json")
        assert answer.exception is not None
        assert set(json.loads(answer.stdout)) == {"error", "error_code"}
    assert json.loads(answer.stdout)["error_code"] == "unreadable_file"
    monkeypatch.delenv("MESHHUB_SERVER")
    assert run("jobs", "status", job_id).exit_code == 2


def test_convert_uses_a_service_as_if_it_were_local(
    service: Running, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _ = service.keys.create("pro")
    monkeypatch.setenv("MESHHUB_API_KEY", key)
    output = tmp_path / "out.glb"
    command = ("convert", str(model), str(output), "--server", service.url, "--repair")
    answer = run(*command)
    assert answer.exit_code == 0, answer.output
    assert output.read_bytes().startswith(b"glTF")
    assert isinstance(run(*command).exception, OutputExists)
    report = json.loads(run(*command, "--force", "--json").stdout)
    assert (report["source"], report["target"]) == ("stl", "glb")
    assert "exists, skipped" in run(*command, "--skip-existing").output
    assert run("convert", "--watch", str(tmp_path), "--to", "stl", "-o", "x", "--server", service.url).exit_code == 2
    assert run(*command, "--force", "--timeout", "5").exit_code == 2


def test_the_callback_gets_every_state(
    serve: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = serve()
    path = tmp_path / "go"
    with Client(running.url) as client:
        job = client.submit(("a.toy", f"toy wait {path}".encode()), to="toy")
        changes: list[str] = []

        def go(job: JobDescription) -> None:
            changes.append(job.state)
            path.touch()

        assert client.wait(job.id, on_change=go).state == "done"
    assert changes[-1] == "done"
