"""Clients that convert while a plug-in attacks, and measurements of what remains; shared with the benchmark."""

from __future__ import annotations

import os
import resource
import struct
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from hostile_plugin import is_running
from meshhub import InProcess, Inspection, Isolated, Registry, Report, Source, Target
from meshhub.engine.contract import Cancel, Task
from meshhub.engine.scratch import Scratch
from models import sphere

TARGETS = ("ply", "3mf", "glb", "obj", "stl")


class Timed(Isolated):
    """Engine that records, by source name, the duration of each job, its delay beyond the deadline, and its folder."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.seconds: dict[str, float] = {}
        self.late: dict[str, float] = {}
        self.folders: dict[str, Path] = {}
        self._here = threading.local()

    def _create_scratch(self) -> Scratch:
        result = super()._create_scratch()
        self._here.folder = result.path
        return result

    def run(self, task: Task, *, timeout: float | None = None, cancel: Cancel | None = None) -> Report | Inspection:
        start = time.monotonic()
        name = task.source.name
        try:
            return super().run(task, timeout=timeout, cancel=cancel)
        finally:
            self.seconds[name] = time.monotonic() - start
            self.late[name] = self.seconds[name] - (timeout or 0)
            self.folders[name] = self._here.folder


@dataclass
class Neighbor:
    """Client with its own models, which compares each response with the expected bytes."""

    url: str
    key: str
    models: list[tuple[str, bytes]]
    expected: dict[tuple[str, str], bytes] = field(default_factory=dict)
    right: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        registry = Registry(entry_points=False, engine=InProcess())
        for name, data in self.models:
            for target in TARGETS:
                result = Target()
                registry.convert(Source.from_bytes(data, name), result, target=target)
                self.expected[name, target] = result.read()

    def live(self, enough: threading.Event) -> None:
        """Convert the models in turn until `enough` is set, and at least one."""
        with httpx.Client(base_url=self.url, timeout=300, headers={"X-Api-Key": self.key}) as client:
            while not enough.is_set() or not self.right:
                for (name, target), expected in self.expected.items():
                    content = dict(self.models)[name]
                    answer = client.post("/convert", files={"file": (name, content)}, data={"target": target})
                    if answer.status_code == 200 and answer.content == expected:
                        self.right += 1
                    else:
                        self.wrong.append(f"{name} to {target}: {answer.status_code} {answer.text[:200]}")
                    if enough.is_set():
                        break


def sphere_stl(number: int) -> bytes:
    """Return a binary STL that differs for each number."""
    mesh = sphere(5 + number, 12 + 2 * number)
    records = np.zeros(len(mesh.faces), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    records["corners"] = mesh.vertices[mesh.faces]
    return bytes(80) + struct.pack("<I", len(records)) + records.tobytes()


def find_job_processes() -> set[int]:
    """Return the running processes that jobs of this program started, even if their parents have ended."""
    process_ids = set()
    for name in os.listdir("/proc"):
        try:
            mark = resource.prlimit(int(name), 10)[1]
        except (ValueError, OSError):
            continue
        if mark >> 48 == 0x4D48 and mark >> 26 & 0x3FFFFF == os.getpid() and is_running(int(name)):
            process_ids.add(int(name))
    return process_ids


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def count_open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
