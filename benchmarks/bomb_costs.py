"""Cost of small files that demand much: measured in the library and in the service.

python benchmarks/bomb_costs.py [--all]

Prints the ten files, or all, that take the most processor time through either interface: bytes, result, processor
seconds, megabytes beyond those that the process had before. Client, service and conversion run in one process, so that
the measurement covers all of them. The exit status is 1 if a file takes a second or 100 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support")]

import bombs  # noqa: E402
from bomb_measurements import by_library, peak, restarted_peak  # noqa: E402
from http_serving import Running, serving  # noqa: E402

MAX_CPU_S = 1.0
"""Processor seconds that one file may take."""

MAX_MEGABYTES = 100.0
"""Memory that one file may take."""

PRINTED_COUNT = 10
Interface = Callable[[str, bytes], str]


class Row(NamedTuple):
    """Measurement of one file through one interface."""

    seconds: float
    megabytes: float
    size: int
    interface: str
    label: str
    result: str


def convert_by_service(running: Running, key: str, name: str, data: bytes) -> str:
    """Convert a file, or an archive as a batch; return the error code, or "" for a result."""
    send = running.batch if name.endswith(".zip") else running.convert
    response = send(data, **({} if name.endswith(".zip") else {"name": name}), target="stl", headers={"X-Api-Key": key})
    return "" if response.status_code == 200 else str(response.json()["error_code"])


@contextlib.contextmanager
def open_interfaces() -> Iterator[dict[str, Interface]]:
    """Yield both interfaces after a warm-up."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), {}) as running:
        key, _ = running.keys.create("pro", label="bombs")
        interfaces: dict[str, Interface] = {
            "library": by_library,
            "service": lambda name, data: convert_by_service(running, key, name, data),
        }
        for name, data in bombs.WARM:
            for convert in interfaces.values():
                convert(name, data)
        yield interfaces


def measure() -> Iterator[Row]:
    """Yield a row for every file and every interface that accepts it."""
    with open_interfaces() as interfaces:
        archives = ((f"archive: {label}", archive) for label, archive in bombs.ARCHIVES.items())
        for label, bomb in [*bombs.MODELS.items(), *archives]:
            data = bomb.make()
            for name, convert in interfaces.items():
                if name == "library" and bomb.name.endswith(".zip"):
                    continue
                before, started = restarted_peak(), time.process_time()
                result = convert(bomb.name, data)
                yield Row(time.process_time() - started, peak() - before, len(data), name, label, result or "converted")


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="print all files, not only the ten with the highest cost")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rows = sorted(measure(), reverse=True)
    print("| file | bytes | interface | result | CPU s | MB |\n|---|---|---|---|---|---|")
    for row in rows if arguments.all else rows[:PRINTED_COUNT]:
        print(
            f"| {row.label} | {row.size} | {row.interface} | {row.result} | {row.seconds:.2f} | {row.megabytes:.0f} |"
        )
    over = [row for row in rows if row.seconds >= MAX_CPU_S or row.megabytes >= MAX_MEGABYTES]
    largest = max(row.megabytes for row in rows)
    print(
        f"\n{len(rows)} rows, {len(over)} of them over {MAX_CPU_S:g} s or {MAX_MEGABYTES:g} MB; "
        f"largest {largest:.0f} MB"
    )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
