"""Hooks of third parties in the service: a misbehaving hook does not affect other callers."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

if sys.platform != "linux":
    pytest.skip("the attacks and the checks use Linux interfaces", allow_module_level=True)

from distributions import install
from hostile_plugin import GRANTS, HOOK_ATTACKS, HOOKS
from http_serving import Running, check_error, serving, zip_files
from meshhub.engine.isolated import Isolated
from meshhub.pipeline.hooks import Hooks
from neighbors import Neighbor, sphere_stl
from waiting import wait_until

pytestmark = pytest.mark.once

ATTACKS = ("hang", "busy-loop", "segfault", "exit-at-once", "print-without-end", "fork-children", "daemonize-and-hang")
"""Attacks of a sniffer, which runs in a worker."""

STATUSES = {"sniff": 415, "review": 500, "grants": 200, "finished": 200}
"""By hook: the status for a caller whose hook hangs, raises an exception or ends the process."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path / "installed", "meshhub-hooked", hooked="hostile_plugin:HostileHooks")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    return tmp_path


@pytest.fixture
def running(folder: Path, engine: Isolated) -> Iterator[Running]:
    with serving(folder, {"workers": 4}, engine, hooks=Hooks(sniff_s=1, hook_s=1, has_details=False)) as server:
        yield server


def attack(running: Running, folder: Path, hook: str, name: str, key: str = "") -> Any:
    """Let a hook misbehave for one request."""
    how = str(folder / name)
    if hook == "grants":
        record = running.keys.check(key)
        (folder / "installed" / GRANTS).write_text(f"{record.id} {how}\n")
    headers = {"X-Api-Key": key} if key else {}
    content = f"hooked {how}" if hook == "sniff" else "hooked"
    options = {f"hooked_{hook}": how} if hook in ("review", "finished") else {}
    return running.post("/convert", {"file": ("nameless", content)}, {"target": "stl", **options}, headers=headers)


def new_key(running: Running) -> str:
    return running.keys.create("pro", label="hooks")[0]


@pytest.mark.parametrize("hook", HOOKS)
def test_other_callers_of_a_misbehaving_hook_are_answered(running: Running, folder: Path, hook: str) -> None:
    neighbors = [
        Neighbor(running.url, new_key(running), [(f"{number}.stl", sphere_stl(number))]) for number in range(3)
    ]
    enough = threading.Event()
    with ThreadPoolExecutor(3) as threads:
        sessions = [threads.submit(neighbor.live, enough) for neighbor in neighbors]
        try:
            for name in ATTACKS if hook == "sniff" else HOOK_ATTACKS:
                answer = attack(running, folder, hook, name, new_key(running))
                expected = 200 if name == "fork-children" else STATUSES[hook]
                assert answer.status_code == expected, (name, answer.text)
        finally:
            enough.set()
        for session in sessions:
            session.result()
    assert [text for neighbor in neighbors for text in neighbor.wrong] == []
    assert all(neighbor.right for neighbor in neighbors)
    assert running.get("/health/ready").json() == {"status": "ready"}


def test_a_sniffer_that_hangs_is_not_called_again_for_the_same_archive(running: Running, folder: Path) -> None:
    archive = zip_files({name: f"hooked {folder / name}".encode() for name in ("busy-loop", "witness")})
    check_error(running.batch(archive, "stl"), 415, "unsupported_format")
    assert not (folder / "witness").exists()


def test_slow_grants_of_one_caller_delay_nobody_else(running: Running, folder: Path) -> None:
    slow, other = new_key(running), new_key(running)
    (folder / "installed" / GRANTS).write_text(f"{running.keys.check(slow).id} {folder / 'rest'}\n")

    def ask(key: str) -> None:
        assert httpx.get(f"{running.url}/plan", headers={"X-Api-Key": key}, timeout=300).status_code == 200

    ask(other)
    with ThreadPoolExecutor(40) as threads:
        flood = [threads.submit(ask, slow) for _ in range(40)]
        wait_until(lambda: any(request.done() for request in flood))
        ask(other)
        assert sum(request.done() for request in flood) < 30, "the other caller waited for its turn behind them all"
        for request in flood:
            request.result()


def is_listening(url: str) -> bool:
    # a service that is ending may close a connection that it has just accepted
    with contextlib.suppress(httpx.NetworkError, httpx.RemoteProtocolError):
        httpx.get(f"{url}/health/live", timeout=300)
        return True
    return False


PROGRAM = "from meshhub.cli import main; main()"


@pytest.fixture
def program(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str, Path]]:
    """`meshhub serve` with plug-ins that misbehave as they are imported, and in hooks."""
    installed = folder / "installed"
    codes = {"prints": "import os\nprint('printed')\nos.write(1, b'written')", "quits": "raise SystemExit(0)"}
    for name, code in codes.items():
        (installed / f"{name}.py").write_text(code)
        install(installed, f"meshhub-{name}", **{name: name})
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(installed), *sys.path]),
        "MESHHUB_DATABASE_URL": f"sqlite:///{folder / 'keys.sqlite3'}",
        "MESHHUB_TEMPORARY_FOLDER": str(folder),
        "TMPDIR": str(folder),
    }
    log = folder / "log"
    with log.open("wb") as stderr, (folder / "printed").open("wb") as stdout:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "serve", "--port", "0"], env=environment, stdout=stdout, stderr=stderr
        )
    try:
        wait_until(lambda: "serves http" in log.read_text() or process.poll() is not None)
        match = re.search(r"http://[\d.:]+", log.read_text())
        assert match, log.read_text()
        yield process, match[0], folder
    finally:
        process.kill()
        process.wait()


def test_the_service_survives_its_plugins(program: tuple[subprocess.Popen[bytes], str, Path]) -> None:
    process, url, folder = program
    with httpx.Client(base_url=url, timeout=300) as client:
        assert "quits" in {fault["plugin"] for fault in client.get("/supported").json()["faults"]}
        for name, status in (("witness", 200), ("exit-at-once", 415), ("segfault", 415), ("hang", 415)):
            files = {"file": ("nameless", f"hooked {folder / name}")}
            answer = client.post("/convert", files=files, data={"target": "stl"})
            assert answer.status_code == status, answer.text
    assert (folder / "printed").read_bytes() == b""

    def hang() -> None:
        files = {"file": ("nameless", f"hooked {folder / 'daemonize-and-hang'}")}
        with contextlib.suppress(httpx.HTTPError):
            httpx.post(f"{url}/convert", files=files, data={"target": "stl"}, timeout=300)

    threading.Thread(target=hang, daemon=True).start()
    wait_until((folder / "daemonize-and-hang").exists)
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: not is_listening(url))
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
    assert [path.name for path in folder.iterdir() if path.name.startswith("meshhub-")] == []
