"""Peak memory of conversions between binary formats: `python benchmarks/memory.py [--csv FILE]`.

A closed sphere of two million triangles is converted in a process of its own for each pair of formats, after a small
model that imports everything; the peak is what comes on top of that. Linux only, because the peak is reset through
/proc/self/clear_refs.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import platform
import re
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

from meshhub import Registry
from speed import write_sphere

FORMATS = (".stl", ".ply", ".glb")
FACE_COUNT, SMALL_FACE_COUNT = 2_000_000, 2_000
RESET_PEAK = "5"
"""Text that sets the peak to the present memory (proc(5))."""


def read_peak_mb() -> float:
    """Return the largest resident memory since the last reset."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    match = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert match is not None
    return int(match[1]) / 1024


def measure(source: Path, target: Path) -> None:
    """Convert in this process, and print the peak beyond that of the imports in MB."""
    registry = Registry(entry_points=False)
    registry.convert(source.with_stem("small"), target)
    Path("/proc/self/clear_refs").write_text(RESET_PEAK, encoding="ascii")
    before = read_peak_mb()
    registry.convert(source, target)
    print(read_peak_mb() - before)


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--inner", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inner:
        measure(*arguments.inner)
        return
    rows = []
    with tempfile.TemporaryDirectory() as name, Registry(entry_points=False) as registry:
        folder = Path(name)
        for stem, count in (("large", FACE_COUNT), ("small", SMALL_FACE_COUNT)):
            sphere = write_sphere(folder, count, ".stl")
            for suffix in FORMATS:
                registry.convert(sphere, folder / f"{stem}{suffix}")
        for source_suffix, target_suffix in product(FORMATS, FORMATS):
            source, target = folder / f"large{source_suffix}", folder / f"result{target_suffix}"
            command = [sys.executable, __file__, "--inner", str(source), str(target)]
            peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            size = source.stat().st_size / 2**20
            rows.append((source_suffix[1:], target_suffix[1:], f"{size:.0f}", f"{peak:.0f}", f"{peak / size:.1f}"))
            print(*rows[-1], sep="\t", flush=True)
    if arguments.csv is not None:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("machine", "recorded", "from", "to", "source_mb", "peak_mb", "peak_per_source"))
            writer.writerows((platform.machine(), datetime.date.today().isoformat(), *row) for row in rows)


if __name__ == "__main__":
    main()
