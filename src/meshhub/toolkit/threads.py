"""Both cores for work on large arrays: numpy and pyarrow release the interpreter while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

MAX_THREADS = 2
"""Maximum threads of one step; more cores serve other conversions."""


def map_threads(function: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """Return the results of a function for all items, in their order, computed by up to `MAX_THREADS` threads."""
    if len(items) < 2 or (os.cpu_count() or 1) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="meshhub-step") as pool:
        return list(pool.map(function, items))
