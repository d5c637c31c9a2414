"""Limits of one job, and how a worker process applies them to itself."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

from msgspec import Struct

_RESERVE_BYTES = 64 << 20
"""Bytes of memory beyond the limit, kept for reporting that the limit was reached."""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of one job.

    Attributes:
        memory_bytes: Memory in addition to the memory that is mapped before the job starts; of each of its processes,
            and of all together.
        file_bytes: Size of one file, and of all files in the folders of the job.
        files: Files in the folders of the job.
        open_files: Open files of one process.
        processes: Processes at once, including the worker.
        cpu_seconds: Processor time of each process.
    """

    memory_bytes: int = 6 << 30
    file_bytes: int = 4 << 30
    files: int = 10_000
    open_files: int = 512
    processes: int = 64
    cpu_seconds: int = 600


def apply_limits(limits: Limits) -> None:
    """Limit this process, starting from the memory that it has mapped now."""
    if sys.platform == "win32":
        return
    import resource

    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
    }
    for kind, requested in bounds.items():
        bound = _cap_to_hard_limit(kind, requested)
        resource.setrlimit(kind, (bound, bound))
    mapped = _read_mapped_bytes(os.getpid())
    if mapped:
        bound = _cap_to_hard_limit(resource.RLIMIT_AS, mapped + limits.memory_bytes + _RESERVE_BYTES)
        resource.setrlimit(resource.RLIMIT_AS, (bound - _RESERVE_BYTES, bound))
    # the soft limit ends the process with SIGXCPU, from which the parent sees the reason; the hard limit with SIGKILL
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or hard > limits.cpu_seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 1))
    # beyond the file size limit a write fails with an error instead of a deadly signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def release_reserve() -> None:
    """Let this process use the memory that was kept for reporting that its limit was reached."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def count_unmapped_bytes(process: int, limits: Limits) -> int:
    """Return how many bytes of its memory limit a worker has not mapped yet.

    Return the whole limit if the worker has not limited itself yet, or if the system does not report it. A worker may
    map a gigabyte while it warms up; its own limit shows how much it had mapped when it limited itself.
    """
    if sys.platform != "linux":
        return limits.memory_bytes
    import resource

    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.prlimit(process, resource.RLIMIT_AS)
        _, own_hard = resource.getrlimit(resource.RLIMIT_AS)
        # a worker with the hard limit of this process has not limited itself yet, or could not
        if hard != own_hard:
            return soft - _read_mapped_bytes(process)
    return limits.memory_bytes


def _cap_to_hard_limit(kind: int, bound: int) -> int:
    import resource

    _, hard = resource.getrlimit(kind)
    return bound if hard == resource.RLIM_INFINITY else min(bound, hard)


def _read_mapped_bytes(process: int) -> int:
    """Return the size of the address space, to which RLIMIT_AS applies; 0 where the system does not report it."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
