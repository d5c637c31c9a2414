"""Rate limits, keys over HTTP, and the addresses that requests are counted under."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from http_serving import Running, check_error, serving, unzip_response
from meshhub.engine.logs import FIELDS
from meshhub.hookspecs import hookimpl
from meshhub.http.admission import failed_keys, rates
from meshhub.http.admission.addresses import client_address, count_networks, networks
from meshhub.http.admission.failed_keys import FailedKeys
from meshhub.http.admission.rates import RateLimits
from meshhub.http.admission.window import Window
from meshhub.model.plans import Caller
from waiting import wait_until

pytestmark = pytest.mark.once

PLANS = {"free": {"requests_per_minute": 30}, "pro": {"requests_per_minute": 50}}


def test_exactly_30_of_60_pass(serve: Any) -> None:
    running: Running = serve(plan_limits=PLANS)
    paths = ["/plan", "/supported", "/schema", "/convert"]

    def ask(number: int) -> httpx.Response:
        with httpx.Client(base_url=running.url) as client:
            path = paths[number % 4]
            return client.post(path) if path == "/convert" else client.get(path)

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(ask, range(60)))
    late = [answer for answer in answers if answer.status_code == 429]
    assert len(late) == 30
    for answer in late:
        check_error(answer, 429, "rate_limit_exceeded")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert answer.headers["ratelimit-limit"] == "30"
        assert answer.headers["ratelimit-remaining"] == "0"
    left = sorted(int(a.headers["ratelimit-remaining"]) for a in answers if a.status_code != 429)
    assert left[0] == 0
    assert left[-1] <= 29
    assert running.get("/health/live").status_code == 200
    assert "ratelimit-limit" not in running.get("/health/ready").headers


def test_questions_about_jobs_and_files_of_the_page_leave_the_window_of_conversions(serve: Any) -> None:
    service = serve(plan_limits={"free": {"requests_per_minute": 3, "job_requests_per_minute": 20}})
    job = service.post("/jobs", {"file": ("a.toy", b"toy")}, {"kind": "convert", "target": "toy"}).json()["id"]
    script = "/schema/start.js"
    polls = [service.get(f"/jobs/{job}") for _ in range(21)]
    assert [answer.status_code for answer in polls] == [200] * 20 + [429]
    assert polls[0].headers["ratelimit-limit"] == "20"
    for path in (f"/jobs/{job}/events", f"/jobs/{job}/result", "/jobs"):
        check_error(service.get(path), 429, "rate_limit_exceeded")
    assert {service.get(path).status_code for path in (script, "/", script, "/health/live") for _ in range(5)} == {200}
    # one of three was the submission
    assert [service.convert().status_code for _ in range(3)] == [200, 200, 429]


def test_conversions_leave_the_window_of_questions_about_jobs(serve: Any) -> None:
    service = serve(plan_limits={"free": {"requests_per_minute": 1, "job_requests_per_minute": 20}})
    job = service.post("/jobs", {"file": ("a.toy", b"toy")}, {"kind": "convert", "target": "toy"}).json()["id"]
    check_error(service.convert(), 429, "rate_limit_exceeded")
    assert service.get(f"/jobs/{job}").status_code == 200


def test_keys_are_counted_separately(serve: Any) -> None:
    running: Running = serve(plan_limits={"free": {"requests_per_minute": 2}, "pro": {"requests_per_minute": 3}})
    keys = [running.keys.create("pro")[0] for _ in range(2)]
    for headers, allowed in (({}, 2), ({"X-Api-Key": keys[0]}, 3), ({"X-Api-Key": keys[1]}, 3)):
        statuses = [running.get("/plan", headers=headers).status_code for _ in range(5)]
        assert statuses == [200] * allowed + [429] * (5 - allowed)


def test_plan_reports_the_used_requests(serve: Any) -> None:
    running: Running = serve(plan_limits=PLANS)
    first, second = running.get("/plan").json(), running.get("/plan").json()
    assert first["usage"]["requests_remaining"] == 29
    assert second["usage"]["requests_remaining"] == 28
    assert 1 <= second["usage"]["resets_in_seconds"] <= 60
    key, _ = running.keys.create("pro")
    mine = running.get("/plan", headers={"X-Api-Key": key}).json()
    assert mine["plan"] == "pro"
    assert mine["limits"]["max_file_bytes"] == 200 * 1024 * 1024
    assert mine["limits"]["max_batch_files"] == 100
    assert mine["usage"]["requests_remaining"] == 49


def test_the_free_plan_has_its_declared_limits(serve: Any) -> None:
    plan = serve(plan_limits={}).get("/plan").json()
    assert plan["plan"] == "free"
    assert plan["limits"] == {
        "max_file_bytes": 20_971_520,
        "max_batch_files": 3,
        "requests_per_minute": 30,
        "conversion_timeout_seconds": 90,
        "max_request_bytes": 64 * 1024 * 1024,
        "request_timeout_seconds": 300,
        "max_unfinished_jobs": 5,
        "job_timeout_seconds": 90,
        "job_retention_seconds": 3600,
        "job_requests_per_minute": 300,
        "job_weight": 1,
        "job_listing": False,
        "job_webhooks": False,
    }
    assert "step" in plan["premium_formats"]


def test_a_key_gets_the_grants_of_its_plan(service: Running, pro: dict[str, str]) -> None:
    check_error(service.convert(target="gilded"), 403, "premium_format_required")
    assert service.convert(target="gilded", headers=pro).status_code == 200
    assert "gilded" not in service.get("/supported").json()["output_formats"]
    assert "gilded" in service.get("/supported", headers=pro).json()["output_formats"]
    assert service.convert(b"toy" + b" " * (21 << 20), headers=pro).status_code == 200


class Tuesdays:
    """Plug-in that grants the formats of Pro to all callers on Tuesdays."""

    def __init__(self) -> None:
        self.day = "Monday"
        self.asked = 0

    @hookimpl
    def meshhub_grants(self, caller: Caller) -> list[str]:
        self.asked += 1
        return ["pro"] if self.day == "Tuesday" and caller.plan.id == "free" else []


def test_a_plugin_grants_more_than_the_plan(tmp_path: Path) -> None:
    policy = Tuesdays()
    with serving(tmp_path, {}, None, (policy,)) as running:
        check_error(running.convert(target="gilded"), 403, "premium_format_required")
        assert "gilded" not in running.get("/supported").json()["output_formats"]
        policy.day = "Tuesday"
        assert running.convert(target="gilded").status_code == 200
        assert "gilded" in running.get("/supported").json()["output_formats"]
        policy.asked = 0
        assert len(unzip_response(running.many(("a.toy", b"toy"), ("b.toy", b"toy"), target="gilded"))) == 2
        assert policy.asked == 1


@pytest.mark.parametrize("key", ["", "x", "mh_", "mh_aaaaaaaaaaaa_short", "é".encode(), "mh_" + "a" * 5000])
def test_an_invalid_key_is_answered_with_401(service: Running, key: str | bytes) -> None:
    for path in ("/plan", "/supported", "/schema"):
        check_error(service.get(path, headers={"X-Api-Key": key}), 401, "invalid_api_key")
    answer = service.convert(headers={"X-Api-Key": key})
    check_error(answer, 401, "invalid_api_key")
    assert "X-Api-Key" in answer.headers["www-authenticate"]
    assert service.get("/health/live", headers={"X-Api-Key": key}).status_code == 200


def test_two_keys_in_one_request_are_answered_with_401(service: Running, pro: dict[str, str]) -> None:
    key = pro["X-Api-Key"]
    for both in ((key, key), (key, "wrong"), ("wrong", key), ("", key)):
        answer = service.get("/plan", headers=[("X-Api-Key", request) for request in both])
        body = check_error(answer, 401, "invalid_api_key")
        assert "2 times" in body["error"]
    # joined as a proxy does
    check_error(service.get("/plan", headers={"X-Api-Key": f"{key}, {key}"}), 401, "invalid_api_key")


def test_guesses_of_keys_are_limited_per_address(serve: Any) -> None:
    running: Running = serve(plan_limits={}, trusted_proxies=("127.0.0.1",))
    old, _ = running.keys.create("pro")
    new, record = running.keys.create("pro")
    here = {"X-Forwarded-For": "6.6.6.6"}
    assert running.get("/plan", headers={**here, "X-Api-Key": old}).status_code == 200
    guess = {**here, "X-Api-Key": f"{record.id}_" + "x" * 43}
    for _ in range(30):
        check_error(running.get("/plan", headers=guess), 401, "invalid_api_key")
    answer = running.get("/supported", headers=guess)
    check_error(answer, 429, "rate_limit_exceeded")
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert answer.headers["ratelimit-remaining"] == "0"
    # a correct guess gets the same error; a key that was valid before still works
    check_error(running.get("/plan", headers={**here, "X-Api-Key": new}), 429, "rate_limit_exceeded")
    assert running.get("/plan", headers={**here, "X-Api-Key": old}).json()["plan"] == "pro"
    assert running.get("/plan", headers=here).json()["plan"] == "free"
    assert running.get("/plan", headers={"X-Forwarded-For": "7.7.7.7", "X-Api-Key": new}).status_code == 200
    running.keys.revoke(old[:15])
    check_error(running.get("/plan", headers={**here, "X-Api-Key": old}), 401, "invalid_api_key")
    check_error(running.get("/plan", headers={**here, "X-Api-Key": old}), 429, "rate_limit_exceeded")


def test_recently_valid_keys_pass_when_failures_reach_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_keys, "_MAX_VALID_KEYS_COUNT", 2)

    async def story() -> None:
        failed_keys = FailedKeys(RateLimits(), 4)
        for key in ("a", "b", "a", "c"):
            failed_keys.remember_valid(key)
        for number in range(4):
            assert await failed_keys.check("here", "b") is None, number
            await failed_keys.count_invalid("here", "d")
        assert [await failed_keys.check("here", key) is None for key in "abcd"] == [True, False, True, False]

    asyncio.run(story())


def test_a_revoked_key_is_answered_with_401_at_once(service: Running) -> None:
    key, record = service.keys.create("pro")
    assert service.get("/plan", headers={"X-Api-Key": key}).status_code == 200
    service.keys.revoke(record.id)
    assert "revoked" in check_error(service.get("/plan", headers={"X-Api-Key": key}), 401, "invalid_api_key")["error"]


def test_an_expired_key_is_answered_with_401(service: Running) -> None:
    key, _ = service.keys.create("pro", expires=1000)
    assert "expired" in check_error(service.get("/plan", headers={"X-Api-Key": key}), 401, "invalid_api_key")["error"]


def test_a_key_of_an_unknown_plan_is_answered_with_401(service: Running) -> None:
    key, _ = service.keys.create("platinum")
    check_error(service.get("/plan", headers={"X-Api-Key": key}), 401, "invalid_api_key")


def test_a_locked_database_does_not_affect_callers_without_a_key(serve: Any) -> None:
    import sqlite3

    running: Running = serve()
    key, _ = running.keys.create("pro")
    path = running.temporary.parent / "keys.sqlite3"
    with sqlite3.connect(path, isolation_level=None) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert running.convert().status_code == 200
        answer = running.get("/plan", headers={"X-Api-Key": key})
        assert str(path) not in check_error(answer, 503, "server_busy")["error"]
        assert "retry-after" in answer.headers
        database.execute("ROLLBACK")
    database.close()
    assert running.get("/plan", headers={"X-Api-Key": key}).status_code == 200


def test_forwarded_addresses_count_for_trusted_proxies_only(serve: Any) -> None:
    plans = {"free": {"requests_per_minute": 1}}
    distrusting: Running = serve(plan_limits=plans)
    statuses = [distrusting.get("/plan", headers={"X-Forwarded-For": f"9.9.9.{n}"}).status_code for n in range(3)]
    assert statuses == [200, 429, 429]
    trusting: Running = serve(plan_limits=plans, trusted_proxies=("127.0.0.0/8",))
    statuses = [trusting.get("/plan", headers={"X-Forwarded-For": f"9.9.9.{n}"}).status_code for n in range(3)]
    assert statuses == [200, 200, 200]
    invented = [trusting.get("/plan", headers={"X-Forwarded-For": f"1.2.3.{n}, 8.8.8.8"}).status_code for n in range(3)]
    assert invented == [200, 429, 429]


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("1.1.1.1", ["9.9.9.9"], "1.1.1.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["9.9.9.9"], "9.9.9.9"),
        ("10.0.0.1", ["6.6.6.6, 9.9.9.9, 10.0.0.2"], "9.9.9.9"),
        ("10.0.0.1", ["6.6.6.6", "9.9.9.9:4711"], "9.9.9.9"),
        ("10.0.0.1", ["9.9.9.9, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["[2001:db8::1]:80"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["2001:db8::2"], "2001:db8::2"),
        ("", ["9.9.9.9"], "local"),
        (None, [], "local"),
    ],
)
def test_the_address_of_a_client_is_read_from_the_right(peer: str | None, forwarded: list[str], address: str) -> None:
    assert client_address(peer, forwarded, networks(["10.0.0.0/8"])) == address


def test_proxies_on_a_unix_socket_can_be_trusted() -> None:
    trusted = networks(["unix", "10.0.0.0/8"])
    assert client_address(None, ["6.6.6.6, 9.9.9.9, 10.0.0.2"], trusted) == "9.9.9.9"
    assert client_address("1.2.3.4", ["9.9.9.9"], trusted) == "1.2.3.4"
    assert client_address(None, [], trusted) == "local"


def test_ipv6_callers_are_counted_by_their_64_bit_prefix() -> None:
    first, second, other = (count_networks(f"2001:db8:1:{end}")[0] for end in ("2:3::4", "2:ffff::", "3::"))
    assert first == second == ("2001:db8:1:2::/64", 1)
    assert first != other
    assert count_networks("1.2.3.4") == [("1.2.3.4", 1)]


@pytest.mark.parametrize(
    ("groups", "passes"),
    [
        (["2001:db8:1:1"], 1),
        ([f"2001:db8:1:{number:x}" for number in range(9)], 4),
        ([f"2001:db8:1:{number << 8:x}" for number in range(20)], 16),
    ],
)
def test_an_ipv6_network_has_a_multiple_of_the_limit_of_a_caller(serve: Any, groups: list[str], passes: int) -> None:
    """One /64, several of a /56, several /56 of a /48: the limit of each /64 alone would let all pass."""
    running: Running = serve(plan_limits={"free": {"requests_per_minute": 1}}, trusted_proxies=("127.0.0.1",))

    def get_status(address: str) -> int:
        return running.get("/plan", headers={"X-Forwarded-For": address}).status_code

    statuses = [get_status(f"{group}::{number}") for number in (1, 2) for group in groups]
    assert statuses.count(200) == passes
    assert set(statuses) == {200, 429}
    assert get_status("2001:db8:2::1") == get_status("1.2.3.4") == 200


def test_invalid_keys_of_an_ipv6_network_are_counted(serve: Any) -> None:
    running: Running = serve(plan_limits={"free": {"requests_per_minute": 1}}, trusted_proxies=("127.0.0.1",))

    def get_status(number: int) -> int:
        headers = {"X-Forwarded-For": f"2001:db8:1:{number:x}::1", "X-Api-Key": f"wrong-{number}"}
        return running.get("/plan", headers=headers).status_code

    assert [get_status(number) for number in range(8)] == [401] * 4 + [429] * 4


def test_a_rejected_key_is_logged_by_its_id(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    running: Running = serve()
    key, record = running.keys.create("pro")
    running.keys.revoke(record.id)
    secret = key.removeprefix(record.id)
    with caplog.at_level(logging.INFO, logger="meshhub"):
        for number, text in enumerate((key, key[:-4] + "xxxx", record.id, "not-a-key")):
            headers = {"X-Api-Key": text, "X-Request-ID": f"request-{number}"}
            assert running.get("/plan", headers=headers).status_code == 401
        wait_until(lambda: len([line for line in caplog.records if line.name == "meshhub.http.access"]) == 4)
    lines = [line for line in caplog.records if line.name == "meshhub.http.access"]
    assert [getattr(line, FIELDS)["key"] for line in lines] == [record.id, record.id, record.id, ""]
    assert [record.id in line.getMessage() for line in lines] == [True, True, True, False]
    assert secret[1:10] not in caplog.text


async def _hits(limits: RateLimits, count: int) -> list[bool]:
    return [(await limits.hit("me", 3)).passed for _ in range(count)]


def test_each_process_counts_by_itself_if_redis_fails(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("redis", reason="Redis needs the extra redis")
    limits = RateLimits("redis://127.0.0.1:1/0")
    assert asyncio.run(_hits(limits, 5)) == [True, True, True, False, False]
    # later requests neither query Redis nor log the failure
    assert caplog.text.count("counts alone") == 1
    asyncio.run(limits.close())


def test_a_redis_that_responds_again_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("redis", reason="Redis needs the extra redis")
    monkeypatch.setattr(rates, "_REDIS_RETRY_S", -1)
    limits = RateLimits("redis://127.0.0.1:1/0")
    assert asyncio.run(_hits(limits, 3)) == [True, True, True]
    limits._limiter = MovingWindowRateLimiter(MemoryStorage())
    assert asyncio.run(_hits(limits, 4)) == [True, True, True, False]
    assert caplog.text.count("counts alone") == caplog.text.count("works again") == 1


def test_the_window_of_a_limit_slides() -> None:
    now = 1000.0
    window = Window(lambda: now)
    assert window.query("me", 2, count=False) == (True, 2, 0)
    assert window.query("me", 2, count=True) == (True, 1, 60)
    now += 20.5
    assert window.query("me", 2, count=True) == (True, 0, 40)
    assert window.query("me", 2, count=True) == (False, 0, 40)
    assert window.query("you", 2, count=True) == (True, 1, 60)
    now += 39.5
    # the first request leaves the window after a minute, and rejected ones never enter it
    assert window.query("me", 2, count=True) == (True, 0, 21)
    assert window.query("me", 2, count=True) == (False, 0, 21)
    assert len(window) == 2
    now += 60
    assert window.query("me", 2, count=False) == (True, 2, 0)
    assert len(window) == 0


def test_a_window_removes_callers_without_recent_requests() -> None:
    now = 1000.0
    window = Window(lambda: now)
    window.query("me", 2, count=True)
    now += 50
    window.query("you", 2, count=True)
    # the callers remain, but the only request of this caller is too old to count
    now += 11
    assert window.query("me", 2, count=False) == (True, 2, 0)
    now += 10
    assert window.query("you", 2, count=True) == (True, 0, 39)
    assert len(window) == 1


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans()), max_size=60), st.integers(1, 4))
def test_no_minute_has_more_requests_than_the_limit(steps: list[tuple[float, bool]], most: int) -> None:
    now = 0.0
    window = Window(lambda: now)
    passed: list[float] = []
    for pause, count in steps:
        now += pause
        recent = [then for then in passed if then > now - 60]
        is_allowed, remaining, _ = window.query("me", most, count=count)
        assert is_allowed == (len(recent) < most)
        if is_allowed and count:
            passed.append(now)
            recent.append(now)
        assert remaining == most - len(recent)


def test_an_invalid_storage_url_is_rejected() -> None:
    with pytest.raises(ValueError, match="rate_limit_url"):
        RateLimits("carrier-pigeon://x")


@pytest.mark.parametrize(
    "url",
    [
        "redis://:geheim@host:port",
        "redis://user:geheim@host:99999999/1",
        "redis+cluster://user:ge@heim:geheim@host",
        "klingon://user:geheim@host",
        "klingon://host/?password=geheim",
        "geheim",
    ],
)
def test_the_error_of_a_storage_url_hides_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="rate_limit_url") as caught:
        RateLimits(url)
    assert "heim" not in str(caught.value)
