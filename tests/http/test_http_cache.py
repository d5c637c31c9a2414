"""Cache of results, on real servers: who gets what, for how long, and how much of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from http_serving import Running, check_error, read_report, serving, zip_files
from meshhub import Part, Registry, Report, Scene
from meshhub.errors import InvalidSettings
from meshhub.hookspecs import hookimpl
from meshhub.http.server.app import create_app
from meshhub.model.chain import Chain
from meshhub.model.plans import Caller, Objection
from meshhub.service.settings import Settings
from models import brick
from waiting import wait_until

CACHE: dict[str, Any] = {"cache_bytes": 10_000_000}


@pytest.fixture(scope="module")
def stl() -> bytes:
    """A box of 10 x 20 x 30 mm."""
    with Registry(entry_points=False) as registry:
        return registry.convert_bytes(Scene((brick(),), (Part(0),)), "stl")


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve with a cache that outlasts the tests."""
    with serving(tmp_path_factory.mktemp("cached"), {"workers": 4, **CACHE}) as running:
        yield running


def state(response: httpx.Response) -> str | None:
    """Return whether the response comes from the cache."""
    assert response.status_code == 200, response.text
    value: str | None = response.headers.get("x-meshhub-cache")
    return value


def entries(folder: Path) -> list[Path]:
    """Return the entries in a folder and below."""
    # folders of other requests may vanish meanwhile, at which rglob fails
    return [Path(parent, name) for parent, _, names in os.walk(folder) for name in names if name.endswith(".cached")]


def count(running: Running, name: str) -> float:
    """Return the value of a metric."""
    match = re.search(rf"^{re.escape(name)} (\S+)$", running.get("/metrics").text, re.MULTILINE)
    return float(match[1]) if match else 0.0


REQUESTS: dict[str, tuple[str, dict[str, str]]] = {
    "/convert": ("file", {"target": "3mf", "target_height_mm": "12"}),
    "/check": ("file", {"checks": "walls,size"}),
    "/quote": ("file", {"print_infill_percent": "33"}),
    "/inspect": ("file", {}),
    "/render": ("file", {"view": "front"}),
    "/preview": ("file", {}),
    "/combine": ("files", {"target": "obj"}),
    "/convert-many": ("files", {"target": "ply", "report": "true"}),
    "/convert-batch": ("archive", {"target": "glb"}),
}


@pytest.mark.parametrize("path", REQUESTS)
def test_a_repeated_request_has_the_same_answer(cached: Running, stl: bytes, path: str) -> None:
    field, options = REQUESTS[path]
    upload = ("models.zip", zip_files({"a/part.stl": stl})) if field == "archive" else ("part.stl", stl)
    first, second = (cached.post(path, {field: upload}, options) for _ in range(2))
    assert (state(first), state(second)) == ("miss", "hit")
    assert first.content == second.content
    kept = ("content-type", "content-disposition", "x-meshhub-report", "x-meshhub-converted")
    assert [first.headers.get(name) for name in kept] == [second.headers.get(name) for name in kept]


def test_without_the_setting_there_is_no_cache(service: Running) -> None:
    assert [state(service.convert()) for _ in range(2)] == [None, None]
    assert count(service, 'meshhub_cache_lookups_total{result="hit"}') == 0


@pytest.mark.parametrize("settings", [{"cache_bytes": 0}, {"cache_bytes": 10_000_000, "cache_seconds": 0}])
def test_zero_is_off(serve: Callable[..., Running], settings: dict[str, int]) -> None:
    running = serve(**settings)
    assert [state(running.convert()) for _ in range(2)] == [None, None]


def test_whatever_changes_the_answer_is_a_miss(cached: Running) -> None:
    def send(name: str = "one.toy", content: bytes = b"toy apart", **options: Any) -> str | None:
        return state(cached.convert(content, name, **options))

    assert [send() for _ in range(2)] == ["miss", "hit"]
    assert send(toy_size="4") == "miss"
    assert send(toy_size="4.0") == "hit"
    assert send(target="obj") == "miss"
    assert send(content=b"toy other") == "miss"
    assert send(name="two.toy") == "miss"
    assert send() == "hit"


def test_companions_belong_to_the_key(cached: Running) -> None:
    def send(text: bytes, name: str = "note.txt") -> str | None:
        archive = zip_files({"x.toy": b"toy needs note.txt", name: text, "note.txt": text})
        return state(cached.batch(archive))

    assert [send(b"1"), send(b"1"), send(b"2"), send(b"1")] == ["miss", "hit", "miss", "hit"]


def test_companions_of_a_result_come_back(cached: Running) -> None:
    first, second = (cached.many(("twins.toy", b"toy"), toy_twins="true", toy_size="9") for _ in range(2))
    assert (state(first), state(second)) == ("miss", "hit")
    assert first.content == second.content
    notes = read_report(cached.convert(b"toy", "twins.toy", toy_twins="true", toy_size="9"))["notes"]
    assert "companions_left_out" in [note["code"] for note in notes]


def test_callers_share_nothing(cached: Running) -> None:
    keys = [{"X-Api-Key": cached.keys.create("pro")[0]} for _ in range(2)]
    content = b"toy of several callers"
    for headers in (*keys, {}):
        assert [state(cached.convert(content, headers=headers)) for _ in range(2)] == ["miss", "hit"]


def test_addresses_share_nothing(serve: Callable[..., Running]) -> None:
    running = serve(**CACHE, trusted_proxies=("127.0.0.1",))
    for address in ("192.0.2.1", "192.0.2.2"):
        headers = {"X-Forwarded-For": address}
        assert [state(running.convert(headers=headers)) for _ in range(2)] == ["miss", "hit"]


def test_callers_behind_a_foreign_proxy_have_no_cache(serve: Callable[..., Running]) -> None:
    running = serve(**CACHE)
    headers = {"X-Forwarded-For": "192.0.2.1"}
    assert [state(running.convert(headers=headers)) for _ in range(2)] == [None, None]


def test_a_hit_counts_and_is_checked_like_any_request(serve: Callable[..., Running]) -> None:
    limits = {"free": {"requests_per_minute": 4, "max_file_bytes": 20}, "pro": {}}
    running = serve(**CACHE, plan_limits=limits)
    assert [state(running.convert()) for _ in range(3)] == ["miss", "hit", "hit"]
    check_error(running.convert(b"toy" + bytes(30)), 413, "file_too_large")
    check_error(running.convert(), 429, "rate_limit_exceeded")


def test_a_revoked_key_and_another_plan_get_nothing(cached: Running) -> None:
    key, record = cached.keys.create("pro")
    headers = {"X-Api-Key": key}
    assert [state(cached.convert(target="gilded", headers=headers)) for _ in range(2)] == ["miss", "hit"]
    check_error(cached.convert(target="gilded"), 403, "premium_format_required")
    cached.keys.revoke(record.id)
    check_error(cached.convert(target="gilded", headers=headers), 401, "invalid_api_key")


class Meter:
    """Listener and review: it keeps reports, and objects on request."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.objects = False

    @hookimpl
    def meshhub_finished(self, report: Report) -> None:
        self.reports.append(report)

    @hookimpl
    def meshhub_review(self, chain: Chain, caller: Caller) -> Iterable[Objection]:
        return [Objection(code="no_credit", message="no credit", remedy="pay")] if self.objects else []


def test_reviews_and_listeners_see_hits(tmp_path: Path) -> None:
    meter = Meter()
    with serving(tmp_path, CACHE, plugins=(meter,)) as running:
        assert [state(running.convert()) for _ in range(2)] == ["miss", "hit"]
        assert meter.reports[0] == meter.reports[1]
        meter.objects = True
        assert running.convert().status_code == 403


def test_jobs_share_the_cache_of_their_caller(cached: Running) -> None:
    upload, fields = {"file": ("job.toy", b"toy job")}, {"target": "toy"}
    assert state(cached.post("/convert", upload, fields)) == "miss"
    before = count(cached, 'meshhub_cache_lookups_total{result="hit"}')
    job = cached.post("/jobs", upload, {"kind": "convert", **fields}).json()
    wait_until(lambda: cached.get(f"/jobs/{job['id']}").json()["state"] == "done")
    assert count(cached, 'meshhub_cache_lookups_total{result="hit"}') == before + 1


def test_errors_are_not_stored(cached: Running) -> None:
    before = count(cached, "meshhub_cache_bytes")
    for _ in range(2):
        assert "x-meshhub-cache" not in check_error(cached.convert(b"toy empty"), 422, "empty_model")
    assert count(cached, "meshhub_cache_bytes") == before


def test_metrics_count_lookups_and_bytes(serve: Callable[..., Running]) -> None:
    running = serve(**CACHE)
    for _ in range(3):
        running.convert()
    assert count(running, 'meshhub_cache_lookups_total{result="hit"}') == 2
    assert count(running, 'meshhub_cache_lookups_total{result="miss"}') == 1
    assert count(running, "meshhub_cache_bytes") > 0
    assert count(running, 'meshhub_conversions_total{outcome="cached",source="toy",target="toy"}') == 2


def test_results_leave_at_their_age_without_requests(serve: Callable[..., Running]) -> None:
    running = serve(cache_bytes=10_000_000, cache_seconds=0.5)
    assert state(running.convert()) == "miss"
    wait_until(lambda: not entries(running.temporary))
    assert state(running.convert()) == "miss"


def test_the_least_used_results_make_room(serve: Callable[..., Running]) -> None:
    running = serve(cache_bytes=4000)

    def send(name: str) -> str | None:
        return state(running.convert(name=f"{name}.toy", toy_weight="1000"))

    assert [send("a"), send("b"), send("a"), send("c"), send("a"), send("b")] == [
        "miss", "miss", "hit", "miss", "hit", "miss",
    ]  # fmt: skip
    assert 0 < sum(path.stat().st_size for path in entries(running.temporary)) <= 4000
    assert [state(running.convert(toy_weight="5000")) for _ in range(2)] == ["miss", "miss"]
    assert send("b") == "hit"


def test_a_stop_removes_the_cache(tmp_path: Path) -> None:
    with serving(tmp_path, CACHE) as running:
        running.convert()
        assert entries(tmp_path)
    assert not entries(tmp_path)


def test_a_named_folder_survives_a_restart_and_keeps_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    for expected in ("miss", "hit"):
        with serving(tmp_path, {**CACHE, "cache_folder": str(folder)}) as running:
            assert state(running.convert()) == expected
        (folder / "letter.txt").write_text("mine")
    assert len(entries(folder)) == 1
    assert folder.stat().st_mode & 0o077 == 0
    with serving(tmp_path, {"cache_bytes": 1, "cache_folder": str(folder)}) as running:
        assert state(running.convert(name="b.toy")) == "miss"
    assert not entries(folder)
    assert (folder / "letter.txt").read_text() == "mine"


@pytest.mark.large
def test_two_servers_share_a_folder_and_evict_while_they_answer(tmp_path: Path) -> None:
    settings = {"cache_bytes": 4000, "cache_folder": str(tmp_path / "cache"), "workers": 4}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with serving(tmp_path / "a", settings) as one, serving(tmp_path / "b", settings) as two:
        assert (state(one.convert()), state(two.convert())) == ("miss", "hit")

        def send(number: int) -> tuple[str | None, bool]:
            size = number % 5 + 1
            running = (one, two)[number % 2]
            url, fields = f"{running.url}/convert", {"target": "toy", "toy_weight": str(300 * size)}
            answer = httpx.post(url, files={"file": ("x.toy", b"toy")}, data=fields, timeout=120)
            return state(answer), answer.content.endswith(b"}" + bytes(300 * size))

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(send, range(120)))
    assert all(is_whole for _, is_whole in answers)
    assert {result for result, _ in answers} == {"hit", "miss"}


@pytest.mark.parametrize("damage", [b"", b"\xff\n", None], ids=["empty", "other", "shorter"])
def test_a_damaged_entry_is_a_miss(tmp_path: Path, damage: bytes | None) -> None:
    folder = tmp_path / "cache"
    with serving(tmp_path, {**CACHE, "cache_folder": str(folder)}) as running:
        first = running.convert()
        (entry,) = entries(folder)
        entry.write_bytes(entry.read_bytes()[:-3] if damage is None else damage)
        second, third = (running.convert() for _ in range(2))
    assert [state(first), state(second), state(third)] == ["miss", "miss", "hit"]
    assert first.content == second.content == third.content


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSettings, match="cache_folder"):
        create_app(Settings(**CACHE, cache_folder=str(tmp_path / "file" / "cache")))
