"""Settings from a file and from the environment; `meshhub config`, which shows them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from meshhub import Registry
from meshhub.errors import InvalidSettings
from meshhub.service import settings
from meshhub.service.machine import cores, memory
from meshhub.service.settings import FILE as VARIABLE
from meshhub.service.settings import NAMES, PREFIX, Settings, load

DOCS = Path(__file__).parents[1] / "docs"

FILE = """
workers = 3
trusted_proxies = ["10.0.0.0/8", "::1"]
shutdown_seconds = 7
database_url = "postgresql://meshhub:ge:hei@m@db.example/keys?sslpassword=geheim&sslmode=require"

[plans.free]
max_batch_files = 5
requests_per_minute = "none"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "meshhub.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def write_settings(path: Path, text: str) -> dict[str, str]:
    path.write_text(text, encoding="utf-8")
    return {"MESHHUB_SETTINGS": str(path)}


def test_a_limit_whose_name_ends_like_another_is_set() -> None:
    settings = load({"MESHHUB_PLAN_FREE_JOB_REQUESTS_PER_MINUTE": "600"}).settings
    assert settings.plan_limits == {"free": {"job_requests_per_minute": 600}}


@pytest.mark.parametrize("name", ["worker_address", "jobs_storage_url"])
def test_malformed_addresses_of_a_cluster_are_rejected(name: str) -> None:
    with pytest.raises(InvalidSettings, match=f"{name}: 'no address' is not an address like"):
        Settings(**{name: "no address"})


def test_variables_take_precedence_over_the_file(file: Path) -> None:
    loaded = load(
        {
            "MESHHUB_SETTINGS": str(file),
            "MESHHUB_WORKERS": "4",
            "MESHHUB_QUEUE": "",
            "MESHHUB_PLAN_FREE_MAX_BATCH_FILES": "6",
            "MESHHUB_PLAN_PRO_MAX_FILE_BYTES": "none",
        }
    )
    settings = loaded.settings
    assert (settings.workers, settings.queue, settings.shutdown_seconds) == (4, Settings().queue, 7.0)
    assert settings.trusted_proxies == ("10.0.0.0/8", "::1")
    assert settings.plan_limits == {
        "free": {"max_batch_files": 6, "requests_per_minute": None},
        "pro": {"max_file_bytes": None},
    }
    assert loaded.origins == {
        "workers": "environment MESHHUB_WORKERS",
        "trusted_proxies": f"file {file}:3",
        "shutdown_seconds": f"file {file}:4",
        "database_url": f"file {file}:5",
        "plans.free.max_batch_files": "environment MESHHUB_PLAN_FREE_MAX_BATCH_FILES",
        "plans.free.requests_per_minute": f"file {file}:9",
        "plans.pro.max_file_bytes": "environment MESHHUB_PLAN_PRO_MAX_FILE_BYTES",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wrkers = 3", "did you mean workers"),
        ("zzz = 3", "unknown setting 'zzz' "),
        ("[plan.free]\nmax_batch_files = 3", "did you mean plans"),
        ("[plans.free]\nmax_batch_file = 3", "did you mean max_batch_files"),
        ("[plans.free]\nmax_batch_files = true", "must be a number above 0"),
        ("[plans.free]\nmax_batch_files = 0", "must be a number above 0"),
        ("[plans.free]\nmax_file_bytes = " + "9" * 400, "must be a number above 0"),
        ("plans = 3", "must be tables"),
        ("workers = 'many'", "workers cannot be used"),
        ("workers = '3'", "workers cannot be used"),
        ("workers = 0", "workers must be a number of at least 1"),
        ("log = 'xml'", "log cannot be used"),
        ("workers = ", "cannot be read"),
        ("plan_limits = 3", "unknown setting 'plan_limits'"),
    ],
)
def test_invalid_files_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "meshhub.toml"
    with pytest.raises(InvalidSettings, match=message) as caught:
        load(write_settings(path, text))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("MESHHUB_WORKRES", "did you mean MESHHUB_WORKERS"),
        ("MESHHUB_TRUSTED_PROXY", "did you mean MESHHUB_TRUSTED_PROXIES"),
        ("MESHHUB_PLAN_FREE_MAX_BATCH_FILE", "did you mean MESHHUB_PLAN_FREE_MAX_BATCH_FILES"),
    ],
)
def test_misspelled_variables_are_rejected_with_the_nearest_name(variable: str, message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        load({variable: "3"})


def test_unrelated_variables_are_ignored() -> None:
    """Container platforms set such variables for a service of this name."""
    assert load({"MESHHUB_PORT": "tcp://10.0.0.1:80", "MESHHUB_SERVICE_HOST": "10.0.0.1"}).settings == Settings()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# workers = 1\n\nworkers = 0", 3),
        ("log = 'text'\nqueue = [\n]\n", 2),
        ("queue = 3\n[ plans . free ]\n# a remark\nmax_batch_files = 'x'", 4),
        ('[plans."free"]\nmax_batch_files = 0', 2),
        ("plans.free.max_batch_files = 0", 1),
        ("queue = 1\n[plans]\nfree = { max_batch_files = 0 }", 3),
        ("workers = 3\n[[nonsense]]\na = 1", None),
        ("workers = 3\nworkers = 4\n", 2),
    ],
)
def test_errors_name_the_line_of_the_file(tmp_path: Path, text: str, line: int | None) -> None:
    path = tmp_path / "meshhub.toml"
    with pytest.raises(InvalidSettings) as caught:
        load(write_settings(path, text))
    message = str(caught.value)
    assert str(path) in message
    if line is not None:
        assert f"{path}:{line})" in message or f"line {line}," in message


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot be read: No such file"):
        load({"MESHHUB_SETTINGS": str(tmp_path / "none.toml")})


def test_the_error_of_a_wrong_type_hides_secrets(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load(write_settings(tmp_path / "meshhub.toml", 'database_url = ["geheim"]'))
    assert "geheim" not in str(caught.value)


def test_the_memory_of_a_conversion_follows_that_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "system.slice" / "meshhub.service"
    group.mkdir(parents=True)
    membership = tmp_path / "membership"
    membership.write_text("0::/system.slice/meshhub.service\n")
    (group / "memory.max").write_text("max\n")
    machine = memory(tmp_path, membership)
    assert machine is not None
    (group.parent / "memory.max").write_text(f"{4 << 30}\n")
    assert memory(tmp_path, membership) == min(machine, 4 << 30)
    (group / "memory.max").write_text(f"{2 << 30}\n")
    assert memory(tmp_path, membership) == min(machine, 2 << 30)

    # two for all, one for a new caller, two beside long ones, one for keys
    for total, expected in ((8 << 30, 1 << 30), (64 << 30, 6 << 30), (1 << 30, 512 << 20), (None, 6 << 30)):
        monkeypatch.setattr(settings, "memory", lambda total=total: total)
        assert Settings(workers=2).memory_bytes == expected
    assert Settings(workers=2, conversion_memory_bytes=128 << 20).memory_bytes == 128 << 20


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("150000 100000\n", 2),
        ("50000 100000\n", 1),
        ("100 100000\n", 1),
        ("max 100000\n", 999),
        ("nonsense", 999),
        (None, 999),
    ],
)
def test_workers_follow_the_cpu_limit_of_a_container(tmp_path: Path, text: str | None, most: int) -> None:
    quota = tmp_path / "cpu.max"
    if text is not None:
        quota.write_text(text)
    assert 1 <= cores(quota) <= most
    if most == 999:
        assert cores(quota) == cores(tmp_path / "none") >= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shutdown_seconds = nan", "shutdown_seconds must be a number"),
        ("drain_seconds = inf", "drain_seconds must be a number"),
        ("workers = 100000", "at most 1000"),
        ("conversion_memory_bytes = 6", "conversion_memory_bytes must be a number of at least 67108864"),
        ("connections_per_address = 0", "connections_per_address must be a number of at least 1"),
    ],
)
def test_implausible_numbers_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        load(write_settings(tmp_path / "meshhub.toml", text))


NUMBERS = [name for name in NAMES if {int, float} & {settings._TYPES[name], *get_args(settings._TYPES[name])}]


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_is_negative(name: str) -> None:
    with pytest.raises(InvalidSettings, match=f"{name} must be a number of at least"):
        load({PREFIX + name.upper(): "-1"})


INVALID = {
    "MESHHUB_FREE_PLAN": ("no-such-plan", "free_plan: unknown plan 'no-such-plan'"),
    "MESHHUB_RATE_LIMIT_URL": ("pigeon://u:geheim@x", "rate_limit_url"),
    "MESHHUB_DATABASE_URL": ("pigeon://u:geheim@x/db", "database_url"),
    "MESHHUB_TEMPORARY_FOLDER": ("/nowhere/at-all", "temporary_folder: '/nowhere/at-all' is not a writable folder"),
    "MESHHUB_JOBS_FOLDER": (__file__, f"jobs_folder: {__file__!r} is not a folder"),
    "MESHHUB_PLAN_NO_SUCH_PLAN_MAX_BATCH_FILES": ("3", "plans.no-such-plan: unknown plan 'no-such-plan'"),
}
"""Invalid values by variable, with the messages."""

SERVE = """
import json, os, sys
from meshhub.cli import main
sys.argv = ["meshhub", "serve", "--port", "0"]
for variable, (value, _) in json.load(sys.stdin).items():
    os.environ[variable] = value
    try:
        main()
    except SystemExit as end:
        print(end.code, file=sys.stderr)
    del os.environ[variable]
"""
"""Program that starts the service with each of them, because its imports take a second."""


def test_a_service_with_invalid_settings_does_not_start() -> None:
    pytest.importorskip("litestar", reason="the service needs the extra http")
    result = subprocess.run(
        [sys.executable, "-c", SERVE],
        input=json.dumps(INVALID),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    lines = result.stderr.splitlines()
    assert lines[1::2] == ["2"] * len(INVALID)
    for line, (variable, (_, message)) in zip(lines[::2], INVALID.items(), strict=True):
        assert message in line
        assert f"(environment {variable})" in line
    assert "geheim" not in result.stderr


def test_config_shows_the_defaults() -> None:
    pytest.importorskip("sqlalchemy", reason="keys need the extra http")
    environment = {name: "" for name in os.environ if name.startswith(PREFIX)}
    payload = json.loads(run_config("--json", XDG_DATA_HOME="/data", **environment).stdout)
    assert payload["workers"] == {"value": cores(), "origin": "default"}
    assert payload["batch_workers"]["value"] == max(1, cores() // 2)
    assert payload["database_url"] == {"value": "sqlite:////data/meshhub/meshhub.sqlite3", "origin": "default"}
    assert Path(payload["temporary_folder"]["value"]).is_dir()


def run_config(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "meshhub", "config", *arguments],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_config_shows_the_effective_settings_and_their_origin(file: Path) -> None:
    payload = json.loads(run_config("--json", MESHHUB_SETTINGS=str(file), MESHHUB_QUEUE="9").stdout)
    assert payload["workers"] == {"value": 3, "origin": f"file {file}:2"}
    assert payload["queue"] == {"value": 9, "origin": "environment MESHHUB_QUEUE"}
    assert payload["drain_seconds"] == {"value": 5.0, "origin": "default"}
    assert payload["plans.free.max_batch_files"] == {"value": 5, "origin": f"file {file}:8"}
    assert payload["plans.free.requests_per_minute"] == {"value": None, "origin": f"file {file}:9"}
    assert payload["plans.free.max_file_bytes"] == {"value": 20 << 20, "origin": "default"}
    result = run_config("--show", MESHHUB_SETTINGS=str(file), MESHHUB_RATE_LIMIT_URL="redis://:geheim@cache:6379/1")
    assert result.returncode == 0, result.stderr
    assert "hei" not in result.stdout
    assert re.search(r"^plans\.free\.requests_per_minute .*meshhub\.toml:9 +none$", result.stdout, re.M)
    assert "postgresql://meshhub:***@db.example/keys?sslpassword=***&sslmode=require" in result.stdout
    assert "redis://:***@cache:6379/1" in result.stdout
    assert re.search(r"^trusted_proxies .*meshhub\.toml:3 +10\.0\.0\.0/8, ::1$", result.stdout, re.M)


def test_config_rejects_invalid_settings(tmp_path: Path) -> None:
    for text, message in (("wrkers = 3", "workers"), ("[plans.fre]\nmax_batch_files = 3", "did you mean free")):
        result = run_config(**write_settings(tmp_path / "meshhub.toml", text))
        assert result.returncode == 2
        assert message in result.stderr


def test_every_setting_is_documented_with_its_default() -> None:
    rows = dict(
        re.findall(
            r"^\| `(MESHHUB_[A-Z_]+)` \| (.*?) \|",
            (DOCS / "reference" / "settings.md").read_text(encoding="utf-8"),
            re.M,
        )
    )
    assert set(rows) == {VARIABLE, *(PREFIX + name.upper() for name in NAMES)}
    for name in NAMES:
        value = getattr(Settings(), name)
        if value:
            assert rows[PREFIX + name.upper()].strip("`") == (f"{value:g}" if isinstance(value, float) else str(value))


def test_the_documented_file_is_valid(tmp_path: Path) -> None:
    (text,) = re.findall(
        r"^```toml\n(.*?)^```", (DOCS / "how-to" / "operate.md").read_text(encoding="utf-8"), re.M | re.S
    )
    assert load(write_settings(tmp_path / "meshhub.toml", text)).settings.workers == 8


def test_defaults_suit_the_most_generous_plan() -> None:
    """A rejected upload is read to its end, and a proxy waits as long as a request may take."""
    limits = [plan.limits for plan in Registry(entry_points=False).plans.values()]
    assert Settings().drain_bytes > max(limit.max_file_bytes or 0 for limit in limits)
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s", (DOCS / "how-to/proxy.md").read_text())
    assert int(seconds) == max(limit.request_timeout_seconds or 0 for limit in limits)


def test_keys_are_in_the_configured_database(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="keys need the extra http")
    environment = write_settings(tmp_path / "meshhub.toml", f'database_url = "sqlite:///{tmp_path}/there.db"')
    command = [sys.executable, "-m", "meshhub", "keys", "create", "--plan", "pro"]
    subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True)
    assert (tmp_path / "there.db").is_file()


@pytest.mark.parametrize("proxy", ["0.0.0.0/0", "::/0", "10.0.0.1/0"])
def test_trusting_every_address_is_rejected(proxy: str) -> None:
    with pytest.raises(InvalidSettings, match=f"trusted_proxies: '{re.escape(proxy)}' trusts every caller"):
        load({"MESHHUB_TRUSTED_PROXIES": f"10.0.0.0/8, {proxy}"})
