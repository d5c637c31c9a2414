"""Processors and memory that this process may use."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path

from meshhub.toolkit.threads import count_cores


def cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Count the CPU cores that this process may use, within the quota of its container.

    Args:
        quota: File of the Linux control group, version 2.
    """
    count = count_cores()
    with contextlib.suppress(OSError, ValueError):
        # "200000 100000": microseconds of CPU time in each period of microseconds; "max 100000": no limit
        used, period = quota.read_text(encoding="ascii").split()
        count = min(count, max(1, math.ceil(int(used) / int(period))))
    return count


def memory(groups: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> int | None:
    """Return the bytes of memory that this process may use, within the limits of its container or service.

    Args:
        groups: Folder of the Linux control groups, version 2.
        membership: File that names the control group of this process.
    """
    limits: list[int] = []
    with contextlib.suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    group = groups
    with contextlib.suppress(OSError, ValueError):
        # "0::/system.slice/meshhub.service"; in a container, the group is the root
        group = groups / membership.read_text(encoding="ascii").strip().rpartition("::/")[2]
    for folder in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError):
            # "max" is not a number: no limit
            limits.append(int((folder / "memory.max").read_text(encoding="ascii")))
    return min(limits, default=None)
