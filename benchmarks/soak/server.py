"""The service under test: a `meshhub serve` with a folder of its own, watched from outside through /proc."""

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
"""Where the hostile plug-in is."""

_MARK = "SOAK_MARK"
"""A variable that everything started by the service inherits, however it leaves its session."""

FREE_PER_MINUTE = 240
QUEUE = 11

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Sample:
    """What the service takes at one moment; memory in bytes.

    memory, sparing:           resident memory of the listening process, and of the one that workers are forked from
    listening, forking:        their anonymous memory alone, which is what a leak grows
    processes:                 all of the service's
    files, threads:            of the listening process
    left:                      files in its temporary folder
    """

    memory: int
    listening: int
    sparing: int
    forking: int
    proportional: int
    processes: int
    files: int
    threads: int
    left: int


class Server:
    """A running `meshhub serve`."""

    def __init__(self, folder: Path) -> None:
        """`folder` is empty; everything of the service is in it."""
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self._mark = secrets.token_hex(8)
        self._environment = self._settings()
        self.keys = {plan: self._key(plan) for plan in ("pro", "free", "hurried")}
        self.revoked = self._key("pro")
        self._meshhub("keys", "revoke", self.revoked[:15])
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.log = folder / "log.txt"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self._program(), "serve", "--port", str(self.port)],
                env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._wait_until_ready()

    def _settings(self) -> dict[str, str]:
        """The environment: everything in the folder, a hostile plug-in installed, limits that let traffic flow."""
        installed = self.folder / "installed"
        told = installed / "soak-1.0.dist-info"
        told.mkdir(parents=True)
        (told / "METADATA").write_text("Metadata-Version: 2.1\nName: soak\nVersion: 1.0\n")
        (told / "entry_points.txt").write_text("[meshhub]\nhostile = hostile_plugin\nhurried = hurried_plan\n")
        places = (installed, Path(__file__).parent / "plugins", TESTS)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MESHHUB_")}
        return {
            **inherited,
            _MARK: self._mark,
            "PYTHONPATH": os.pathsep.join(filter(None, (*map(str, places), inherited.get("PYTHONPATH")))),
            "MESHHUB_DATABASE_URL": f"sqlite:///{self.folder / 'keys.sqlite3'}",
            "MESHHUB_TEMPORARY_FOLDER": str(self.work),
            "MESHHUB_QUEUE": str(QUEUE),
            "MESHHUB_LOG": "json",
            "MESHHUB_PLAN_FREE_REQUESTS_PER_MINUTE": str(FREE_PER_MINUTE),
            "MESHHUB_PLAN_PRO_REQUESTS_PER_MINUTE": "100000",
        }

    def _program(self) -> list[str]:
        return [str(Path(sys.executable).parent / "meshhub")]

    def _meshhub(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._program(), *arguments], env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"meshhub {' '.join(arguments)} failed: {done.stderr}")
        return done.stdout.strip()

    def _key(self, plan: str) -> str:
        return self._meshhub("keys", "create", "--plan", plan, "--label", "soak")

    def _wait_until_ready(self) -> None:
        import http.client

        end = time.monotonic() + 90
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                asked.request("GET", "/health/ready")
                if asked.getresponse().status == 200:
                    asked.close()
                    return
            time.sleep(0.2)
        self.process.kill()
        sys.exit(f"the service did not come up:\n{self.log.read_text()[-3000:]}")

    def sample(self) -> Sample:
        """What it takes now."""
        family = self.family()
        own = self.process.pid
        forking = next(
            (pid for pid in family if pid != own and "forkserver" in _command(pid) and _parent(pid) == own), 0
        )
        return Sample(
            memory=_status(own, "VmRSS"),
            listening=_status(own, "RssAnon"),
            sparing=_status(forking, "VmRSS"),
            forking=_status(forking, "RssAnon"),
            proportional=sum(_proportional(pid) for pid in family),
            processes=len(family),
            files=_count(Path(f"/proc/{own}/fd")),
            threads=_count(Path(f"/proc/{own}/task")),
            left=sum(len(files) for _, _, files in os.walk(self.work)),
        )

    def family(self) -> list[int]:
        """Every process that it started, directly or not, and itself."""
        mark = f"{_MARK}={self._mark}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    if mark in Path(f"/proc/{entry}/environ").read_bytes():
                        found.append(int(entry))
        return found

    def jobs(self) -> list[str]:
        """Folders of requests and of conversions."""
        return [
            name
            for held in os.listdir(self.work)
            for name in ([held] if held.startswith("meshhub-job-") else _listed(self.work / held))
        ]

    def stop(self) -> list[str]:
        """Stop it as an operator would; what is wrong with how it ended."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return ["SIGTERM did not end it within 60 s"]
        faults = [] if status == 0 else [f"exit status {status}"]
        end = time.monotonic() + 10
        while self.family() and time.monotonic() < end:
            time.sleep(0.1)
        faults += [f"process left: {pid} {_command(pid)[:100]}" for pid in self.family()]
        faults += [f"left in the temporary folder: {name}" for name in os.listdir(self.work)]
        return faults

    def kill(self) -> None:
        """End whatever is left of it."""
        for pid in self.family():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def logged(self) -> Iterator[str]:
        """Lines of its log that an operator would be woken for: faults of the service itself."""
        wanted = re.compile(r'"level": ?"(error|critical)"|Traceback|Task exception|never retrieved|ERROR|CRITICAL')
        with self.log.open(encoding="utf-8", errors="replace") as lines:
            yield from (line.rstrip() for line in lines if wanted.search(line))


def _listed(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _count(folder: Path) -> int:
    return len(_listed(folder))


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
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
        return int(found[1]) << 10 if found else 0
    return 0


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError):
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
        return int(found[1]) << 10 if found else 0
    return 0
