"""Process that converts and measures files one after the other.

Reads a line of JSON per file, `[interface, name, path]`, and writes one: code, processor seconds, megabytes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import bombs
from meshhub import MeshhubError, Registry, Source, Target

REGISTRY = Registry(entry_points=False)


def restarted_peak() -> float:
    """Reset the memory peak where the system can, and return the memory that the process has now, in megabytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """Return the memory peak in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def by_library(name: str, data: bytes | Path) -> str:
    """Convert in this process; return the error code, or "" for a result."""
    source = Source.from_bytes(data, name) if isinstance(data, bytes) else Source(name, path=data)
    try:
        REGISTRY.convert(source, Target(), target="stl")
    except MeshhubError as error:
        return error.error_code
    return ""


def by_program(path: str) -> str:
    """Convert all files of a folder by the command line; return its output, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "meshhub", "convert", path, "--to", "stl", "-o", folder, "--json", "-j", "1"]
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert "Traceback" not in process.stderr, process.stderr
    return process.stdout


def main() -> None:
    """Measure until standard input ends."""
    logging.disable(logging.CRITICAL)
    for name, data in bombs.WARM:
        by_library(name, data)
    for line in sys.stdin:
        interface, name, path = json.loads(line)
        before, started = restarted_peak(), os.times()
        if interface == "library":
            result = by_library(name, Path(path))
            megabytes = peak() - before
        else:
            result = by_program(path)
            megabytes = 0.0  # the memory of whole programs is not meaningful
        end = os.times()
        seconds = sum(end[:4]) - sum(started[:4])
        sys.stdout.write(json.dumps([result, seconds, megabytes]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
