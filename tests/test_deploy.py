"""Files for running the service: systemd unit, container image, nginx configuration."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from meshhub.cli import root
from meshhub.service.settings import FILE, NAMES, PREFIX, Settings

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "deploy" / "meshhub.service"
WORKER_UNIT = ROOT / "deploy" / "meshhub-work.service"
UNITS = (UNIT, WORKER_UNIT)
GUIDES = ROOT / "docs" / "how-to"
IMAGE = ROOT / "Dockerfile"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_is_hardened(unit: Path) -> None:
    result = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unrecognized option" in result.stderr or "Unknown" in result.stderr:
        pytest.skip("this systemd-analyze judges no files")
    assert result.returncode == 0, result.stdout[-500:] + result.stderr


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_limits_the_memory_of_the_whole_service(unit: Path) -> None:
    (limit,) = re.findall(r"^MemoryMax=(\d+)%$", unit.read_text(encoding="utf-8"), re.M)
    assert 50 <= int(limit) < 100


def test_deployment_files_use_only_known_settings() -> None:
    variables = {FILE, *(PREFIX + name.upper() for name in NAMES)}
    for path in (*UNITS, IMAGE, GUIDES / "cluster.md", GUIDES / "deploy.md"):
        names = set(re.findall(r"\bMESHHUB_[A-Z_]+", path.read_text(encoding="utf-8")))
        assert names
        assert names <= variables


def test_keys_are_created_in_the_environment_of_the_service() -> None:
    comment, _, unit = UNIT.read_text(encoding="utf-8").partition("\n[Unit]\n")
    (in_guide,) = re.findall(r"^\$ (systemd-run .*)$", (GUIDES / "deploy.md").read_text(encoding="utf-8"), re.M)
    command = re.sub(r"[\\#\s]+", " ", comment[comment.index("systemd-run") :]).strip()
    assert command == in_guide
    assert "keys create" in command
    shared = (
        "EnvironmentFile Environment=XDG_DATA_HOME Environment=XDG_CONFIG_HOME User StateDirectory StateDirectoryMode"
    )
    for name in (f"{each}=" for each in shared.split()):
        (line,) = [line for line in unit.splitlines() if line.startswith(name)]
        assert f"-p {line} " in command


@pytest.mark.large
@pytest.mark.skipif(shutil.which("systemd-run") is None, reason="systemd is not installed")
@pytest.mark.parametrize("lacks", ["", "EnvironmentFile"])
def test_the_service_accepts_a_key_only_if_it_was_created_as_the_guide_says(tmp_path: Path, lacks: str) -> None:
    unit, variables = UNIT.read_text(encoding="utf-8"), tmp_path / "environment"
    variables.write_text(f"MESHHUB_DATABASE_URL=sqlite:///{tmp_path}/configured.sqlite3\n")
    (command,) = re.findall(r"^\$ systemd-run (.*)$", (GUIDES / "deploy.md").read_text(encoding="utf-8"), re.M)
    arguments = command.partition("/opt/meshhub/bin/meshhub ")[2].split()
    key = run_meshhub(read_environment(command.replace(lacks or " ", " "), variables, tmp_path), *arguments)
    known = run_meshhub(read_environment(unit, variables, tmp_path), "keys", "list", "--json")
    assert bool(json.loads(known)) == (lacks == "")
    assert key.startswith("mh_")


def read_environment(text: str, variables: Path, folder: Path) -> dict[str, str]:
    """Return the variables that systemd sets for a unit or a command, with folders below another one."""
    found = dict(pair.split("=", 1) for pair in re.findall(r"\bEnvironment=(\S+)", text))
    if "EnvironmentFile=-/etc/meshhub/environment" in text:
        found |= dict(line.split("=", 1) for line in variables.read_text().splitlines())
    return {name: re.sub(r"^/var", f"{folder}/var", value) for name, value in found.items()}


def run_meshhub(variables: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "meshhub", *arguments]
    result = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True, timeout=300
    )
    return result.stdout


def test_the_unit_of_a_worker_differs_from_that_of_the_service_only_where_it_must() -> None:
    lines = [set(path.read_text(encoding="utf-8").partition("\n[Unit]\n")[2].splitlines()) for path in UNITS]
    names = {line.partition("=")[0] for line in lines[0] ^ lines[1] if not line.startswith("#")}
    assert names == {
        "Description", "Environment", "ExecStart", "Restart", "StateDirectory", "TimeoutStopSec", "User",
    }  # fmt: skip
    programs = re.findall(r"^ExecStart=/opt/meshhub/bin/meshhub (\S+)", "\n".join(sorted(lines[1])), re.M)
    assert [root.get_command(click.Context(root), name) is not None for name in programs] == [True]


def test_the_guide_to_three_machines_is_complete() -> None:
    guide = (GUIDES / "cluster.md").read_text(encoding="utf-8")
    variables, drop_in = re.findall(r"^```ini\n(.*?)^```", guide, re.M | re.S)
    settings = Settings.from_environment(dict(line.split("=", 1) for line in variables.splitlines()))
    assert settings.is_cluster
    assert settings.jobs_storage_url
    assert settings.worker_address
    (upstream,) = re.findall(r"^```nginx\n(.*?)^```", guide, re.M | re.S)
    servers = re.findall(r"server (\S+):8000;", upstream)
    hosts = [re.findall(r"--host (\S+) --port 8000", text)[0] for text in (UNIT.read_text(encoding="utf-8"), drop_in)]
    assert servers == hosts
    assert "10.0.0.1" in settings.trusted_proxies


@pytest.mark.skipif(shutil.which("nft") is None or os.getuid() != 0, reason="nftables needs the rights of root")
def test_the_firewall_of_the_guide_is_valid() -> None:
    rules = re.findall(r"^\$ (nft .*)$", (GUIDES / "cluster.md").read_text(encoding="utf-8"), re.M)
    subprocess.run(["unshare", "--net", "sh", "-ec", "\n".join(rules)], check=True, timeout=60)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_accepts_the_documented_configuration(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "how-to" / "proxy.md").read_text(encoding="utf-8")
    whole, part = re.findall(r"^```nginx\n(.*?)^```", guide, re.M | re.S)
    locations = whole + part
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/log; events {{}} http {{ access_log off;"
        f"server {{ listen 127.0.0.1:8999; {locations} }} }}"
    )
    command = ["nginx", "-t", "-e", str(tmp_path / "log"), "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_stop_timeout_of_the_unit_exceeds_the_shutdown_time() -> None:
    patience = Settings().shutdown_seconds + 10
    for path, pattern in (
        (UNIT, r"TimeoutStopSec=(\d+)"),
        (WORKER_UNIT, r"TimeoutStopSec=(\d+)"),
        (IMAGE, r"--stop-timeout (\d+)"),
    ):
        (seconds,) = re.findall(pattern, path.read_text(encoding="utf-8"))
        assert int(seconds) >= patience


def test_the_image_copies_existing_files_and_runs_without_root() -> None:
    text = IMAGE.read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for line in re.findall(r"^COPY (?!--from)(.*)", text, re.M):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists()
            assert f"!{source}" in ignored
    assert text.index("USER meshhub") < text.index('CMD ["meshhub"')
    assert "/health/ready" in text[text.index("HEALTHCHECK") :]
