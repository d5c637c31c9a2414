"""Both cores for work on large arrays: numpy and pyarrow release the interpreter while they compute."""

# why two, and what they buy: docs/decisions/0048-two-threads.md
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

MAX_THREADS = 2
"""Maximum threads of one step; more cores serve other conversions."""


def count_cores() -> int:
    """Count the processor cores on which this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_threads(function: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """Return the results of a function for all items, in their order, computed by up to `MAX_THREADS` threads."""
    if len(items) < 2 or count_cores() < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="meshhub-step") as pool:
        return list(pool.map(function, items))
