"""Limits of one job, and how a worker process applies them to itself."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from msgspec import Struct

_RESERVE_BYTES = 64 << 20
"""Bytes of memory beyond the limit, which are kept for reporting that the limit was reached."""

MAX_GROWTH_BYTES = 64 << 20
"""Bytes by which the tasks of a reused worker may enlarge it. The memory limit grows by the same amount, so that the
next task has as much memory as the first.
"""

MAX_REUSED_CPU_S = 5
"""Seconds of processor time after which a worker is not used again; the limit of processor time also grows with it."""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of one job.

    Attributes:
        memory_bytes: Memory in addition to the memory that is mapped before the job starts, for each of its processes
            and for all together.
        file_bytes: Size of one file, and of all files in the folders of the job.
        files: Files in the folders of the job.
        open_files: Open files of one process.
        processes: Maximum number of parallel processes, including the worker.
        cpu_seconds: Processor time of each process.
    """

    memory_bytes: int = 6 << 30
    file_bytes: int = 4 << 30
    files: int = 10_000
    open_files: int = 512
    processes: int = 64
    cpu_seconds: int = 600


def apply_limits(limits: Limits, *, is_reusable: bool = False) -> None:
    """Limit this process, in addition to the memory that it has mapped and the processor time that it has used so far.

    Args:
        limits: Limits of the task.
        is_reusable: Whether this process may apply the limits again, for another task.
    """
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
    mapped = read_mapped_bytes(os.getpid())
    if mapped:
        soft = mapped + limits.memory_bytes
        hard = soft + _RESERVE_BYTES + (MAX_GROWTH_BYTES if is_reusable else 0)
        hard = _cap_to_hard_limit(resource.RLIMIT_AS, hard)
        resource.setrlimit(resource.RLIMIT_AS, (min(soft, hard - _RESERVE_BYTES), hard))
    # the soft limit ends the process with SIGXCPU, from which the parent sees the reason; the hard limit with SIGKILL
    seconds = int(time.process_time()) + limits.cpu_seconds
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY or hard > seconds:
        bound = _cap_to_hard_limit(resource.RLIMIT_CPU, seconds + 1 + (MAX_REUSED_CPU_S if is_reusable else 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, bound))
    # beyond the file size limit, a write fails with an error instead of a deadly signal
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
        # a worker whose hard limit is that of this process has not limited itself yet, or could not do so
        if hard != own_hard:
            return soft - read_mapped_bytes(process)
    return limits.memory_bytes


def _cap_to_hard_limit(kind: int, bound: int) -> int:
    import resource

    _, hard = resource.getrlimit(kind)
    return bound if hard == resource.RLIM_INFINITY else min(bound, hard)


def read_mapped_bytes(process: int) -> int:
    """Return the size of the address space, to which RLIMIT_AS applies; 0 where the system does not report it."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
