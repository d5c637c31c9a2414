"""Measure files, memory and processes of a job, and compare them with its limits."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from meshhub.engine import descendants
from meshhub.engine.limits import Limits, count_unmapped_bytes
from meshhub.engine.worker_process import Worker
from meshhub.errors import ModelTooComplex, PluginError
from meshhub.model.chain import Position

_MEMORY_CRASH_RATIO = 1 / 3
"""Share of the memory limit above which a crash is attributed to memory. The share is low, because native code often
crashes without a message when an allocation fails, and an array that doubles its size cannot grow beyond a third of the
limit.
"""


class Usage:
    """Resources that the processes of one job use."""

    def __init__(self, worker: Worker, limits: Limits, folders: Sequence[Path]) -> None:
        """Measure a worker, and the folders that it may write to."""
        self._worker = worker
        self._limits = limits
        self._folders = folders
        self.peak_memory_bytes = 0

    @property
    def is_near_memory_limit(self) -> bool:
        """Whether the worker has used so much memory that a crash is attributed to memory."""
        return self.peak_memory_bytes > self._limits.memory_bytes * _MEMORY_CRASH_RATIO

    def check(self, position: Position) -> None:
        """Compare the usage with the limits.

        Raises:
            ModelTooComplex: The job uses too much memory or disk.
            PluginError: The job has too many files or processes.
        """
        self._check_files(position)
        unmapped = count_unmapped_bytes(self._worker.process.pid or 0, self._limits)
        self.peak_memory_bytes = max(self.peak_memory_bytes, self._limits.memory_bytes - unmapped)
        self._check_processes(position)

    def _check_files(self, position: Position) -> None:
        limits = self._limits
        count = size = 0
        for folder in self._folders:
            for file_size in _measure_entries(folder):
                count += 1
                size += file_size
                if count > limits.files:
                    raise PluginError(
                        f"more than {limits.files:,} files were written{position.text}; {position.remedy}"
                    )
        if size > limits.file_bytes:
            raise ModelTooComplex(
                f"the conversion wrote more than {limits.file_bytes:,} bytes{position.text}; {position.reduction}",
                options=position.options,
                values={"limit_bytes": limits.file_bytes},
            )

    def _check_processes(self, position: Position) -> None:
        limits = self._limits
        processes = descendants.find_marked(self._worker.mark)
        if len(processes) > limits.processes:
            raise PluginError(f"more than {limits.processes} processes were started{position.text}; {position.remedy}")
        if len(processes) < 2:
            return
        # the first sum is fast, but counts shared memory for each process; the second one is exact
        if all(sum(map(measure, processes)) > limits.memory_bytes for measure in (_read_resident, _read_proportional)):
            raise ModelTooComplex(
                f"the conversion's processes need more memory than one conversion may take{position.text}; "
                f"{position.reduction}",
                options=position.options,
            )


def _measure_entries(folder: Path) -> Iterator[int]:
    """Yield the bytes on disk of every file and folder below a folder."""
    folders = [os.fspath(folder)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    yield status.st_size if sys.platform == "win32" else status.st_blocks * 512


def _read_resident(process: int) -> int:
    """Return the resident memory of a process in bytes, without pages of files."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()
        return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _read_proportional(process: int) -> int:
    """Return the memory of a process in bytes; each shared page counts in proportion."""
    try:
        return int(Path(f"/proc/{process}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return _read_resident(process)
