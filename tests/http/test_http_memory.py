"""Memory of the server process: one heap, which is trimmed."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from meshhub.http.server.memory import trim_heap, use_one_heap

pytestmark = pytest.mark.once

CODE = """
import ctypes, sys, threading
from meshhub.http.server.memory import use_one_heap

if sys.argv[1] == "one":
    use_one_heap()
# too large for Python's own allocator, and held while the others take theirs
together = threading.Barrier(8)
threads = [threading.Thread(target=lambda: (bytearray(5000), together.wait())) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
libc.fflush(None)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has many heaps")
@pytest.mark.parametrize(
    ("settings", "word", "has_one_heap"),
    [({}, "one", True), ({}, "none", False), ({"MALLOC_ARENA_MAX": "8"}, "one", False)],
)
@pytest.mark.large
def test_threads_share_one_heap_by_default(settings: dict[str, str], word: str, has_one_heap: bool) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    result = subprocess.run(
        [sys.executable, "-c", CODE, word], env={**inherited, **settings}, capture_output=True, check=True
    )
    assert result.stdout.count(b"<heap nr=") >= 1
    assert (result.stdout.count(b"<heap nr=") == 1) == has_one_heap


TRIMMING_CODE = """
import resource
from pathlib import Path
from meshhub.http.server.memory import trim_heap, use_one_heap

def taken():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

use_one_heap()
pieces = [bytes(1000) for _ in range(100_000)]
kept = pieces[::50]
del pieces
before = taken()
trim_heap()
assert before - taken() > 40_000_000, (before, taken())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can trim its heap")
def test_free_memory_between_live_blocks_is_returned_to_the_system() -> None:
    subprocess.run([sys.executable, "-c", TRIMMING_CODE], check=True)


def test_systems_without_glibc_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: None) -> None:
        raise TypeError("Windows knows no library without a name")

    monkeypatch.setattr("ctypes.CDLL", missing)
    use_one_heap()
    trim_heap()


def test_loaded_modules_are_exempt_from_garbage_collection() -> None:
    code = (
        "import gc; from meshhub.http.server.memory import freeze_objects\n"
        "freeze_objects(); assert len(gc.get_objects()) < 1000"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
