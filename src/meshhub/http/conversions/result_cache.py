"""Cache of results: the same request of the same caller gets the stored result of the first one."""

# why this way: docs/decisions/0038-result-cache.md
from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from meshhub.engine.contract import CALLER
from meshhub.engine.scratch import Scratch
from meshhub.errors import InvalidSettings
from meshhub.http.admission.threads import Threads
from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.loops import Loops
from meshhub.model.chain import Chain
from meshhub.model.report import Inspection, Report
from meshhub.model.source import Target
from meshhub.model.verdict import CHECK_FAILED, Verdict
from meshhub.service.jobs.files import hash_file
from meshhub.service.settings import Settings

log = logging.getLogger("meshhub.http")

SWEEP_S = 5.0
"""Seconds between two removals of old entries, without requests too."""

MAX_ENTRY_COUNT = 10_000
"""Maximum entries; each sweep lists all of them, which takes 0.1 s."""

KEPT_RATIO = 0.9
"""Share of a full cache that a sweep keeps, so that the next results do not each need another one."""

_ENTRY = ".cached"
"""Extension of an entry; the folder may have other files by mistake, which must stay."""

_PARTIAL = ".partial" + _ENTRY
"""Extension of an entry that is being written."""

_CHUNK_BYTES = 1 << 20
"""Bytes of a file in memory at a time."""


class _Header(Struct, frozen=True):
    """First line of an entry: the result, and the sizes of the files that follow, by name."""

    result: msgspec.Raw
    files: dict[str, int]


# made at import, because msgspec can crash if two threads decode a type for the first time
_HEADERS = msgspec.json.Decoder(_Header)
_DECODERS = {kind: msgspec.json.Decoder(kind) for kind in (Report, Inspection, Verdict)}
"""Decoders of results."""


class ResultCache:
    """Results of conversions, inspections and checks in a folder; several processes may share it.

    An entry is one file, which appears complete and never changes, so that a reader needs no lock: it reads a removed
    entry to its end. Its name is a hash of the caller, the chain, the names and contents of the files, and the
    installed distributions. Its last change is its age, its last access decides which entry is removed first.

    Attributes:
        bytes: Size of all entries; those of other processes as of the last sweep.
    """

    def __init__(self, settings: Settings) -> None:
        """Use the folder of the settings, or one that `close` removes. Raises InvalidSettings."""
        self._max_bytes = settings.cache_bytes
        self._max_age_s = settings.cache_seconds
        self._scratch: Scratch | None = None
        try:
            if settings.cache_folder is None:
                self._scratch = Scratch("service", settings.temporary_folder)
                self._folder = self._scratch.path
            else:
                self._folder = Path(settings.cache_folder)
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidSettings(f"cache_folder: the folder cannot be created: {error.strerror}") from error
        self._environment = sorted({f"{item.name} {item.version}" for item in metadata.distributions()})
        self._loops = Loops()
        self.bytes = 0
        self._count = 0

    def start(self, threads: Threads) -> None:
        """Remove old entries from now on."""

        async def sweep() -> None:
            await threads.run(self.sweep)

        self._loops.start((sweep, SWEEP_S))

    async def close(self) -> None:
        """Stop, and remove the folder, unless the settings name it."""
        await self._loops.stop()
        if self._scratch is not None:
            self._scratch.remove()

    def identify(self, chain: Chain, file: InputFile, variant: Sequence[str] = ()) -> str | None:
        """Return the key of a result; None for callers that may be several people. Reads the files.

        `variant` distinguishes results of the same chain.
        """
        caller = CALLER.get()
        if not caller:
            return None
        content = [caller, self._environment, chain, variant, _describe(file)]
        return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()

    def find(self, key: str, chain: Chain, target: Target | None) -> Any:
        """Return a stored result, with its files in the folder of the target; None without one."""
        path = self._folder / (key + _ENTRY)
        try:
            with path.open("rb") as entry:
                status = os.fstat(entry.fileno())
                if not self._is_young(status):
                    return None
                header = _HEADERS.decode(entry.readline())
                result = _DECODERS[chain.ending.result].decode(header.result)
                if target is not None:
                    _unpack(entry, header.files, target)
        except FileNotFoundError:
            return None
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            log.warning("the cache cannot read an entry: %s", error)
            return None
        with contextlib.suppress(OSError):
            os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
        return result

    def store(self, key: str, result: Report | Inspection | Verdict, target: Target | None) -> None:
        """Store a result and the files of its target; an entry that does not fit is left out."""
        if isinstance(result, Verdict) and any(finding.code == CHECK_FAILED for finding in result.findings):
            # the check may succeed next time
            return
        paths = [] if target is None or target.folder is None else [target.folder / name for name in target.names]
        partial = None
        try:
            sizes = {path.name: path.stat().st_size for path in paths}
            header = msgspec.json.encode(_Header(msgspec.Raw(msgspec.json.encode(result)), sizes)) + b"\n"
            size = len(header) + sum(sizes.values())
            if size > self._max_bytes:
                return
            descriptor, name = tempfile.mkstemp(suffix=_PARTIAL, dir=self._folder)
            partial = Path(name)
            with os.fdopen(descriptor, "wb") as entry:
                entry.write(header)
                for path in paths:
                    with path.open("rb") as file:
                        _copy(file, entry, sizes[path.name])
            partial.replace(self._folder / (key + _ENTRY))
        except (OSError, EOFError) as error:
            log.warning("the cache cannot store a result: %s", error)
            if partial is not None:
                partial.unlink(missing_ok=True)
            return
        self.bytes += size
        self._count += 1
        if self._is_full(self.bytes, self._count):
            self.sweep()

    def sweep(self) -> None:
        """Remove old entries and, if the cache is full, those that were not used for the longest time."""
        entries = []
        with contextlib.suppress(OSError), os.scandir(self._folder) as listing:
            for item in listing:
                if not item.name.endswith(_ENTRY):
                    continue
                with contextlib.suppress(OSError):
                    status = item.stat(follow_symlinks=False)
                    if not self._is_young(status):
                        Path(item.path).unlink(missing_ok=True)
                    else:
                        entries.append((item.name.endswith(_PARTIAL), status.st_atime_ns, status.st_size, item.path))
        total, count = sum(size for _, _, size, _ in entries), len(entries)
        if self._is_full(total, count):
            # incomplete entries stay, because a process still writes them
            for _, _, size, path in sorted(entry for entry in entries if not entry[0]):
                if not self._is_full(total / KEPT_RATIO, count / KEPT_RATIO):
                    break
                with contextlib.suppress(OSError):
                    Path(path).unlink(missing_ok=True)
                total -= size
                count -= 1
        self.bytes, self._count = total, count

    def _is_full(self, size: float, count: float) -> bool:
        return size > self._max_bytes or count > MAX_ENTRY_COUNT

    def _is_young(self, status: os.stat_result) -> bool:
        # the clock of the machine may have been set back
        return abs(time.time() - status.st_mtime) <= self._max_age_s


def open_cache(settings: Settings) -> ResultCache | None:
    """Return the cache of the settings; None if it is off. Raises InvalidSettings."""
    return ResultCache(settings) if settings.cache_bytes and settings.cache_seconds else None


def measure_cache(cache: ResultCache | None) -> Callable[[], int]:
    """Return a function that returns the size of a cache; 0 for none."""
    return lambda: cache.bytes if cache is not None else 0


def _describe(file: InputFile) -> list[object]:
    """Return the names and the hashes of a file, its companions, and the other files of its scene."""
    companions = {name: hash_file(path) for name, path in file.companions.items()}
    return [file.name, hash_file(file.path), companions, [_describe(other) for other in file.others]]


def _unpack(entry: BinaryIO, files: Mapping[str, int], target: Target) -> None:
    """Write the files of an entry to the folder of a target. Raises OSError, EOFError."""
    assert target.folder is not None
    for name, size in files.items():
        with (target.folder / Path(name).name).open("wb") as file:
            _copy(entry, file, size)
    target.found(tuple(files)[1:])


def _copy(source: BinaryIO, sink: BinaryIO, size: int) -> None:
    """Copy a number of bytes. Raises EOFError if the source has fewer."""
    while size:
        chunk = source.read(min(size, _CHUNK_BYTES))
        if not chunk:
            raise EOFError("the file is shorter than expected")
        sink.write(chunk)
        size -= len(chunk)
