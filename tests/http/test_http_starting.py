"""`meshhub serve` that ends before it serves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from meshhub.cli import root
from meshhub.service.settings import load
from signals import reset_interrupts

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals"),
]

CLI = "import sys; sys.argv = ['meshhub', 'serve', '--port', '0']; from meshhub.cli import main; main()"


@pytest.mark.parametrize(("number", "delay"), [(signal.SIGINT, 0), (signal.SIGINT, 0.5), (signal.SIGTERM, 0.2)])
@pytest.mark.large
def test_a_signal_during_the_start_of_workers_logs_no_error(
    tmp_path: Path, number: signal.Signals, delay: float
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "meshhub", "serve", "--port", "0"],
        stderr=subprocess.PIPE,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path), "MESHHUB_TEMPORARY_FOLDER": str(tmp_path)},
        text=True,
        start_new_session=True,
        preexec_fn=reset_interrupts,
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert re.search(r"http://127\.0\.0\.1:\d+", first), first + process.stderr.read()
        time.sleep(delay)
        # a terminal sends SIGINT to all processes of the group
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        _, output = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "Traceback" not in output
    assert "ERROR" not in output
    assert "stopped" in output


@pytest.mark.parametrize(("number", "status"), [("SIGINT", 130), ("SIGTERM", 0)])
def test_a_signal_before_the_service_listens_ends_it(number: str, status: int) -> None:
    code = (
        "import signal, sys, types\n"
        f"stop = lambda host, port, **_: signal.raise_signal(signal.{number})\n"
        "sys.modules['meshhub.http'] = types.SimpleNamespace(serve=stop)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + CLI],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=reset_interrupts,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert "rror" not in done.stderr


def test_a_missing_extra_ends_with_the_status_of_a_missing_dependency() -> None:
    code = (
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'litestar' else real(name, *a)\n"
    )
    done = subprocess.run([sys.executable, "-c", code + CLI], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 7
    assert 'litestar, which is not installed; pip install "' in done.stderr
    assert done.stderr.endswith(" [missing_dependency]\n")


@pytest.mark.parametrize(("arguments", "count"), [((), 3), (("--workers", "2"), 2)])
def test_the_flag_overrides_the_setting_of_workers(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], count: int
) -> None:
    monkeypatch.setenv("MESHHUB_WORKERS", "3")
    counts: list[int] = []
    monkeypatch.setattr("meshhub.http.serve", lambda *_, **__: counts.append(load().settings.workers))
    assert CliRunner().invoke(root, ["serve", *arguments]).exit_code == 0
    assert counts == [count]


@pytest.mark.parametrize("count", ["0", "1001", "many"])
def test_a_wrong_number_of_workers_is_an_error(count: str) -> None:
    command = [sys.executable, "-m", "meshhub", "serve", "--port", "0", "--workers", count]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "--workers" in done.stderr
