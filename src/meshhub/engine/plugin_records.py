"""Files that record which third-party plug-ins can be loaded, and which hooks are disabled now."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import msgspec
import platformdirs
from msgspec import Struct

from meshhub.engine.scratch import is_running
from meshhub.pipeline.loading import GROUP, Fault, origin_of

T = TypeVar("T", bound=Struct)

_RETRY_S = 600.0
"""Seconds after which a distribution that could not be loaded is probed again, because the machine may have been busy.
"""


class _Probe(Struct, frozen=True):
    """`why` it must not be loaded, or ""; `at` in seconds since 1970."""

    why: str
    at: float


class _Faults(Struct, frozen=True):
    """The faults of a running service, until a time in seconds since 1970."""

    process: int
    until: float
    faults: tuple[Fault, ...]


class PluginRecords:
    """Files in the user's cache folder. If the folder cannot be written, nothing is recorded."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is the user's cache folder by default."""
        self._folder = folder or platformdirs.user_cache_path("meshhub", appauthor=False) / "plugins"

    def probe_of(self, points: Sequence[metadata.EntryPoint]) -> str | None:
        """Return why the plug-ins of a distribution must not be loaded, or ""; None when they were not probed."""
        probe = _read(self._folder / f"probe-{_key(points)}.json", _Probe)
        if probe is None or (probe.why and probe.at < time.time() - _RETRY_S):
            return None
        return probe.why

    def recorded_refusal(self, point: metadata.EntryPoint) -> str:
        """Return why the distribution of an entry point must not be loaded; "" if it may be, or was not probed."""
        return self.probe_of(points_of(point)) or ""

    def keep_probe(self, points: Sequence[metadata.EntryPoint], why: str) -> None:
        """Record the result of a probe."""
        self._write(f"probe-{_key(points)}.json", _Probe(why, time.time()))

    def keep_faults(self, faults: tuple[Fault, ...], seconds: float) -> None:
        """Record the disabled hooks of this process for at most `seconds`."""
        self._write(f"faults-{os.getpid()}.json", _Faults(os.getpid(), time.time() + seconds, faults))

    def forget_faults(self) -> None:
        """Remove the record of this process about its hooks."""
        with contextlib.suppress(OSError):
            (self._folder / f"faults-{os.getpid()}.json").unlink()

    def faults(self) -> tuple[Fault, ...]:
        """Return the disabled hooks of services that run on this machine."""
        faults: list[Fault] = []
        for path in sorted(self._folder.glob("faults-*.json")):
            record = _read(path, _Faults)
            if record is None or record.until < time.time() or not is_running(record.process):
                with contextlib.suppress(OSError):
                    path.unlink()
                continue
            faults += record.faults
        return tuple(faults)

    def _write(self, name: str, content: Struct) -> None:
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            # another process may be reading the file
            path = self._folder / f"{name}.{os.getpid()}"
            path.write_bytes(msgspec.json.encode(content))
            path.replace(self._folder / name)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def points_of(point: metadata.EntryPoint) -> list[metadata.EntryPoint]:
    """Return the entry points of the distribution to which an entry point belongs."""
    origin = origin_of(point)
    return [other for other in metadata.entry_points(group=GROUP) if origin_of(other) == origin]


def _key(points: Sequence[metadata.EntryPoint]) -> str:
    """Identify the version of a distribution, its files, and this Python."""
    parts = [sys.executable, platform.python_version()]
    for point in sorted(points):
        parts += [origin_of(point), point.name, point.value, *_module_of(point)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _module_of(point: metadata.EntryPoint) -> tuple[str, ...]:
    """Return the path and the time of the top-level module, because authors edit code without a new version."""
    try:
        # not `point.module`, because it raises for a malformed value
        spec = find_spec(re.split("[.:]", point.value, maxsplit=1)[0])
        origin = spec.origin if spec is not None else None
        return (origin, str(Path(origin).stat().st_mtime_ns)) if origin else ()
    except (OSError, ImportError, ValueError):
        return ()
