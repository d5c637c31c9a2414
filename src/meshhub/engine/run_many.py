"""Run several conversions at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeAlias, TypeVar

from meshhub.errors import MeshhubError

T = TypeVar("T")

Failed: TypeAlias = MeshhubError | OSError
"""Error of one conversion, which does not stop the others."""


def run_many(
    calls: Sequence[Callable[[], T]],
    threads: int,
    stop: Callable[[], None],
    on_result: Callable[[int, T | Failed], None] | None,
) -> list[T | Failed]:
    """Run calls in threads, and return the result or the error of each, in their order.

    Args:
        calls: Conversions.
        threads: Calls at a time.
        stop: Ends the calls that have begun, after an exception that is not an error of a conversion.
        on_result: Called in this thread with the number of each call that has ended, and its result.
    """
    # its import sets up a lock that each fork takes, and a program that forks workers could deadlock with it
    from concurrent.futures import ThreadPoolExecutor, as_completed

    with ThreadPoolExecutor(max(1, threads), thread_name_prefix="meshhub-convert") as pool:
        pending = {pool.submit(copy_context().run, _attempt, call): number for number, call in enumerate(calls)}
        try:
            for future in as_completed(pending):
                if on_result is not None:
                    on_result(pending[future], future.result())
            return [future.result() for future in pending]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise


def check_outputs(outputs: Sequence[object]) -> None:
    """Raise ValueError if two outputs are one path, so that the second result would replace the first."""
    paths = [os.path.abspath(output) for output in outputs if isinstance(output, str | os.PathLike)]  # noqa: PTH100
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise ValueError(f"two conversions have the output {twice}; give each its own")


def _attempt(call: Callable[[], T]) -> T | Failed:
    try:
        return call()
    except (MeshhubError, OSError) as error:
        return error
