"""The service under test: a `meshhub serve` with its own folder, observed through /proc."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests" / "support"
"""Folder of the hostile plug-in."""

_MARK = "SOAK_MARK"
"""Environment variable that every process of the service inherits, even one in a new session."""

FREE_REQUESTS_PER_MINUTE = 240
"""Rate limit of Free clients, high enough for the traffic of one client."""

QUEUE_LENGTH = 11
"""Short enough that 16 clients sometimes get `server_busy`."""

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Sample:
    """Resources of the service at one moment.

    server_bytes, fork_server_bytes:    resident memory of the server process, and of the parent of the workers
    server_private_bytes,
    fork_server_private_bytes:          their anonymous memory, which a leak increases
    total_bytes, processes:             proportional memory and number of all processes
    open_files, threads:                of the server process
    temporary_files:                    in the temporary folder of the service
    """

    server_bytes: int
    server_private_bytes: int
    fork_server_bytes: int
    fork_server_private_bytes: int
    total_bytes: int
    processes: int
    open_files: int
    threads: int
    temporary_files: int


class Server:
    """Running `meshhub serve`."""

    def __init__(self, folder: Path) -> None:
        """Start the service with all its files in `folder`, which is empty."""
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self._mark = secrets.token_hex(8)
        self._environment = self._make_environment()
        self.keys = {plan: self._create_key(plan) for plan in ("pro", "free", "hurried")}
        self.revoked = self._create_key("pro")
        self._run_meshhub("keys", "revoke", self.revoked[:15])
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.log = folder / "log.txt"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self._executable(), "serve", "--port", str(self.port)],
                env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._wait_until_ready()

    def _make_environment(self) -> dict[str, str]:
        """Return the environment: all paths in the folder, a hostile plug-in, limits that permit the traffic."""
        installed = self.folder / "installed"
        metadata = installed / "soak-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: soak\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[meshhub]\nhostile = hostile_plugin\nhurried = hurried_plan\n")
        paths = (installed, Path(__file__).parent / "plugins", TESTS)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MESHHUB_")}
        return {
            **inherited,
            _MARK: self._mark,
            "PYTHONPATH": os.pathsep.join(filter(None, (*map(str, paths), inherited.get("PYTHONPATH")))),
            "MESHHUB_DATABASE_URL": f"sqlite:///{self.folder / 'keys.sqlite3'}",
            "MESHHUB_TEMPORARY_FOLDER": str(self.work),
            "MESHHUB_QUEUE": str(QUEUE_LENGTH),
            "MESHHUB_LOG": "json",
            "MESHHUB_PLAN_FREE_REQUESTS_PER_MINUTE": str(FREE_REQUESTS_PER_MINUTE),
            "MESHHUB_PLAN_PRO_REQUESTS_PER_MINUTE": "100000",
        }

    def _executable(self) -> list[str]:
        return [str(Path(sys.executable).parent / "meshhub")]

    def _run_meshhub(self, *arguments: str) -> str:
        process = subprocess.run(
            [*self._executable(), *arguments], env=self._environment, capture_output=True, text=True, check=False
        )
        if process.returncode:
            sys.exit(f"meshhub {' '.join(arguments)} failed: {process.stderr}")
        return process.stdout.strip()

    def _create_key(self, plan: str) -> str:
        return self._run_meshhub("keys", "create", "--plan", plan, "--label", "soak")

    def _wait_until_ready(self) -> None:
        import http.client

        end = time.monotonic() + 90
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                connection.request("GET", "/health/ready")
                if connection.getresponse().status == 200:
                    connection.close()
                    return
            time.sleep(0.2)
        self.process.kill()
        sys.exit(f"the service did not start:\n{self.log.read_text()[-3000:]}")

    def sample(self) -> Sample:
        """Return the resources of the service now."""
        processes = self.processes()
        server = self.process.pid
        fork_server = next(
            (pid for pid in processes if pid != server and "forkserver" in _command(pid) and _parent(pid) == server), 0
        )
        return Sample(
            server_bytes=_status(server, "VmRSS"),
            server_private_bytes=_status(server, "RssAnon"),
            fork_server_bytes=_status(fork_server, "VmRSS"),
            fork_server_private_bytes=_status(fork_server, "RssAnon"),
            total_bytes=sum(_proportional_bytes(pid) for pid in processes),
            processes=len(processes),
            open_files=_count(Path(f"/proc/{server}/fd")),
            threads=_count(Path(f"/proc/{server}/task")),
            temporary_files=sum(len(files) for _, _, files in os.walk(self.work)),
        )

    def processes(self) -> list[int]:
        """Return the ids of the service and of all processes that it started, directly or indirectly."""
        mark = f"{_MARK}={self._mark}".encode()
        pids = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    if mark in Path(f"/proc/{entry}/environ").read_bytes():
                        pids.append(int(entry))
        return pids

    def job_folders(self) -> list[str]:
        """Return the names of the folders of requests and of conversions."""
        return [
            name
            for folder in os.listdir(self.work)
            for name in ([folder] if folder.startswith("meshhub-job-") else _list(self.work / folder))
        ]

    def stop(self) -> list[str]:
        """Stop the service with SIGTERM, as an operator does; return the faults."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return ["SIGTERM did not end it within 60 s"]
        faults = [] if status == 0 else [f"exit status {status}"]
        end = time.monotonic() + 10
        while self.processes() and time.monotonic() < end:
            time.sleep(0.1)
        faults += [f"process left: {pid} {_command(pid)[:100]}" for pid in self.processes()]
        faults += [f"left in the temporary folder: {name}" for name in os.listdir(self.work)]
        return faults

    def kill(self) -> None:
        """Kill the remaining processes of the service."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def logged_faults(self) -> Iterator[str]:
        """Yield the log lines that report a fault of the service itself."""
        pattern = re.compile(r'"level": ?"(error|critical)"|Traceback|Task exception|never retrieved|ERROR|CRITICAL')
        with self.log.open(encoding="utf-8", errors="replace") as lines:
            yield from (line.rstrip() for line in lines if pattern.search(line))


def _list(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _count(folder: Path) -> int:
    return len(_list(folder))


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _status(pid: int, name: str) -> int:
    with contextlib.suppress(OSError):
        match = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
        return int(match[1]) << 10 if match else 0
    return 0


def _proportional_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        match = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
        return int(match[1]) << 10 if match else 0
    return 0
