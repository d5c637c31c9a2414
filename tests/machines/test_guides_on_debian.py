"""The guides of deployment, as written, on a Debian machine."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from guide_code import read_blocks, read_commands, read_inline
from machine_services import (
    ENVIRONMENT,
    HOST,
    SERVICE,
    convert,
    create_certificate,
    find_folder,
    is_3mf,
    read_id,
    read_plan,
    resolve,
    run_meshhub,
    serve_by_nginx,
    submit,
)
from machines import NEXT_VERSION, Machine
from waiting import wait_until

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def machine(start: Callable[[str], Machine]) -> Machine:
    return start("one")


@pytest.fixture(scope="module")
def key(machine: Machine) -> str:
    """Start the service, and return the key that the guide creates."""
    *_, key = machine.follow(read_commands("deploy.md", "systemd")[3:])
    machine.wait_for(f"{SERVICE}/health/ready")
    return key.strip()


@pytest.fixture
def settings(machine: Machine, key: str) -> Iterator[Callable[..., None]]:
    """Return a function that restarts the service with variables; the end of the test removes them."""

    def change(**variables: str) -> None:
        machine.write(ENVIRONMENT, "".join(f"{name}={value}\n" for name, value in variables.items()))
        machine.run(f"chmod 600 {ENVIRONMENT}", "systemctl restart meshhub")

    yield change
    machine.run(f"rm {ENVIRONMENT}", "systemctl restart meshhub")
    machine.wait_for(f"{SERVICE}/health/ready")


@pytest.fixture
def certificate(machine: Machine) -> Iterator[None]:
    """Create a certificate of nginx; stop nginx at the end."""
    create_certificate(machine)
    yield
    machine.run("systemctl stop nginx", "rm -f /etc/nginx/sites-enabled/meshhub")


def test_the_service_converts(machine: Machine, key: str) -> None:
    assert is_3mf(convert(machine, SERVICE, "3mf"))
    assert machine.request(f"{SERVICE}/supported")[0] == 200
    # STEP needs the libraries of the first command, and the plan of the key
    result = convert(machine, SERVICE, "step", "--header", f"X-Api-Key: {key}")
    assert result.startswith(b"ISO-10303-21;")
    machine.run("/opt/meshhub/bin/meshhub doctor")


def test_only_keys_of_the_database_of_the_service_are_accepted(
    machine: Machine, key: str, settings: Callable[..., None]
) -> None:
    assert read_plan(machine, key) == "pro"
    other = machine.run("/opt/meshhub/bin/meshhub keys create --plan pro --label acme").strip()
    assert read_plan(machine, other) == 401
    settings(MESHHUB_DATABASE_URL="sqlite:////var/lib/meshhub/other.sqlite3")
    other = run_meshhub(machine, "meshhub keys create --plan pro --label acme").strip()
    machine.wait_for(f"{SERVICE}/health/ready")
    assert read_plan(machine, other) == "pro"
    assert read_plan(machine, key) == 401


def test_the_commands_for_keys(machine: Machine, key: str) -> None:
    create, show = read_commands("keys.md", "Manage API keys")
    created = run_meshhub(machine, create).strip()
    assert read_plan(machine, created) == "pro"
    key_id = read_id(created)
    assert key_id in run_meshhub(machine, show)
    rotate, revoke = (re.sub(r"mh_\w+", key_id, command) for command in read_commands("keys.md", "Manage API keys", 1))
    rotated = run_meshhub(machine, rotate).strip().splitlines()[-1]
    assert [read_plan(machine, name) for name in (created, rotated)] == ["pro", "pro"]
    run_meshhub(machine, revoke)
    assert [read_plan(machine, name) for name in (created, rotated)] == [401, "pro"]
    (publish,) = read_commands("keys.md", "Manage API keys", 2)
    published = run_meshhub(machine, publish).strip()
    assert read_plan(machine, published, "--header", "Origin: https://shop.example") == "pro"


def test_upgrade_and_roll_back(machine: Machine, key: str) -> None:
    *upgrade, roll_back = read_commands("deploy.md", "Upgrade and roll back")
    assert find_folder(machine) == "/opt/meshhub-1"
    machine.follow([command.replace("TAG", NEXT_VERSION) for command in upgrade])
    assert find_folder(machine) == "/opt/meshhub-2"
    assert NEXT_VERSION[1:] in machine.run("/opt/meshhub/bin/meshhub --version")
    assert read_plan(machine, key) == "pro"
    assert is_3mf(convert(machine, SERVICE, "3mf"))
    machine.follow([roll_back])
    machine.wait_for(f"{SERVICE}/health/ready")
    assert find_folder(machine) == "/opt/meshhub-1"
    assert read_plan(machine, key) == "pro"


@pytest.mark.parametrize("is_new", [False, True], ids=["same-machine", "new-machine"])
def test_back_up_and_restore(machine: Machine, key: str, is_new: bool) -> None:
    kept = run_meshhub(machine, "meshhub keys create --plan pro --label kept").strip()
    header = ("--header", f"X-Api-Key: {kept}")
    job = submit(machine, SERVICE, *header)
    wait_until(lambda: json.loads(machine.request(job, *header)[1])["state"] == "done")

    # in one shell, because the first line sets a variable
    machine.run(*read_commands("back-up.md", "Back up"), 'echo "$backup" > /backup/last')
    backup = machine.path("/backup/last").read_text().strip()
    run_meshhub(machine, f"meshhub keys revoke {read_id(kept)}")
    assert read_plan(machine, kept) == 401
    assert machine.request(job, "--request", "DELETE", "--header", f"X-Api-Key: {key}")[0] in (204, 404)

    machine.run("systemctl stop meshhub")
    if is_new:
        machine.run("rm -r /var/lib/private/meshhub /var/lib/meshhub", "systemctl start meshhub")
        machine.wait_for(f"{SERVICE}/health/ready")
        assert read_plan(machine, kept) == 401
        machine.run("systemctl stop meshhub")
    restore = read_commands("back-up.md", "Restore")
    machine.run(*[command.replace("/backup/2026-10-01-030000", shlex.quote(backup)) for command in restore])
    machine.run("systemctl start meshhub")
    machine.wait_for(f"{SERVICE}/health/ready")
    assert [read_plan(machine, name) for name in (kept, key)] == ["pro", "pro"]
    status, _ = machine.request(f"{job}/result", *header, "--output", "/root/result")
    assert status == 200 and is_3mf(machine.path("/root/result").read_bytes())
    export = run_meshhub(machine, "meshhub usage export --since 2026-01-01")
    assert job.rpartition("/")[2] in export


@pytest.fixture
def socket(machine: Machine, settings: Callable[..., None]) -> Iterator[Callable[[], None]]:
    """Return a function that lets systemd listen, with `unix` in `trusted_proxies`."""
    (unit,) = read_blocks("operate.md", "Sockets", "ini")
    machine.write(re.findall(r"^# (/etc/\S+)$", unit, re.M)[0], unit)

    def enable() -> None:
        settings(MESHHUB_TRUSTED_PROXIES="unix")
        machine.run("systemctl daemon-reload", "systemctl stop meshhub")
        machine.run(read_inline("operate.md", "Sockets", "systemctl enable"), "systemctl start meshhub")

    yield enable
    machine.run(read_inline("operate.md", "Sockets", "systemctl disable"))
    machine.wait_for(f"{SERVICE}/health/ready")


def test_requests_wait_in_the_socket(machine: Machine, key: str, socket: Callable[[], None]) -> None:
    socket()
    health = read_inline("deploy.md", "Upgrade and roll back", "curl --unix-socket")
    machine.wait_for("http://localhost/health/ready", "--unix-socket", "/run/meshhub.sock")
    assert machine.run(health)
    # connections to the port are refused, and those to the socket wait while the service restarts
    assert machine.request(f"{SERVICE}/health/ready")[0] == 0
    machine.run(
        "systemctl restart --no-block meshhub", "curl --fail --unix-socket /run/meshhub.sock http://localhost/plan"
    )


@pytest.mark.usefixtures("certificate")
def test_nginx_reaches_the_socket(machine: Machine, key: str, socket: Callable[[], None]) -> None:
    socket()
    proxy_pass = read_inline("operate.md", "Sockets", "proxy_pass")
    locations, *_ = read_blocks("proxy.md", "Run behind a proxy", "nginx")
    serve_by_nginx(machine, re.sub(r"proxy_pass .*?;", proxy_pass, locations))
    check_proxy(machine, key)


@pytest.mark.usefixtures("certificate")
def test_nginx_reaches_the_port(machine: Machine, key: str, settings: Callable[..., None]) -> None:
    locations, *_ = read_blocks("proxy.md", "Run behind a proxy", "nginx")
    serve_by_nginx(machine, locations)
    # without the setting, a service on a loopback address rejects public host names
    assert machine.request(f"https://{HOST}/plan", *resolve())[0] == 421
    name, _, value = read_inline("proxy.md", "Run behind a proxy", "MESHHUB_TRUSTED_PROXIES").partition("=")
    settings(**{name: value})
    check_proxy(machine, key)


@pytest.mark.usefixtures("certificate")
def test_nginx_serves_below_a_path(machine: Machine, key: str, settings: Callable[..., None]) -> None:
    locations, below = read_blocks("proxy.md", "Run behind a proxy", "nginx")
    lines = re.findall(r"^    (?!proxy_pass).*\n", locations, re.M)
    serve_by_nginx(machine, below.replace("    # and the lines above\n", "".join(lines)))
    variables = ("MESHHUB_ROOT_PATH", "MESHHUB_BASE_URL", "MESHHUB_TRUSTED_PROXIES")
    settings(**dict(read_inline("proxy.md", "Run behind a proxy", name).split("=") for name in variables))
    check_proxy(machine, key, "/meshhub")


def check_proxy(machine: Machine, key: str, path: str = "") -> None:
    """Convert through nginx, and check that the service sees the addresses of callers."""
    service = f"https://{HOST}{path}"
    machine.wait_for(f"{service}/health/ready", *resolve())
    assert is_3mf(convert(machine, service, "3mf", *resolve()))
    assert read_plan(machine, key, *resolve(), service=service) == "pro"
    assert machine.request(f"{service}/metrics", *resolve())[0] == 404

    def remaining(address: str) -> int:
        _, body = machine.request(f"{service}/plan", *resolve(), "--interface", address)
        number: int = json.loads(body)["usage"]["requests_remaining"]
        return number

    first = remaining("127.0.0.3")
    assert remaining("127.0.0.3") == first - 1
    assert remaining("127.0.0.4") == first
