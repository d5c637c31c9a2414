"""Small files that would cost much, sent to the service: refused in little time and under 100 MB.

Conversions run in the server's process here, so what is measured is all there is: client, server, conversion.
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
from http_serving import Running, until, unzipped, zip_of

pytestmark = pytest.mark.once

SECONDS = 10.0
"""Of processor time, which a busy machine stretches. `benchmarks/bomb_costs.py` holds every file to one."""
MEGABYTES = 100.0


@contextlib.contextmanager
def cheap() -> Iterator[None]:
    """What happens within costs little."""
    before, started = restarted_peak(), time.process_time()
    yield
    assert time.process_time() - started < SECONDS
    assert peak() - before < MEGABYTES


@pytest.fixture(scope="module", autouse=True)
def warm(service: Running) -> Iterator[None]:
    """Readers are loaded before anything is measured; nothing is left behind."""
    for name, data in bombs.WARM:
        service.convert(data, name, "stl")
    yield
    until(lambda: not service.leftovers())


def code_of(answer: httpx.Response) -> str:
    """How it ended, as an answer of ours says it."""
    assert answer.status_code < 500
    return "" if answer.status_code == 200 else answer.json()["error_code"]


@pytest.mark.parametrize("what", bombs.MODELS)
def test_by_convert(service: Running, pro: dict[str, str], what: str) -> None:
    bomb = bombs.MODELS[what]
    data = bomb.make()
    with cheap():
        answer = service.convert(data, bomb.name, "stl", headers=pro)
    assert code_of(answer) in (bomb.codes or ("",))


@pytest.mark.parametrize("what", bombs.ARCHIVES)
def test_by_convert_batch(service: Running, pro: dict[str, str], what: str) -> None:
    data = bombs.ARCHIVES[what].make()
    with cheap():
        answer = service.batch(data, "stl", headers=pro)
    assert code_of(answer) in bombs.ARCHIVES[what].codes


@pytest.mark.parametrize("what", list(bombs.MODELS)[1::4])
def test_by_convert_batch_beside_a_sound_file(service: Running, pro: dict[str, str], what: str) -> None:
    bomb = bombs.MODELS[what]
    data = zip_of({"sound.stl": bombs.TRIANGLE, "x/" + bomb.name: bomb.make()})
    with cheap():
        answer = service.batch(data, "stl", headers=pro)
    if answer.status_code != 200:
        # a model of one thing a million times is a bomb once it is packed
        assert code_of(answer) == "unsafe_archive"
        return
    found = unzipped(answer)
    assert "sound.stl" in found
    failed = [one["error_code"] for one in json.loads(found.get("errors.json", b"[]"))]
    assert set(failed) <= set(bomb.codes)
    assert len(failed) == (1 if bomb.codes else 0)


@pytest.mark.parametrize("name", ["target_height_mm", "optimize_target_faces", "repair", "target", "anything"])
@pytest.mark.parametrize("text", ["1" * 16_000 + "x", " " * 16_000, "1." * 8_000, "e" * 16_000])
def test_by_a_field_of_the_form(service: Running, name: str, text: str) -> None:
    with cheap():
        answer = service.post("/convert", {"file": ("a.stl", bombs.TRIANGLE)}, {"target": "stl"} | {name: text})
    assert code_of(answer) in ("invalid_option", "unsupported_target", "missing_field", "")
