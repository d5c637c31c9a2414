"""Small files that are costly to read are answered by the service with little processor time and under 100 MB.

Conversions run in the server process, so the measurement includes client, server and conversion.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator

import httpx
import pytest

import bombs
from bomb_measurements import peak, restarted_peak
from http_serving import Running, unzip_response, zip_files
from waiting import wait_until

pytestmark = pytest.mark.once

SECONDS = 10.0
"""Processor seconds per request, for a loaded machine. `benchmarks/bomb_costs.py` limits each file to 1 s."""
MEGABYTES = 100.0


@contextlib.contextmanager
def assert_cheap() -> Iterator[None]:
    """Assert that the block needs little processor time and memory."""
    before, started = restarted_peak(), time.process_time()
    yield
    assert time.process_time() - started < SECONDS
    assert peak() - before < MEGABYTES


@pytest.fixture(scope="module", autouse=True)
def load_readers(service: Running) -> Iterator[None]:
    """Load the readers before the first measurement; assert that no file remains after the last."""
    for name, data in bombs.WARM:
        service.convert(data, name, "stl")
    yield
    wait_until(lambda: not service.leftovers())


def read_error_code(answer: httpx.Response) -> str:
    """Return the error code of an answer, or an empty string."""
    assert answer.status_code < 500
    return "" if answer.status_code == 200 else answer.json()["error_code"]


@pytest.mark.parametrize("what", list(bombs.MODELS)[::8])
def test_a_costly_model_is_answered_cheaply(service: Running, pro: dict[str, str], what: str) -> None:
    """`test_bombs.py` reads all of them."""
    bomb = bombs.MODELS[what]
    data = bomb.make()
    with assert_cheap():
        answer = service.convert(data, bomb.name, "stl", headers=pro)
    assert read_error_code(answer) in (bomb.codes or ("",))


@pytest.mark.parametrize("what", bombs.ARCHIVES)
def test_a_costly_archive_is_answered_cheaply(service: Running, pro: dict[str, str], what: str) -> None:
    data = bombs.ARCHIVES[what].make()
    with assert_cheap():
        answer = service.batch(data, "stl", headers=pro)
    assert read_error_code(answer) in bombs.ARCHIVES[what].codes


@pytest.mark.parametrize("what", list(bombs.MODELS)[1::8])
def test_a_costly_model_in_an_archive_fails_alone(service: Running, pro: dict[str, str], what: str) -> None:
    bomb = bombs.MODELS[what]
    data = zip_files({"valid.stl": bombs.TRIANGLE, "x/" + bomb.name: bomb.make()})
    with assert_cheap():
        answer = service.batch(data, "stl", headers=pro)
    if answer.status_code != 200:
        # a model that repeats one element a million times exceeds the compression ratio as soon as it is packed
        assert read_error_code(answer) == "unsafe_archive"
        return
    entries = unzip_response(answer)
    assert "valid.stl" in entries
    failed = [failure["error_code"] for failure in json.loads(entries.get("errors.json", b"[]"))]
    assert set(failed) <= set(bomb.codes)
    assert len(failed) == (1 if bomb.codes else 0)


@pytest.mark.parametrize("name", ["target_height_mm", "optimize_target_faces", "repair", "target", "anything"])
@pytest.mark.parametrize("text", ["1" * 16_000 + "x", " " * 16_000, "1." * 8_000, "e" * 16_000])
def test_a_long_form_field_is_answered_cheaply(service: Running, name: str, text: str) -> None:
    with assert_cheap():
        answer = service.post("/convert", {"file": ("a.stl", bombs.TRIANGLE)}, {"target": "stl"} | {name: text})
    assert read_error_code(answer) in ("invalid_option", "unsupported_target", "missing_field", "")
