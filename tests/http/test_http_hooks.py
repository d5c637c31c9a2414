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
from hostile_plugin import GRANTS, HOOKS, is_running
from http_serving import Running, check_error, serving, zip_files
from meshhub.engine.hook_process import HookProcess
from meshhub.engine.isolated import Isolated
from meshhub.engine.plugin_records import PluginRecords
from neighbors import Neighbor, sphere_stl
from waiting import wait_until

pytestmark = pytest.mark.once

ATTACKS = ("hang", "busy-loop", "segfault", "exit-at-once", "print-without-end", "fork-children", "daemonize-and-hang")
ANSWERS = {"sniff": 415, "review": 500, "grants": 200, "finished": 200}
"""By hook: the status for a caller whose hook hangs or ends the process."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path / "installed", "meshhub-hooked", hooked="hostile_plugin:HostileHooks")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    return tmp_path


@pytest.fixture
def running(folder: Path, engine: Isolated) -> Iterator[Running]:
    (folder / "hooks").mkdir()
    hooks = HookProcess(sniff_s=1, hook_s=1, folder=str(folder / "hooks"), records=PluginRecords(folder / "cache"))
    with serving(folder, {"workers": 4}, engine, hooks=hooks) as server:
        yield server
        server.registry.hooks.close()
        assert list((folder / "hooks").iterdir()) == []


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
            for name in ATTACKS:
                # a new caller for each request: the hook is not called for callers with failures
                answer = attack(running, folder, hook, name, new_key(running))
                expected = 200 if name == "fork-children" else ANSWERS[hook]
                # the hook is disabled after failures for three callers
                assert answer.status_code in (expected, ANSWERS[hook]), (name, answer.text)
        finally:
            enough.set()
        for session in sessions:
            session.result()
    allowed = {"sniff": "", "review": "review of plug-in 'hooked'", "grants": "", "finished": ""}[hook]
    errors = [text for neighbor in neighbors for text in neighbor.wrong if not allowed or allowed not in text]
    assert errors == []
    assert hook == "review" or all(neighbor.right for neighbor in neighbors)
    children = [int(line) for name in ("fork-children", "daemonize-and-hang") for line in lines(folder / name)]
    running.registry.hooks.close()
    wait_until(lambda: not any(map(is_running, children)))


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.is_file() else []


def test_failures_of_one_caller_do_not_disable_a_hook(running: Running, folder: Path) -> None:
    for _ in range(5):
        assert attack(running, folder, "sniff", "exit-at-once").status_code == 415
    key = new_key(running)
    assert attack(running, folder, "sniff", "witness", key).status_code == 200
    assert running.get("/health/ready").json() == {"status": "ready"}
    assert b"meshhub_hooks_off{" not in running.get("/metrics").content


def test_a_disabled_sniffer_is_reported(running: Running, folder: Path) -> None:
    for _ in range(3):
        attack(running, folder, "sniff", "exit-at-once", new_key(running))
    check_error(attack(running, folder, "sniff", "witness"), 415, "unsupported_format")
    (fault,) = running.get("/supported").json()["faults"]
    assert (fault["plugin"], fault["origin"], fault["hook"]) == ("hooked", "meshhub-hooked 1.2", "sniff hooked")
    ready = running.get("/health/ready")
    assert ready.status_code == 200
    assert "hooked (meshhub-hooked 1.2): sniff hooked ended its process" in ready.json()["faults"][0]
    assert b'meshhub_hooks_off{hook="sniff hooked",plugin="hooked"} 1.0' in running.get("/metrics").content
    assert PluginRecords(folder / "cache").faults()[0].plugin == "hooked"
    # the extension still identifies the file
    assert running.convert(b"hooked", "a.hooked", "stl").status_code == 200


def test_a_disabled_review_makes_the_service_not_ready(running: Running, folder: Path) -> None:
    for _ in range(3):
        check_error(attack(running, folder, "review", "exit-at-once", new_key(running)), 500, "internal_error")
    check_error(attack(running, folder, "review", "witness", new_key(running)), 500, "internal_error")
    assert not (folder / "witness").exists()
    assert "hooked" in check_error(running.get("/health/ready"), 503, "server_busy")["error"]


def test_an_archive_of_unknown_files_shares_one_time_limit(running: Running, folder: Path) -> None:
    """The first file takes all of it, so that no sniffer is called for the second."""
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
    codes = {"prints": "import os\nprint('printed')\nos.write(1, b'written')", "exits": "import os\nos._exit(0)"}
    for name, code in codes.items():
        (installed / f"{name}.py").write_text(code)
        install(installed, f"meshhub-{name}", **{name: name})
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(installed), *sys.path]),
        "XDG_CACHE_HOME": str(folder / "cache"),
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
        assert "exits" in {fault["plugin"] for fault in client.get("/supported").json()["faults"]}
        for name, status in (("witness", 200), ("exit-at-once", 415), ("segfault", 415), ("hang", 415)):
            files = {"file": ("nameless", f"hooked {folder / name}")}
            answer = client.post("/convert", files=files, data={"target": "stl"})
            assert answer.status_code == status, answer.text
    assert (folder / "printed").read_bytes() == b""

    def hang() -> None:
        data = {"target": "stl", "hooked_review": str(folder / "daemonize-and-hang")}
        with contextlib.suppress(httpx.HTTPError):
            httpx.post(f"{url}/convert", files={"file": ("a.hooked", "hooked")}, data=data, timeout=300)

    threading.Thread(target=hang, daemon=True).start()
    wait_until((folder / "daemonize-and-hang").exists)
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: not is_listening(url))
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
    assert [path.name for path in folder.iterdir() if path.name.startswith("meshhub-")] == []
