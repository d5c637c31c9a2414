"""The guide of a cluster, as written, on three Debian machines and a fourth one with the stores."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from guide_code import read_blocks, read_commands
from machine_services import (
    ENVIRONMENT,
    HOST,
    convert,
    create_certificate,
    is_3mf,
    read_plan,
    resolve,
    run_meshhub,
    serve_by_nginx,
    submit,
)
from machines import Machine, connect
from waiting import wait_until

pytestmark = pytest.mark.once

GUIDE, SECTION = "cluster.md", "Three machines"


@pytest.fixture(scope="module")
def stores(start: Callable[[str], Machine]) -> Machine:
    """Start PostgreSQL, Redis and an S3-compatible store, without TLS, on one machine."""
    machine = start("stores")
    machine.run("python3 -m venv /opt/store && /opt/store/bin/pip install 'moto[s3,server]'")
    machine.run(
        "cd /etc/postgresql/*/main",
        "echo \"listen_addresses = '*'\" >> postgresql.conf",
        "echo 'host meshhub meshhub 10.0.0.0/24 trust' >> pg_hba.conf",
        "sed -i -e 's/^bind .*/bind 0.0.0.0/' -e 's/^protected-mode .*/protected-mode no/' /etc/redis/redis.conf",
        "systemctl start postgresql redis-server",
        # otherwise, the name s3.internal is a bucket s3
        "systemd-run --unit=store --setenv=S3_IGNORE_SUBDOMAIN_BUCKETNAME=1 "
        "/opt/store/bin/moto_server --host 0.0.0.0 --port 80",
    )
    as_postgres = "cd / && setpriv --reuid=postgres --regid=postgres --init-groups"
    wait_until(lambda: machine.run(f"{as_postgres} pg_isready || true").endswith("accepting connections\n"))
    machine.run(f"{as_postgres} createuser meshhub", f"{as_postgres} createdb --owner=meshhub meshhub")
    machine.wait_for("http://127.0.0.1/")
    assert machine.request("http://127.0.0.1/meshhub-jobs", "--request", "PUT")[0] == 200
    return machine


@pytest.fixture(scope="module")
def machines(start: Callable[[str], Machine], stores: Machine) -> list[Machine]:
    """Set up machines A, B and C, as the guide says."""
    a, b, c = (start(name) for name in "abc")
    connect({"a.internal": a, "b.internal": b, "c.internal": c, "db.internal redis.internal s3.internal": stores})
    environment, unit = read_blocks(GUIDE, SECTION, "ini")
    environment = environment.replace("https://s3.internal", "http://s3.internal")
    for machine in (a, b, c):
        machine.write(ENVIRONMENT, environment)
        machine.run(f"chmod 600 {ENVIRONMENT}")
    enable = read_commands("deploy.md", "systemd")[3]
    a.run(enable)
    b.write("/etc/systemd/system/meshhub.service.d/host.conf", unit)
    b.run(enable, "systemctl daemon-reload && systemctl restart meshhub")
    c.run(*read_commands(GUIDE, SECTION))
    create_certificate(a)
    locations, *_ = read_blocks("proxy.md", "Run behind a proxy", "nginx")
    (upstream,) = read_blocks(GUIDE, SECTION, "nginx")
    serve_by_nginx(a, re.sub(r"proxy_pass .*?;", "proxy_pass http://meshhub;", locations), upstream)
    a.wait_for("http://127.0.0.1:8000/health/ready")
    a.wait_for("http://10.0.0.2:8000/health/ready")
    c.wait_for("http://127.0.0.1:9000/health/ready")
    return [a, b, c]


@pytest.fixture(scope="module")
def key(machines: list[Machine]) -> str:
    return run_meshhub(machines[0], "meshhub keys create --plan pro --label acme").strip()


def count_conversions(machine: Machine) -> int:
    return len(re.findall(r'"path": ?"/convert"', machine.run("journalctl --unit=meshhub --output=cat")))


def test_both_services_convert(machines: list[Machine], key: str, stores: Machine) -> None:
    a, b, _ = machines
    service = f"https://{HOST}"
    options = (*resolve("10.0.0.1"), "--header", f"X-Api-Key: {key}")
    for _ in range(6):
        assert is_3mf(convert(stores, service, "3mf", *options))
    assert min(count_conversions(a), count_conversions(b)) > 0
    assert count_conversions(a) + count_conversions(b) == 6


def test_the_key_is_known_to_both_services(machines: list[Machine], key: str) -> None:
    a, b, _ = machines
    assert read_plan(a, key) == "pro"
    assert read_plan(a, key, service="http://10.0.0.2:8000") == "pro"
    assert "acme" in run_meshhub(b, "meshhub keys list")


def test_the_worker_runs_jobs(machines: list[Machine], key: str) -> None:
    a, _, c = machines
    header = ("--header", f"X-Api-Key: {key}")
    job = submit(a, f"https://{HOST}", *resolve(), *header)
    wait_until(lambda: json.loads(a.request(job, *resolve(), *header)[1])["state"] == "done")
    metrics = c.wait_for("http://127.0.0.1:9000/metrics")
    assert re.search(r"^meshhub_job_run_seconds_count.* 1(\.0)?$", metrics, re.M), metrics
    status, _ = a.request(f"{job}/result", *resolve(), *header, "--output", "/root/result")
    assert status == 200 and is_3mf(a.path("/root/result").read_bytes())


def test_doctor_checks_the_stores_and_workers(machines: list[Machine]) -> None:
    for machine in machines[:2]:
        assert "warning" not in run_meshhub(machine, "meshhub doctor")


def test_callers_share_a_rate_limit(machines: list[Machine], stores: Machine) -> None:
    """Redis counts the requests to both services, by the address of the caller and not of the proxy."""

    def remaining(*options: str) -> int:
        _, body = stores.request(f"https://{HOST}/plan", *resolve("10.0.0.1"), *options)
        number: int = json.loads(body)["usage"]["requests_remaining"]
        return number

    counts = [remaining() for _ in range(4)]
    assert counts == [counts[0] - number for number in range(4)]


def test_metrics_of_the_worker(machines: list[Machine], stores: Machine) -> None:
    status, body = stores.request("http://10.0.0.3:9000/metrics")
    assert status == 200 and "meshhub_job_slots" in body


def test_the_firewall_leaves_the_proxy(machines: list[Machine], stores: Machine, key: str) -> None:
    a, b, c = machines
    address = "http://10.0.0.2:8000/health/live"
    assert c.request(address)[0] == 200
    rules = read_commands(GUIDE, SECTION, 1)
    b.run(*rules)

    def reach() -> list[int]:
        return [machine.request(address, "--connect-timeout", "3")[0] for machine in (a, b, c, stores)]

    assert reach() == [200, 200, 0, 0]
    b.run("nft list table inet meshhub >> /etc/nftables.conf", "systemctl restart nftables")
    assert "10.0.0.1" in b.run("nft list table inet meshhub")
    assert reach() == [200, 200, 0, 0]
    assert is_3mf(convert(a, f"https://{HOST}", "3mf", *resolve(), "--header", f"X-Api-Key: {key}"))


def test_the_worker_restarts(machines: list[Machine]) -> None:
    *_, c = machines
    c.run("systemctl restart meshhub-work")
    c.wait_for("http://127.0.0.1:9000/health/ready")
    c.run("systemctl stop meshhub-work")
    assert c.run("systemctl show --property Result --value meshhub-work") == "success\n"
    c.run("systemctl start meshhub-work")
    c.wait_for("http://127.0.0.1:9000/health/ready")
