"""Files for running the service: systemd unit, container image, nginx configuration."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from meshhub.service.settings import FILE, NAMES, PREFIX, Settings

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "deploy" / "meshhub.service"
IMAGE = ROOT / "Dockerfile"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_is_hardened() -> None:
    result = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(UNIT)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unrecognized option" in result.stderr or "Unknown" in result.stderr:
        pytest.skip("this systemd-analyze judges no files")
    assert result.returncode == 0, result.stdout[-500:] + result.stderr


def test_the_unit_limits_the_memory_of_the_whole_service() -> None:
    (limit,) = re.findall(r"^MemoryMax=(\d+)%$", UNIT.read_text(encoding="utf-8"), re.M)
    assert 50 <= int(limit) < 100


def test_deployment_files_use_only_known_settings() -> None:
    variables = {FILE, *(PREFIX + name.upper() for name in NAMES)}
    for path in (UNIT, IMAGE):
        names = set(re.findall(r"\bMESHHUB_[A-Z_]+", path.read_text(encoding="utf-8")))
        assert names
        assert names <= variables


def test_keys_are_created_in_the_environment_of_the_service() -> None:
    comment, _, unit = UNIT.read_text(encoding="utf-8").partition("\n[Unit]\n")
    command = comment[comment.index("systemd-run") :]
    assert "keys create" in command
    for name in ("EnvironmentFile=", "Environment=XDG_DATA_HOME=", "User=", "StateDirectory="):
        (line,) = [line for line in unit.splitlines() if line.startswith(name)]
        assert f"-p {line} " in command.replace("\\", "")


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
    for path, pattern in ((UNIT, r"TimeoutStopSec=(\d+)"), (IMAGE, r"--stop-timeout (\d+)")):
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
