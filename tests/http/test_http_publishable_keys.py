"""Publishable keys: bound to origins and quotas, and without access to the jobs and webhooks of others."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from http_serving import GENEROUS, Running, check_error
from meshhub.errors import InvalidKey
from meshhub.service.keys import KeyStore, Publishable

pytestmark = pytest.mark.once

SHOP, OTHER = "https://shop.example", "https://other.example"


def publish(service: Running, *origins: str, plan: str = "pro", per_minute: int = 100, per_day: int = 100) -> str:
    bounds = Publishable(origins=origins or (SHOP,), requests_per_minute=per_minute, requests_per_day=per_day)
    key, _ = service.keys.create(plan, publishable=bounds)
    return key


def page(key: str, origin: str = SHOP) -> dict[str, str]:
    return {"X-Api-Key": key, "Origin": origin}


def preflight(service: Running, origin: str, headers: str = "content-type, x-api-key") -> dict[str, str]:
    answer = service.client.options(
        "/convert",
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": headers,
        },
    )
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control")}


def test_a_page_of_the_origin_converts(serve: Callable[..., Running]) -> None:
    service = serve()
    key = publish(service)
    assert key.startswith("mhp_")
    allowed = preflight(service, SHOP)
    assert allowed["access-control-allow-origin"] == SHOP
    assert "X-Api-Key" in allowed["access-control-allow-headers"]
    answer = service.convert(headers=page(key))
    assert answer.status_code == 200, answer.text
    assert answer.headers["access-control-allow-origin"] == SHOP
    assert "access-control-allow-credentials" not in answer.headers
    # the plan of the key applies
    assert service.get("/plan", headers=page(key)).json()["plan"] == "pro"
    # errors are readable, too
    assert service.convert(target="nothing", headers=page(key)).headers["access-control-allow-origin"] == SHOP


@pytest.mark.parametrize("origin", [OTHER, "null", "https://shop.example.evil.example", "http://shop.example", ""])
def test_other_origins_may_not_use_the_key(serve: Callable[..., Running], origin: str) -> None:
    # a service that pages can reach: a local one rejects other pages before it looks at keys
    service = serve(trusted_proxies=("127.0.0.1",))
    key = publish(service)
    headers = {"X-Api-Key": key, "X-Forwarded-For": "203.0.113.9", **({"Origin": origin} if origin else {})}
    answer = service.convert(headers=headers)
    check_error(answer, 403, "origin_not_allowed")
    assert key not in answer.text
    assert "access-control-allow-origin" not in answer.headers
    assert "access-control-allow-origin" not in preflight(service, origin or OTHER)


def test_rejected_origins_count_against_the_limit(serve: Callable[..., Running]) -> None:
    service = serve(trusted_proxies=("127.0.0.1",))
    key = publish(service, per_minute=2)
    statuses = [service.get("/plan", headers=page(key, OTHER)).status_code for _ in range(4)]
    assert statuses == [403, 403, 429, 429]


def test_other_keys_open_no_origin(serve: Callable[..., Running]) -> None:
    service = serve()
    key, record = service.keys.create("pro", publishable=Publishable(origins=(SHOP,)))
    secret, _ = service.keys.create("pro")
    service.keys.revoke(record.id)
    assert preflight(service, SHOP) == {}
    check_error(service.convert(headers=page(key)), 403, "origin_not_allowed")
    # a secret key opens no origin either, and an unpublished origin reads nothing
    answer = service.get("/plan", headers=page(secret))
    assert "access-control-allow-origin" not in answer.headers


def test_a_published_origin_needs_the_key(serve: Callable[..., Running]) -> None:
    service = serve()
    publish(service)
    assert preflight(service, SHOP, "content-type") == {}
    check_error(service.convert(headers={"Origin": SHOP}), 403, "origin_not_allowed")


def test_each_address_has_a_limit_and_the_key_a_daily_one(serve: Callable[..., Running]) -> None:
    service = serve(trusted_proxies=("127.0.0.1",))
    key = publish(service, per_minute=4, per_day=5)

    def convert(address: str) -> int:
        return service.convert(headers={**page(key), "X-Forwarded-For": address}).status_code

    assert [convert("203.0.113.1") for _ in range(5)] == [200, 200, 200, 200, 429]
    assert [convert("203.0.113.2") for _ in range(2)] == [200, 429]
    rejected = service.convert(headers={**page(key), "X-Forwarded-For": "203.0.113.3"})
    body = check_error(rejected, 429, "rate_limit_exceeded")
    assert "5 conversions in a day" in body["error"]
    assert 60 < int(rejected.headers["retry-after"]) <= 86_400
    plan = service.get("/plan", headers={**page(key), "X-Forwarded-For": "203.0.113.4"}).json()
    assert plan["limits"]["requests_per_minute"] == 4
    assert plan["publishable_key"] == {"origins": [SHOP], "requests_per_day": 5, "requests_remaining": 0}
    # callers without this key are not affected
    assert service.convert().status_code == 200
    assert service.get("/plan").json()["publishable_key"] is None


def test_questions_do_not_use_up_the_daily_quota(serve: Callable[..., Running]) -> None:
    service = serve()
    key = publish(service, per_day=1)
    described = json.dumps([{"name": "a.stl"}])
    for _ in range(3):
        assert service.get("/supported", headers=page(key)).status_code == 200
        service.post("/explain", data={"files": described, "target": "glb"}, headers=page(key))
    assert service.get("/plan", headers=page(key)).json()["publishable_key"]["requests_remaining"] == 1


def test_jobs_of_the_customer_stay_private(serve: Callable[..., Running]) -> None:
    service = serve()
    key = publish(service)
    secret, _ = service.keys.create("pro")
    toy = {"file": ("a.toy", b"toy")}
    own = service.post("/jobs", toy, {"kind": "convert", "target": "toy"}, headers=page(key))
    assert own.status_code == 202, own.text
    assert service.get(f"/jobs/{own.json()['id']}", headers=page(key)).status_code == 200
    other = service.post("/jobs", toy, {"kind": "convert", "target": "toy"}, headers={"X-Api-Key": secret}).json()["id"]
    for path in (f"/jobs/{other}", f"/jobs/{other}/result", f"/jobs/{other}/events"):
        check_error(service.get(path, headers=page(key)), 404, "job_not_found")
    check_error(service.client.delete(f"/jobs/{other}", headers=page(key)), 404, "job_not_found")
    check_error(service.get("/jobs", headers=page(key)), 403, "plan_required")
    fields = {"kind": "convert", "target": "toy", "webhook_url": "https://shop.example/hook"}
    check_error(service.post("/jobs", toy, fields, headers=page(key)), 403, "plan_required")


def test_a_secret_key_in_a_page_is_logged_once(serve: Callable[..., Running], caplog: pytest.LogCaptureFixture) -> None:
    service = serve(cors_origins=(SHOP,))
    secret, record = service.keys.create("pro")
    with caplog.at_level("WARNING", "meshhub.http"):
        for _ in range(3):
            assert service.get("/plan", headers=page(secret)).status_code == 200
            assert service.get("/plan", headers={"X-Api-Key": secret}).status_code == 200
    messages = [entry.getMessage() for entry in caplog.records if record.id in entry.getMessage()]
    assert len([text for text in messages if "publishable key" in text]) == 1
    assert not [text for text in messages if secret in text]


def test_caches_keep_responses_of_origins_apart(serve: Callable[..., Running]) -> None:
    service = serve(cors_origins=(SHOP,), plan_limits=GENEROUS)
    key = publish(service)
    for headers in ({}, {"Origin": SHOP}, {"Origin": OTHER}, page(key), {"X-Api-Key": key}):
        for path in ("/plan", "/supported", "/nowhere", "/"):
            assert "Origin" in service.get(path, headers=headers).headers.get("vary", "")
    assert "Origin" not in serve().get("/plan").headers.get("vary", "")


def test_rotation_keeps_origins_and_quotas(tmp_path: Path) -> None:
    store = KeyStore(f"sqlite:///{tmp_path / 'keys.sqlite3'}")
    bounds = Publishable(origins=(SHOP, "http://localhost:3000"), requests_per_minute=7, requests_per_day=70)
    _, record = store.create("pro", label="shop", publishable=bounds)
    later, successor = store.rotate(record.id)
    assert later.startswith("mhp_")
    assert successor.publishable == store.check(later).publishable == bounds
    assert store.published_origins() == set(bounds.origins)
    store.close()


@pytest.mark.parametrize(
    "bounds",
    [
        Publishable(origins=()),
        Publishable(origins=("*",)),
        Publishable(origins=("null",)),
        Publishable(origins=("https://shop.example/",)),
        Publishable(origins=("https://Shop.example",)),
        Publishable(origins=(SHOP,), requests_per_minute=0),
        Publishable(origins=(SHOP,), requests_per_day=0),
    ],
)
def test_invalid_bounds_are_rejected(tmp_path: Path, bounds: Publishable) -> None:
    store = KeyStore(f"sqlite:///{tmp_path / 'keys.sqlite3'}")
    with pytest.raises(InvalidKey):
        store.create("pro", publishable=bounds)
    assert store.list() == []
    store.close()


def test_databases_of_older_versions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite3"
    store = KeyStore(f"sqlite:///{path}")
    key, record = store.create("pro", label="old")
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE publishable_keys")
    assert store.check(key) == record
    assert store.list() == [record]
    assert store.published_origins() == frozenset()
    # the next key creates the table
    new, _ = store.create("pro", publishable=Publishable(origins=(SHOP,)))
    assert store.check(new).publishable == Publishable(origins=(SHOP,))
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM publishable_keys")
    with pytest.raises(InvalidKey, match="lost its origins"):
        store.check(new)
    store.close()


@pytest.mark.large
def test_publishable_keys_are_created_and_listed_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESHHUB_DATABASE_URL", f"sqlite:///{tmp_path / 'keys.sqlite3'}")
    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "meshhub", "keys", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        return result.returncode, result.stdout

    created = ("create", "--plan", "pro")
    status, key = run(*created, "--publishable", "--origin", SHOP, "--requests-per-day", "50")
    assert (status, key[:4]) == (0, "mhp_")
    (record,) = json.loads(run("list", "--json")[1])
    assert record["publishable"] == {"origins": [SHOP], "requests_per_minute": 30, "requests_per_day": 50}
    assert f"{SHOP} (30 a minute, 50 a day)" in " ".join(run("list")[1].split())
    for wrong in (
        ["--publishable"],
        ["--origin", SHOP],
        ["--requests-per-day", "5"],
        ["--publishable", "--origin", "shop.example"],
        ["--publishable", "--origin", SHOP, "--requests-per-minute", "0"],
    ):
        assert run(*created, *wrong)[0] == 2
    assert len(json.loads(run("list", "--json")[1])) == 1
