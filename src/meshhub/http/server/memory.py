"""The listening process's memory stays what it is, however long it listens: one heap, and rubbish collected soon.

glibc gives threads heaps of their own, up to eight for each core, and none gives back what lies
between two things in use. A soak of three minutes grew by 7 % so, and took a fifth more; the threads
here move files, and do not wait for each other's memory. Workers are other programs, and keep theirs.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os

_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
"""M_ARENA_MAX, M_MMAP_THRESHOLD; see mallopt(3)."""

_LARGE = 256 << 10
"""Bytes from which on a block is a mapping of its own; left to itself the bound rises to 32 MB with what is freed."""

_TOLD = ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Variables by which an operator says it otherwise."""


def one_heap() -> None:
    """Let all threads share one heap, when the C library is glibc. To be called before there are threads."""
    if any(name in os.environ for name in _TOLD):
        return
    _glibc("mallopt", _ARENA_MAX, 1)
    _glibc("mallopt", _MMAP_THRESHOLD, _LARGE)


def settle() -> None:
    """Leave what lives as long as the process out of the search for rubbish. To be called when all is loaded.

    Python looks through everything only when a quarter as much has come since the last time: beside
    90 000 objects of libraries that would be many requests' rubbish, megabytes of it.
    """
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Return free pages inside the heap to the system: by itself glibc returns those at its end only. Milliseconds."""
    _glibc("malloc_trim", 0)


def _glibc(function: str, *arguments: int) -> None:
    """Call a function of the C library, if it has it."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        getattr(ctypes.CDLL(None), function)(*arguments)
