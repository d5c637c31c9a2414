"""Python client and the commands that use a service."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from http_serving import ASCII_STL, Running, zip_files
from meshhub import InProcess, Part, Registry, Scene
from meshhub.cli import root
from meshhub.client import AsyncClient, Client, JobDescription
from meshhub.client.companions import find_companions
from meshhub.errors import (
    Canceled,
    ConversionFailed,
    EngineError,
    InvalidKey,
    InvalidOption,
    MeshhubError,
    OutputExists,
    PremiumRequired,
    RequestError,
    ServerBusy,
    ServiceUnreachable,
    UnreadableFile,
    UnsupportedTarget,
    exit_status_of,
)
from meshhub.model.quote import Quote
from meshhub.model.verdict import Verdict
from models import brick
from threemf_models import png
from waiting import wait_until

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
            job = await client.submit(model, target="ply")
            assert (await client.wait(job.id)).state == "done"
            assert (await client.get(job.id)).result is not None
            await client.cancel(job.id)
            with pytest.raises(Canceled):
                await client.wait(job.id)
            return await client.convert(model, tmp_path / "out.glb")

    assert asyncio.run(work()).state == "done"
    assert (tmp_path / "out.glb").read_bytes().startswith(b"glTF")


def test_files_of_beds_come_as_the_zip_of_a_job(service: Running, model: Path, tmp_path: Path) -> None:
    beds: Any = {"arrange_bed": "100x100", "each_bed": True}
    with Client(service.url) as client:
        with pytest.raises(UnsupportedTarget, match="submit a job"):
            client.convert(model, tmp_path / "out.3mf", **beds)
        job = client.wait(client.submit(model, target="3mf", **beds).id)
        assert job.result is not None
        assert (job.result.name, job.result.media_type) == ("my model-beds.zip", "application/zip")
        client.download(job.id, tmp_path / "beds.zip")
    with zipfile.ZipFile(tmp_path / "beds.zip") as archive:
        assert archive.namelist() == ["my model-bed1.3mf"]


@pytest.mark.usefixtures("small_pictures")
def test_a_model_is_checked(service: Running, model: Path, tmp_path: Path) -> None:
    async def work() -> Verdict:
        async with AsyncClient(service.url) as client:
            return await client.check(model, checks="mesh", options={"scale_percent": 200})

    with Client(service.url) as client:
        verdict = client.check(model, checks="mesh", options={"scale_percent": 200})
        job = client.wait(client.submit(model, kind="check", checks="mesh").id)
        client.download(job.id, tmp_path / "verdict.json")
        job = client.wait(client.submit(model, kind="check", report="html", language="de", checks="mesh").id)
        client.download(job.id, tmp_path / "report.html")
        assert "Druckprüfung" in (tmp_path / "report.html").read_text(encoding="utf-8")
        with pytest.raises(UnreadableFile):
            client.check(("a.toy", b"no"))
        with pytest.raises(InvalidOption, match="unknown check"):
            client.check(model, checks="paint")
    stored = msgspec.json.decode((tmp_path / "verdict.json").read_bytes(), type=Verdict)
    assert verdict.verdict == "will_not_print"
    assert [step.step for step in verdict.checks] == ["mesh"]
    assert verdict.source.size_mm == pytest.approx([2 * side for side in stored.source.size_mm])
    assert asyncio.run(work()).findings == verdict.findings
    assert [finding.code for finding in stored.findings] == [finding.code for finding in verdict.findings]


def test_the_plan_and_the_formats_of_the_key_are_returned(service: Running) -> None:
    async def work() -> tuple[Any, Any]:
        async with AsyncClient(service.url) as client:
            return await client.plan(), await client.supported(language="de")

    key, _ = service.keys.create("pro")
    with Client(service.url, key=key) as client:
        assert client.plan()["plan"] == client.supported()["plan"] == "pro"
        assert client.supported()["language"] == "en"
    plan, supported = asyncio.run(work())
    assert plan["plan"] == supported["plan"] == "free"
    assert plan["limits"].max_file_bytes == 20 << 20
    assert "3mf" in supported["output_formats"]
    assert supported["language"] == "de"
    with Client(service.url, key="mh_no_key") as client, pytest.raises(InvalidKey):
        client.plan()


def test_jobs_of_a_key_are_listed(
    service: Running, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> list[str]:
        async with AsyncClient(service.url, key=key) as client:
            return [job.id for job in (await client.list_jobs()).jobs]

    key, _ = service.keys.create("pro")
    with Client(service.url, key=key) as client:
        ids = [client.submit(model, kind="inspect").id for _ in range(2)][::-1]
        newest = client.list_jobs(limit=1)
        assert [job.id for job in newest.jobs] == [newest.next] == ids[:1]
        assert [job.id for job in client.list_jobs(before=newest.next).jobs] == ids[1:]
    assert asyncio.run(work()) == ids
    done = run("jobs", "list", "--server", service.url)
    assert isinstance(done.exception, MeshhubError)
    assert done.exception.error_code == "plan_required"
    monkeypatch.setenv("MESHHUB_API_KEY", key)
    done = run("jobs", "list", "--server", service.url, "--limit", "1")
    assert ids[0] in done.stdout and "my model.stl" in done.stdout and ids[1] not in done.stdout
    assert f"older jobs: --before {ids[0]}" in done.stderr
    done = run("jobs", "list", "--server", service.url, "--json")
    assert [job["id"] for job in json.loads(done.stdout)["jobs"]] == ids


def test_errors_have_the_values_of_their_message(service: Running, tmp_path: Path) -> None:
    rejected = ("a.stl", ASCII_STL.replace(b"vertex 0 0 0", b"vertex 0 x 0", 1))
    with Client(service.url) as client:
        for kind in ("convert", "inspect"):
            job = client.submit(rejected, kind=kind, target="3mf" if kind == "convert" else None)
            with pytest.raises(UnreadableFile) as error:
                client.wait(job.id)
            assert error.value.values == {"format": "STL", "line": 4}
            assert client.get(job.id).error_values == {"format": "STL", "line": 4}
        with pytest.raises(UnreadableFile) as error:
            client.check(rejected)
        assert error.value.values == {"format": "STL", "line": 4}


def test_errors_have_the_class_of_their_code(service: Running, tmp_path: Path) -> None:
    with Client(service.url) as client:
        with pytest.raises(PremiumRequired):
            client.submit(("a.toy", b"toy"), target="gilded")
        with pytest.raises(UnreadableFile, match="toy first"):
            client.convert(("a.toy", b"no"), tmp_path / "a.toy", target="toy")
        with pytest.raises(MeshhubError) as error:
            client.get("x" * 43)
        assert error.value.error_code == "job_not_found"
    with Client(service.url, key="wrong") as client, pytest.raises(InvalidKey):
        client.submit(("a.toy", b"toy"), target="toy")
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
    assert (type(raised.value), raised.value.error_code) == (kind, code)
    assert exit_status_of(raised.value) == exit_status


@pytest.mark.parametrize("job_id", ["../plan", "x/y", "x?y", "x#y", "%2e%2e", "..", ".", "ü"])
def test_the_id_of_a_job_is_only_a_part_of_the_path(service: Running, job_id: str, tmp_path: Path) -> None:
    with Client(service.url) as client:
        for method in (client.get, client.wait, client.cancel, lambda id_: client.download(id_, tmp_path / "a")):
            with pytest.raises(MeshhubError) as error:
                method(job_id)
            # the server decodes a slash in a path
            assert error.value.error_code == ("not_found" if "/" in job_id else "job_not_found")


@pytest.mark.parametrize("name", ["nobody.invalid", "tls"])
def test_hosts_that_cannot_be_reached_are_reported(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("meshhub.client.protocol.RETRY_S", 0.01)
    with answering((200, b"no TLS")) as url:
        address = url.replace("http:", "https:") if name == "tls" else f"http://{name}"
        with Client(address) as client, pytest.raises(ServiceUnreachable) as error:
            client.check(("a.toy", b"toy"))
        assert error.value.error_code == "service_unreachable"
        done = run("jobs", "status", "x", "--server", address, "--json")
    assert isinstance(done.exception, ServiceUnreachable)
    data = json.loads(done.stdout)
    assert data["error_code"] == "service_unreachable"
    assert "[service_unreachable]" not in data["error"]


def test_a_service_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meshhub.client.protocol.RETRY_S", 0.01)
    with Client("http://127.0.0.1:1") as client, pytest.raises(ServiceUnreachable) as error:
        client.submit(("a.toy", b"toy"), target="toy")
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


def test_a_server_of_another_kind_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meshhub.client.protocol.RETRY_S", 0.01)
    with answering((200, b"<html>")) as url, Client(url) as client:
        for method in (client.get, client.wait):
            with pytest.raises(ServiceUnreachable, match="check the address"):
                method("x" * 43)
        with pytest.raises(ServiceUnreachable, match="check the address"):
            client.download("x" * 43, tmp_path / "part.3mf")
    assert list(tmp_path.iterdir()) == []


def test_a_job_is_waited_for_while_a_proxy_has_no_service(
    service: Running, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("meshhub.client.protocol.RETRY_S", 0.01)
    with Client(service.url) as client:
        job = client.submit(model, target="3mf")
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
    # lines are not wrapped at the length of the path
    monkeypatch.setenv("COLUMNS", "500")
    output = tmp_path / "out.glb"
    command = ("convert", str(model), str(output), "--server", service.url, "--repair")
    answer = run(*command)
    assert answer.exit_code == 0, answer.output
    assert output.read_bytes().startswith(b"glTF")
    local = run("convert", str(model), str(tmp_path / "local.glb"), "--repair")
    reports = [
        re.sub(r"^.*?\.glb|[\d.]+ s$", "", each.output, flags=re.MULTILINE).splitlines() for each in (answer, local)
    ]
    assert reports[0] == reports[1]
    assert " mm, " in reports[0][0]
    assert isinstance(run(*command).exception, OutputExists)
    report = json.loads(run(*command, "--force", "--json").stdout)
    assert (report["source"], report["target"]) == ("stl", "glb")
    assert "exists, skipped" in run(*command, "--skip-existing").output
    assert run("convert", "--watch", str(tmp_path), "--to", "stl", "-o", "x", "--server", service.url).exit_code == 2
    assert run(*command, "--force", "--dry-run").exit_code == 2
    assert run(*command, "--force", "--timeout", "5").exit_code == 2


def test_a_print_is_quoted(service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, _ = service.keys.create("pro")
    monkeypatch.setenv("MESHHUB_API_KEY", key)
    path, flat = tmp_path / "brick.stl", tmp_path / "flat.stl"
    flat.write_bytes(ASCII_STL.replace(b"vertex 10 20 1", b"vertex 9 9 0"))
    with Registry(entry_points=False) as registry:
        path.write_bytes(registry.convert_bytes(Scene((brick(),), (Part(0),)), "stl"))

    async def work() -> Quote:
        async with AsyncClient(service.url) as client:
            return await client.quote(path, quantity=3, print_infill_percent=50)

    with Client(service.url) as client:
        quote = client.quote(path, quantity=3, print_infill_percent=50)
        with pytest.raises(ConversionFailed, match="no volume"):
            client.quote(flat)
    assert quote.estimate.volume_mm3 == pytest.approx(6000)
    assert [note.code for note in quote.notes] == ["no_rates"]
    assert asyncio.run(work()).estimate == quote.estimate
    local, remote = (run("quote", str(path), *more) for more in ((), ("--server", service.url)))
    assert (remote.exit_code, remote.stdout) == (local.exit_code, local.stdout)
    assert remote.exit_code == 0, remote.output
    card = Path(__file__).parents[2] / "examples" / "rates.toml"
    for arguments in (("-",), (str(path), "--timeout", "5"), (str(path), "--rates", str(card))):
        assert run("quote", *arguments, "--server", service.url).exit_code == 2
    several = json.loads(run("quote", str(path), str(flat), "--json", "--server", service.url).stdout)
    assert several[0]["estimate"]["weight_g"] == pytest.approx(quote.estimate.weight_g, rel=0.6)
    assert several[1]["error_code"] == "conversion_failed"


@pytest.mark.usefixtures("small_pictures")
def test_checks_on_the_command_line(
    service: Running, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key, _ = service.keys.create("pro")
    monkeypatch.setenv("MESHHUB_API_KEY", key)
    local, remote = (run("check", str(model), "--checks", "mesh", *more) for more in ((), ("--server", service.url)))
    assert (remote.exit_code, remote.stdout) == (local.exit_code, local.stdout)
    assert remote.exit_code == 1
    broken = tmp_path / "broken.stl"
    broken.write_bytes(b"solid")
    several = run("check", str(tmp_path), "--json", "--server", service.url)
    rows = {Path(row["file"]).name: row for row in json.loads(several.stdout)}
    assert rows["broken.stl"]["error_code"] == "empty_model"
    assert rows["my model.stl"]["verdict"] == "will_not_print"
    archive = tmp_path / "models.zip"
    archive.write_bytes(zip_files({"a.stl": ASCII_STL}))
    for arguments in (("-",), (str(archive),), (str(model), "--timeout", "5")):
        assert run("check", *arguments, "--server", service.url).exit_code == 2
    monkeypatch.setenv("MESHHUB_SERVER", service.url)
    job_id = run("jobs", "submit", str(model), "--check", "--checks", "mesh").stdout.strip()
    assert run("jobs", "wait", job_id).exit_code == 0
    assert run("jobs", "result", job_id, str(tmp_path / "verdict.json")).exit_code == 0
    assert json.loads((tmp_path / "verdict.json").read_text())["verdict"] == "will_not_print"
    assert json.loads(run("jobs", "status", job_id, "--json").stdout)["kind"] == "check"
    assert run("jobs", "submit", str(model), "--check", "--to", "3mf").exit_code == 2
    assert run("jobs", "submit", str(model), "--report", "pdf").exit_code == 2
    job_id = run("jobs", "submit", str(model), "--check", "--report", "html", "--checks", "mesh").stdout.strip()
    assert run("jobs", "wait", job_id).exit_code == 0
    assert run("jobs", "result", job_id, str(tmp_path / "report.html")).exit_code == 0
    assert "Print check" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def textured(tmp_path: Path) -> Path:
    """A model with a material, and a texture in a folder below."""
    folder = tmp_path / "textured"
    (folder / "tex").mkdir(parents=True)
    (folder / "tex" / "Paint.png").write_bytes(png())
    (folder / "other.png").write_bytes(png(3))
    (folder / "a.mtl").write_text("newmtl red\nmap_Kd tex/Paint.png\n")
    path = folder / "a.obj"
    vertices = "v 0 0 0\nv 10 0 0\nv 0 10 0\nv 0 0 10\nvt 0 0\nvt 1 0\nvt 0 1\n"
    path.write_text(f"mtllib a.mtl\n{vertices}usemtl red\nf 1/1 3/3 2/2\nf 1/1 2/2 4/3\nf 2/1 3/2 4/3\nf 3/1 1/2 4/3\n")
    return path


def read_outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def list_parts(path: Path) -> list[str]:
    return [part.name for part in Registry(entry_points=False, engine=InProcess()).read(path).parts]


def test_several_models_become_one_file(
    service: Running, model: Path, textured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _ = service.keys.create("pro")

    async def work() -> JobDescription:
        async with AsyncClient(service.url, key=key) as client:
            return await client.convert([model, textured], tmp_path / "asynchronous.glb", place_on_bed=True)

    with Client(service.url, key=key) as client:
        job = client.convert([model, textured], tmp_path / "synchronous.glb", place_on_bed=True)
        assert (job.kind, [file.name for file in job.files]) == (
            "combine", ["my model.stl", "a.obj", "a.mtl", "Paint.png"],
        )  # fmt: skip
        assert asyncio.run(work()).kind == "combine"
        contents = [("a.stl", ASCII_STL), ("b.stl", ASCII_STL)]
        job = client.wait(client.submit(contents, kind="combine", target="glb").id)
        client.download(job.id, tmp_path / "submitted.glb")
        converted = client.wait(client.submit(contents, target="glb").id)
        assert converted.result is not None
        assert converted.result.name == "converted.zip"
        with pytest.raises(ValueError, match="list of models is empty"):
            client.submit([], kind="combine", target="glb")
    assert list_parts(tmp_path / "synchronous.glb") == list_parts(tmp_path / "asynchronous.glb")
    assert list_parts(tmp_path / "submitted.glb") == ["t", "t"]
    monkeypatch.setenv("MESHHUB_API_KEY", key)
    for name, *more in (("local.glb",), ("remote.glb", "--server", service.url)):
        done = run("convert", "--combine", str(model), str(textured), str(tmp_path / name), "--place-on-bed", *more)
        assert done.exit_code == 0, done.output
    assert (tmp_path / "remote.glb").read_bytes() == (tmp_path / "local.glb").read_bytes()
    assert list_parts(tmp_path / "remote.glb") == list_parts(tmp_path / "synchronous.glb")
    monkeypatch.setenv("MESHHUB_SERVER", service.url)
    job_id = run("jobs", "submit", "--combine", str(model), str(model), "--to", "stl").stdout.strip()
    assert json.loads(run("jobs", "status", job_id, "--json").stdout)["kind"] == "combine"
    assert run("jobs", "wait", job_id).exit_code == 0
    for arguments in (("--combine", str(model)), (str(model), str(model), "--to", "stl")):
        assert run("jobs", "submit", *arguments).exit_code == 2


def test_companions_of_one_name_must_be_the_same(service: Running, textured: Path, tmp_path: Path) -> None:
    other = shutil.copytree(textured.parent, tmp_path / "other") / "a.obj"
    models, target = [textured, other], tmp_path / "out.glb"
    with Client(service.url, key=service.keys.create("pro")[0]) as client:
        assert client.convert(models, target).state == "done"
        (other.parent / "tex" / "Paint.png").write_bytes(png(3))
        with pytest.raises(RequestError, match=r"different files that are named 'Paint\.png'"):
            client.convert(models, tmp_path / "never.glb")
    assert not (tmp_path / "never.glb").exists()


@pytest.mark.parametrize("target", ["out.glb", "out.obj"])
def test_companions_go_to_the_service_and_return(service: Running, textured: Path, tmp_path: Path, target: str) -> None:
    folders = [tmp_path / name for name in ("local", "synchronous", "asynchronous")]
    for folder in folders:
        folder.mkdir()
    local, synchronous, asynchronous = (folder / target for folder in folders)
    registry = Registry(entry_points=False, engine=InProcess())
    registry.convert(textured, local)

    async def convert() -> JobDescription:
        async with AsyncClient(service.url) as client:
            return await client.convert(textured, asynchronous)

    with Client(service.url) as client:
        job = client.convert(textured, synchronous)
    assert read_outputs(folders[0]) == read_outputs(folders[1])
    assert len(read_outputs(folders[0])) == (1 if target == "out.glb" else 3)
    for report in (job.report, asyncio.run(convert()).report):
        assert report is not None
        assert (report["source"], report["faces_out"]) == ("obj", 4)
    assert read_outputs(folders[0]) == read_outputs(folders[2])


def test_a_companion_of_a_result_replaces_no_other_file(service: Running, textured: Path, tmp_path: Path) -> None:
    with Client(service.url) as client:
        folder = tmp_path / "out"
        folder.mkdir()
        client.convert(textured, folder / "a.obj")
        (other,) = folder.glob("*.png")
        other.write_bytes(b"edited by hand")
        (folder / "a.obj").unlink()
        with pytest.raises(FileExistsError, match="other content"):
            client.convert(textured, folder / "a.obj")
    assert other.read_bytes() == b"edited by hand"
    assert not (folder / "a.obj").exists()


def test_only_files_that_the_model_mentions_are_sent(service: Running, textured: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    (textured.parent / "link.png").symlink_to(tmp_path / "secret.png")
    textured.with_name("a.mtl").write_text("newmtl red\nmap_Kd tex/Paint.png\nmap_Ks ../secret.png\nmap_Ns link.png\n")
    assert set(find_companions(textured)) == {"a.mtl", "tex/Paint.png"}


def test_many_files_are_converted_by_a_service(
    service: Running, textured: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _ = service.keys.create("pro")
    monkeypatch.setenv("MESHHUB_API_KEY", key)
    broken = tmp_path / "broken.stl"
    broken.write_bytes(b"solid")
    output = tmp_path / "out"
    command = ("convert", str(textured.parent), str(model), str(broken), "--to", "obj", "-o", str(output))
    answer = run(*command, "--server", service.url, "--json")
    assert answer.exit_code == 1, answer.output
    rows = {Path(row["file"]).name: row for row in json.loads(answer.stdout)}
    assert rows["broken.stl"]["error_code"] == "empty_model"
    assert rows["a.obj"]["report"]["faces_out"] == 4
    assert {"a.obj", "my model.obj"} < set(read_outputs(output))
    # nothing is overwritten
    again = json.loads(run(*command, "--server", service.url, "--json").stdout)
    assert {row["error_code"] for row in again} == {"output_exists", "empty_model"}
    summary = run(*command, "--server", service.url, "--force")
    assert "2 converted, 1 failed" in summary.output


def test_many_files_wait_while_the_plan_allows_no_more_requests(
    serve: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("meshhub.cli.remote._RATE_PAUSES_S", (0.1,) * 1000)
    monkeypatch.setattr("meshhub.http.admission.rates.MINUTE_S", 2.0)
    running = serve(plan_limits={"free": {"requests_per_minute": 3}})
    for number in range(4):
        (tmp_path / f"{number}.stl").write_bytes(ASCII_STL)
    files = [str(tmp_path / f"{number}.stl") for number in range(4)]
    answer = run("convert", *files, "--to", "ply", "-o", str(tmp_path / "out"), "--server", running.url)
    assert answer.exit_code == 0, answer.output
    assert len(read_outputs(tmp_path / "out")) == 4


def test_the_end_of_a_wait_cancels_the_job(serve: Callable[..., Running], tmp_path: Path) -> None:
    running = serve()
    path = tmp_path / "go"
    source = ("a.toy", f"toy wait {path}".encode())
    ids: list[str] = []

    def interrupt(job: JobDescription) -> None:
        ids.append(job.id)
        raise KeyboardInterrupt

    async def abandon() -> None:
        has_begun = asyncio.Event()

        def watch(job: JobDescription) -> None:
            ids.append(job.id)
            has_begun.set()

        async with AsyncClient(running.url) as client:
            task = asyncio.create_task(client.convert(source, tmp_path / "a.toy", on_change=watch))
            await has_begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    try:
        with Client(running.url) as client:
            with pytest.raises(KeyboardInterrupt):
                client.convert(source, tmp_path / "a.toy", on_change=interrupt)
            asyncio.run(abandon())
            assert {client.get(job_id).state for job_id in ids} == {"canceled"}
    finally:
        # a reader in this process that has begun runs on, and the service waits for it
        path.touch()
    assert len(set(ids)) == 2


def test_a_signal_cancels_the_jobs_of_many_files(serve: Callable[..., Running], tmp_path: Path) -> None:
    running = serve(workers=1)
    key, _ = running.keys.create("pro")
    headers = {"X-Api-Key": key}
    path = tmp_path / "go"
    fields = {"kind": "convert", "target": "toy"}
    running.post("/jobs", {"file": ("a.toy", f"toy wait {path}".encode())}, fields, headers=headers)
    for number in range(3):
        (tmp_path / f"{number}.stl").write_bytes(ASCII_STL)
    files = [str(tmp_path / f"{number}.stl") for number in range(3)]
    command = [sys.executable, "-m", "meshhub", "convert", *files, "--to", "ply", "-o", str(tmp_path / "out")]
    command += ["--server", running.url]

    def list_states() -> Counter[str]:
        return Counter(job["state"] for job in running.get("/jobs", headers=headers).json()["jobs"])

    with subprocess.Popen(command, env={**os.environ, "MESHHUB_API_KEY": key}) as process:
        try:
            wait_until(lambda: list_states()["queued"] == 3)
            process.terminate()
            assert process.wait(300) == 128 + signal.SIGTERM
            assert list_states() == {"running": 1, "canceled": 3}
        finally:
            process.kill()
            path.touch()


def test_the_callback_gets_every_state(
    serve: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = serve()
    path = tmp_path / "go"
    with Client(running.url) as client:
        job = client.submit(("a.toy", f"toy wait {path}".encode()), target="toy")
        changes: list[str] = []

        def go(job: JobDescription) -> None:
            changes.append(job.state)
            path.touch()

        assert client.wait(job.id, on_change=go).state == "done"
    assert changes[-1] == "done"
