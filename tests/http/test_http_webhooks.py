"""Webhooks of jobs: signatures, retries, allowed destinations, secrets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from http_serving import Running, check_error
from meshhub.cli import root
from meshhub.errors import InvalidOption
from meshhub.http.jobs import webhooks
from meshhub.http.jobs.destinations import Destinations, is_public
from meshhub.service.keys import KeyStore
from meshhub.service.webhook_secrets import WebhookSecrets
from waiting import wait_until
from webhook_receivers import Receiver

pytestmark = pytest.mark.once


@pytest.fixture
def receive() -> Iterator[Callable[..., Receiver]]:
    receivers: list[Receiver] = []

    def start(*statuses: int) -> Receiver:
        receivers.append(Receiver(*statuses))
        return receivers[-1]

    yield start
    for receiver in receivers:
        receiver.close()


async def do_not_check(_destinations: Destinations, _url: str) -> None:
    """Accept a URL, as when its name has a public address at that moment."""


def submit(running: Running, headers: dict[str, str], url: str, content: bytes = b"toy") -> Any:
    fields = {"kind": "convert", "target": "toy", "webhook_url": url}
    return running.post("/jobs", {"file": ("a.toy", content)}, fields, headers=headers)


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Verify a message as standardwebhooks.com describes."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return expected in headers["webhook-signature"].split()


def test_the_end_of_a_job_is_delivered_signed(serve: Callable[..., Running], receive: Callable[..., Receiver]) -> None:
    running, receiver = serve(webhook_hosts=("127.0.0.1",)), receive()
    key, record = running.keys.create("pro")
    secret = WebhookSecrets(running.keys).create(record.id)
    begun = time.time()
    ids = [submit(running, {"X-Api-Key": key}, receiver.url, content).json()["id"] for content in (b"toy", b"no")]
    wait_until(lambda: len(receiver.messages) == 2)
    payloads = {}
    for headers, body in receiver.messages:
        assert is_signed(secret, headers, body)
        assert not is_signed(secret, headers, body + b" ")
        assert begun - 1 < int(headers["webhook-timestamp"]) <= time.time()
        payload = json.loads(body)
        payloads[payload["data"]["id"]] = payload["type"], payload["data"]["error_code"]
    assert payloads == {ids[0]: ("job.done", None), ids[1]: ("job.failed", "unreadable_file")}
    assert len({headers["webhook-id"] for headers, _ in receiver.messages}) == 2


def test_a_failed_delivery_is_repeated_with_the_same_id_and_no_redirect_is_followed(
    serve: Callable[..., Running], receive: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "RETRIES_S", (0.1, 0.1, 0.1))
    running, receiver = serve(webhook_hosts=("127.0.0.0/8",)), receive(500, 302)
    key, record = running.keys.create("pro")
    WebhookSecrets(running.keys).create(record.id)
    for count in (3, 4):
        submit(running, {"X-Api-Key": key}, receiver.url)
        wait_until(lambda count=count: len(receiver.messages) == count)
    first, *repeated, other = receiver.messages
    assert {(headers["webhook-id"], body) for headers, body in repeated} == {(first[0]["webhook-id"], first[1])}
    # its delivery succeeded, so it is not repeated again
    assert other[0]["webhook-id"] != first[0]["webhook-id"]


def test_a_message_has_the_path_behind_a_proxy(serve: Callable[..., Running], receive: Callable[..., Receiver]) -> None:
    running, receiver = serve(webhook_hosts=("127.0.0.1",), root_path="/tools/mesh"), receive()
    key, record = running.keys.create("pro")
    WebhookSecrets(running.keys).create(record.id)
    job = submit(running, {"X-Api-Key": key}, receiver.url).json()
    wait_until(lambda: len(receiver.messages) == 1)
    result = json.loads(receiver.messages[0][1])["data"]["result"]
    assert result["url"] == f"/tools/mesh/jobs/{job['id']}/result"
    assert running.get(result["url"], headers={"X-Api-Key": key}).status_code == 200


def test_a_message_whose_key_lost_its_secrets_is_given_up(
    serve: Callable[..., Running], receive: Callable[..., Receiver], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running, receiver, path = serve(webhook_hosts=("127.0.0.1",)), receive(), tmp_path / "go"
    key, record = running.keys.create("pro")
    secrets = WebhookSecrets(running.keys)
    secrets.create(record.id)
    assert submit(running, {"X-Api-Key": key}, receiver.url, f"toy wait {path}".encode()).status_code == 202
    secrets.revoke(record.id)
    path.touch()
    wait_until(lambda: "was given up: InvalidKey: the key has no webhook secret" in caplog.text)

    def read_reasons() -> list[tuple[str | None, str]]:
        with sqlite3.connect(running.temporary.parent / "jobs" / "jobs.sqlite3") as database:
            return database.execute("SELECT due, error FROM job_webhooks").fetchall()

    wait_until(lambda: all(due is None for due, _ in read_reasons()))
    ((_, reason),) = read_reasons()
    assert "no webhook secret" in reason
    assert receiver.messages == []


def test_a_webhook_needs_a_secret_and_an_allowed_destination(serve: Callable[..., Running]) -> None:
    running = serve()
    key, record = running.keys.create("pro")
    headers = {"X-Api-Key": key}
    error = check_error(submit(running, headers, "https://example.com/hook"), 400, "invalid_option")
    assert "secret" in error["error"]
    WebhookSecrets(running.keys).create(record.id)
    for url in ("http://example.com", "ftp://example.com", "https://u:p@example.com", "no url", "https://"):
        check_error(submit(running, headers, url), 400, "invalid_option")
    for url in ("https://10.1.2.3/hook", "https://169.254.169.254", "https://[::1]:8443", "https://[::ffff:127.0.0.1]"):
        error = check_error(submit(running, headers, url), 400, "invalid_option")
        assert "may not reach" in error["error"]


def test_listed_networks_limit_addresses() -> None:
    limited = Destinations(("10.0.0.0/8", "fd00::/8"))
    for url in ("http://10.1.2.3/", "https://[fd00::1]/", "http://[::ffff:10.1.2.3]/", "https://name.example"):
        limited.parse(url)
    for url in ("http://11.1.2.3/", "https://[fe80::1]/", "http://127.0.0.1/"):
        with pytest.raises(InvalidOption, match="may not reach"):
            limited.parse(url)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1::1", True), ("127.0.0.1", False), ("10.1.2.3", False),
        ("169.254.169.254", False), ("192.168.0.1", False), ("0.0.0.0", False), ("224.0.0.1", False), ("::1", False),
        ("fe80::1", False), ("fd00::1", False), ("::ffff:127.0.0.1", False), ("64:ff9b::7f00:1", False),
        ("fec0::1", False), ("192.0.0.192", False),
        ("2002:7f00:1::", False), ("100.64.0.1", False),
    ],
)  # fmt: skip
def test_only_public_addresses_are_public(address: str, expected: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is expected


@pytest.mark.parametrize(("host", "reason"), [("localhost", "may not reach"), ("nowhere.invalid", "does not exist")])
def test_a_url_to_which_nothing_would_be_sent_is_refused(
    serve: Callable[..., Running], monkeypatch: pytest.MonkeyPatch, host: str, reason: str
) -> None:
    running = serve()
    key, record = running.keys.create("pro")
    WebhookSecrets(running.keys).create(record.id)
    real = socket.getaddrinfo

    def resolve(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name == "nowhere.invalid":
            # without a name server, the system cannot know
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    error = check_error(submit(running, {"X-Api-Key": key}, f"https://{host}/hook"), 400, "invalid_option")
    assert reason in error["error"]


def test_attempts_are_logged_and_counted(
    serve: Callable[..., Running], receive: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(webhooks, "RETRIES_S", (0.1,))
    running, receiver = serve(webhook_hosts=("127.0.0.0/8",)), receive(500, 500, 200)
    key, record = running.keys.create("pro")
    WebhookSecrets(running.keys).create(record.id)
    for content in (b"toy", b"no"):
        submit(running, {"X-Api-Key": key}, receiver.url, content)
        wait_until(lambda: 'attempts_total{outcome="given_up"} 1.0' in running.get("/metrics").text)
    wait_until(lambda: 'attempts_total{outcome="delivered"} 1.0' in running.get("/metrics").text)
    assert 'meshhub_webhook_attempts_total{outcome="failed"} 1.0' in running.get("/metrics").text
    assert "is sent again in 0 s: status 500" in caplog.text
    assert "was given up: status 500" in caplog.text


def test_a_name_whose_address_becomes_private_is_not_reached(
    serve: Callable[..., Running], receive: Callable[..., Receiver], caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(webhooks, "RETRIES_S", ())
    monkeypatch.setattr(Destinations, "check", do_not_check)
    running, receiver = serve(), receive()
    key, record = running.keys.create("pro")
    WebhookSecrets(running.keys).create(record.id)
    url = f"https://localhost:{receiver.server.server_port}/"
    assert submit(running, {"X-Api-Key": key}, url).status_code == 202
    wait_until(lambda: "was given up" in caplog.text)
    assert "which webhooks may not reach" in caplog.text
    assert receiver.messages == []


def test_listed_hosts_limit_destinations() -> None:
    limited = Destinations(("example.com", "*.example.org"))
    for url in ("https://example.com/a?b=c", "http://example.com", "https://a.b.example.org:8443/"):
        limited.parse(url)
    for url in ("https://example.net", "https://notexample.org", "https://example.com.evil.net"):
        with pytest.raises(InvalidOption):
            limited.parse(url)
    destination = limited.parse("https://a.example.org:8443/x?y=z")
    assert (destination.authority, destination.path) == ("a.example.org:8443", "/x?y=z")


def test_secrets_are_created_rotated_and_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESHHUB_DATABASE_URL", f"sqlite:///{tmp_path / 'keys.sqlite3'}")
    keys = KeyStore()
    _, record = keys.create("pro")

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(root, ["webhooks", *arguments])

    assert isinstance(run("create", "mh_unknown").exception, InvalidOption)
    first = run("create", record.id).stdout.strip()
    assert first.startswith("whsec_")
    assert isinstance(run("create", record.id).exception, InvalidOption)
    second = run("rotate", record.id, "--grace-hours", "1").stdout.strip()
    secrets = WebhookSecrets(keys)
    assert secrets.active(record.id) == [second, first]
    assert first not in run("list", "--json").stdout
    assert [row["key_id"] for row in json.loads(run("list", "--json").stdout)] == [record.id] * 2
    third = run("rotate", record.id, "--grace-hours", "0").stdout.strip()
    assert third in secrets.active(record.id)
    assert second not in secrets.active(record.id)
    assert run("revoke", record.id).exit_code == 0
    assert secrets.active(record.id) == []
    keys.close()
