"""A process of its own in which files are converted and measured, one after the other.

Reads a line of JSON for each, `[door, name, path]`, and answers with one: code, processor seconds, megabytes.
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
    """The memory that the process has now, from which its highest is counted anew where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """The highest memory so far in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def by_library(name: str, data: bytes | Path) -> str:
    """Convert in this process; how it ended."""
    source = Source.from_bytes(data, name) if isinstance(data, bytes) else Source(name, path=data)
    try:
        REGISTRY.convert(source, Target(), to="stl")
    except MeshhubError as error:
        return error.code
    return ""


def by_program(path: str) -> str:
    """Convert all files of a folder by the command line; what it said, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "meshhub", "convert", path, "--to", "stl", "-o", folder, "--json", "-j", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def main() -> None:
    """Answer until nobody asks."""
    logging.disable(logging.CRITICAL)
    for name, data in bombs.WARM:
        by_library(name, data)
    for line in sys.stdin:
        door, name, path = json.loads(line)
        before, started = restarted_peak(), os.times()
        if door == "library":
            said = by_library(name, Path(path))
            megabytes = peak() - before
        else:
            said = by_program(path)
            megabytes = 0.0  # that of whole programs tells nothing
        ended = os.times()
        seconds = sum(ended[:4]) - sum(started[:4])
        sys.stdout.write(json.dumps([said, seconds, megabytes]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
