"""Requests of pages of other origins, and requests with foreign hosts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from http_serving import Running, check_error

SHOP = "https://shop.example"


def test_without_the_setting_no_page_of_another_origin_reads_a_response(service: Running) -> None:
    answer = service.get("/plan", headers={"Origin": SHOP})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_listed_origins_read_responses_and_errors(serve: Callable[..., Running]) -> None:
    service = serve(cors_origins=(SHOP,))
    key, _ = service.keys.create("pro", label="shop")
    for answer in (
        service.get("/plan", headers={"Origin": SHOP, "X-Api-Key": key}),
        service.convert(headers={"Origin": SHOP}),
        service.convert(target="nothing", headers={"Origin": SHOP}),
        service.get("/nowhere", headers={"Origin": SHOP}),
    ):
        assert answer.headers["access-control-allow-origin"] == SHOP
        assert "Origin" in answer.headers["vary"]
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert {"RateLimit-Remaining", "X-Request-ID", "X-Meshhub-Report", "Content-Disposition"} <= set(exposed)
        assert "access-control-allow-credentials" not in answer.headers
    other = service.get("/plan", headers={"Origin": "https://other.example"})
    assert "access-control-allow-origin" not in other.headers


def preflight(service: Running, origin: str) -> dict[str, str]:
    answer = service.client.options(
        "/convert",
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "x-api-key",
        },
    )
    assert (answer.status_code, answer.content) == (204, b"")
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control")}


def test_preflight_requests_are_answered_and_not_counted(serve: Callable[..., Running]) -> None:
    service = serve(cors_origins=(SHOP,), plan_limits={"free": {"requests_per_minute": 2}})
    for _ in range(4):
        headers = preflight(service, SHOP)
        assert headers["access-control-allow-origin"] == SHOP
        assert "POST" in headers["access-control-allow-methods"]
        allowed = set(headers["access-control-allow-headers"].split(", "))
        assert {"X-Api-Key", "Idempotency-Key", "Range", "If-Range"} <= allowed
    assert service.get("/plan").json()["usage"]["requests_remaining"] == 1
    assert preflight(service, "https://other.example") == {}


def test_every_origin_only_without_keys(serve: Callable[..., Running]) -> None:
    service = serve(cors_origins=("*",))
    key, _ = service.keys.create("pro", label="shop")
    assert service.get("/plan", headers={"Origin": SHOP}).headers["access-control-allow-origin"] == SHOP
    assert "X-Api-Key" not in preflight(service, SHOP)["access-control-allow-headers"]
    keyed = service.get("/plan", headers={"Origin": SHOP, "X-Api-Key": key})
    assert "access-control-allow-origin" not in keyed.headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", ""])
def test_a_local_service_rejects_names_of_other_hosts(service: Running, host: str) -> None:
    for path in ("/plan", "/", "/metrics", "/health/live", "/schema"):
        check_error(service.get(path, headers={"Host": host}), 421, "host_not_allowed")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8000", "mesh.localhost", "127.9.9.9:3", "printer:80"]
)
def test_a_local_service_accepts_its_own_names(service: Running, host: str) -> None:
    assert service.get("/plan", headers={"Host": host}).status_code == 200


def test_hosts_can_be_listed(serve: Callable[..., Running]) -> None:
    service = serve(allowed_hosts=("mesh.example",))
    assert service.get("/plan", headers={"Host": "mesh.example:8000"}).status_code == 200
    assert service.get("/plan", headers={"Host": "localhost"}).status_code == 200
    check_error(service.get("/plan", headers={"Host": "other.example"}), 421, "host_not_allowed")


def test_trusted_proxies_send_any_host_that_is_not_excluded(serve: Callable[..., Running]) -> None:
    proxied = serve(trusted_proxies=("127.0.0.1",))
    headers = {"Host": "public.example", "X-Forwarded-For": "203.0.113.9"}
    assert proxied.get("/plan", headers=headers).status_code == 200
    assert proxied.convert(headers={**headers, "Origin": SHOP}).status_code == 200
    listed = serve(trusted_proxies=("127.0.0.1",), allowed_hosts=("public.example",))
    assert listed.get("/plan", headers=headers).status_code == 200
    check_error(listed.get("/plan", headers={**headers, "Host": "other.example"}), 421, "host_not_allowed")


@pytest.mark.parametrize("origin", [SHOP, "null", "http://localhost:1", "http://evil.localhost", "http://["])
def test_a_local_service_rejects_uploads_of_other_origins(service: Running, origin: str) -> None:
    check_error(service.convert(headers={"Origin": origin}), 403, "origin_not_allowed")
    assert service.get("/plan", headers={"Origin": origin}).status_code == 200


def test_a_local_service_accepts_its_own_page_and_listed_origins(serve: Callable[..., Running]) -> None:
    service = serve(cors_origins=(SHOP,))
    assert service.convert(headers={"Origin": service.url}).status_code == 200
    assert service.convert(headers={"Origin": SHOP}).status_code == 200
    assert service.convert().status_code == 200
