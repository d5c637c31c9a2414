"""Printers on the network over HTTP: who may use them, what is sent, and that nothing is printed twice."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import slicing_plugin
from http_serving import Running, serving
from meshhub import RequestError, UnsupportedTarget
from meshhub.client import Client
from models import brick, scene_of

pytestmark = pytest.mark.once

LAYERS = b"; prepared by meshhub\n"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the printers."""
    monkeypatch.setenv("BENCH", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("printers"), {}, plugins=(slicing_plugin,)) as running:
        yield running


@pytest.fixture(scope="module")
def key(service: Running) -> dict[str, str]:
    """Return the header of a caller who may use the printers."""
    return {"X-Api-Key": service.keys.create("pro", label="farm")[0]}


def send(
    service: Running, key: dict[str, str], name: str = "part.layers", repetition: str = "", **fields: str
) -> httpx.Response:
    headers = key | ({"Idempotency-Key": repetition} if repetition else {})
    data = {"printer": "bench://left", **fields}
    return service.client.post("/printers", files={"file": (name, LAYERS)}, data=data, headers=headers)


def error_of(response: httpx.Response) -> tuple[int, str, str]:
    body: dict[str, Any] = response.json()
    return response.status_code, body["error_code"], body["error"]


def test_only_entitled_callers_see_and_use_printers(service: Running, key: dict[str, str], bench: Path) -> None:
    assert service.get("/printers").json() == {"printers": []}
    assert service.get("/supported").json()["sends"] == []
    assert error_of(send(service, {}))[:2] == (403, "plan_required")
    assert service.client.get("/supported", headers=key).json()["sends"] == [".layers"]
    listed = service.client.get("/printers", headers=key).json()["printers"]
    assert [(printer["address"], printer["state"], printer["error"]) for printer in listed] == [
        ("bench://left", "ready", ""),
        ("bench://busy", "printing", ""),
        ("bench://off", "", "off is off"),
    ]
    assert list(bench.iterdir()) == []


def test_a_file_is_stored_and_printed_only_if_requested(service: Running, key: dict[str, str], bench: Path) -> None:
    assert send(service, key).json() == {"name": "part.layers", "is_started": False}
    assert (bench / "left" / "part.layers").read_bytes() == LAYERS
    assert not (bench / "left" / "starts").exists()
    # a query in the name stays part of it
    assert send(service, key, "a?print=true.layers").status_code == 200
    assert not (bench / "left" / "starts").exists()
    assert send(service, key, "b.layers", start="true").json()["is_started"] is True
    assert (bench / "left" / "starts").read_text() == "b.layers\n"


def test_a_file_of_the_same_name_is_replaced_only_if_requested(
    service: Running, key: dict[str, str], bench: Path
) -> None:
    send(service, key)
    (bench / "left" / "part.layers").write_bytes(b"old")
    status, code, message = error_of(send(service, key))
    assert (status, code, "replace=true" in message) == (409, "output_exists", True)
    assert (bench / "left" / "part.layers").read_bytes() == b"old"
    assert send(service, key, replace="true").status_code == 200
    assert (bench / "left" / "part.layers").read_bytes() == LAYERS


def test_each_bed_becomes_a_file(service: Running, bench: Path) -> None:
    plate = scene_of(brick(70, 60, 5))
    beds: dict[str, Any] = {"copies": 2, "arrange_bed": "100x100", "layers_printer": "mk4"}
    with pytest.raises(RequestError, match=r"2 files, one for each bed, and a printer starts one; omit \?print=true"):
        service.registry.convert(plate, "bench://left/a.layers?print=true", options=beds)
    assert list(bench.iterdir()) == []
    service.registry.convert(plate, "bench://left/a.layers", options=beds)
    assert sorted(file.name for file in (bench / "left").iterdir()) == ["a-bed2.layers", "a.layers"]
    # in one response they are a ZIP
    part = ("a.stl", service.registry.convert_bytes(plate, "stl"))
    answer = service.post("/convert", {"file": part}, {"target": "layers", **beds})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == ["a.layers", "a-bed2.layers"]
    with Client(service.url) as client, pytest.raises(UnsupportedTarget, match=r"a file for each bed, .* download"):
        client.convert(part, bench / "b.layers", options=beds)
    assert not (bench / "b.layers").exists()


def test_repeated_requests_print_once(service: Running, key: dict[str, str], bench: Path) -> None:
    barrier = threading.Barrier(6)

    def repeat(_: int) -> httpx.Response:
        barrier.wait()
        return send(service, key, repetition="once", start="true", replace="true")

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(repeat, range(6)))
    assert {answer.status_code for answer in answers} == {200}
    assert (bench / "left" / "starts").read_text() == "part.layers\n"
    # the key belongs to this request, and to this caller
    other = send(service, key, "other.layers", repetition="once", start="true")
    assert error_of(other)[:2] == (409, "idempotency_conflict")
    assert not (bench / "left" / "other.layers").exists()
    second = {"X-Api-Key": service.keys.create("pro", label="second")[0]}
    assert error_of(send(service, second, repetition="once", start="true"))[:2] == (409, "output_exists")


def test_a_failure_is_remembered_with_its_key(service: Running, key: dict[str, str], bench: Path) -> None:
    for _ in range(2):
        answer = send(service, key, repetition="busy", printer="bench://busy", start="true")
        assert error_of(answer) == (502, "output_failed", "busy is printing, so nothing was sent")
    assert not (bench / "busy").exists()


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("part.layers", {"printer": "bench://off"}, (502, "output_failed", "off cannot be reached; switch it on")),
        ("part.stl", {}, (400, "bad_request", "printers print .layers, not '.stl'; slice the model")),
        ("part.layers", {"printer": "shelf://left"}, (400, "bad_request", "is not a printer")),
        ("part.layers", {"printer": "bench://left/x"}, (400, "bad_request", "is not a printer")),
        ("part.layers", {"printer": "bench://left?print=true"}, (400, "bad_request", "is not a printer")),
        ("part.layers", {"printer": ""}, (400, "bad_request", "is not a printer")),
        ("part.layers", {"start": "maybe"}, (400, "invalid_option", "start must be true or false")),
        ("part.layers", {"repair": "true"}, (400, "bad_request", "the form has no field 'repair'")),
    ],
)
def test_a_request_that_cannot_be_served_sends_nothing(
    service: Running,
    key: dict[str, str],
    bench: Path,
    name: str,
    fields: dict[str, str],
    expected: tuple[int, str, str],
) -> None:
    status, code, message = error_of(send(service, key, name, **fields))
    assert (status, code) == expected[:2]
    assert expected[2] in message
    assert list(bench.iterdir()) == []
