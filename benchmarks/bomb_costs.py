"""Small files that would cost much: what it costs to refuse each, by the library and by the service.

python benchmarks/bomb_costs.py [--all]

Prints the ten that cost the most processor time by either door, or all: bytes, what was told, seconds of
processor time, megabytes beyond what the process had before. The service runs client, server and conversion in
one process, so that what is measured is all there is. Exits with 1 if one takes a second or 100 MB.
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

SECONDS = 1.0
MEGABYTES = 100.0
SHOWN = 10
Door = Callable[[str, bytes], str]


class Row(NamedTuple):
    """One bomb at one door."""

    seconds: float
    megabytes: float
    size: int
    door: str
    what: str
    told: str


def by_service(running: Running, key: str, name: str, data: bytes) -> str:
    """How the service answers; an archive is a batch."""
    ask = running.batch if name.endswith(".zip") else running.convert
    answer = ask(data, **({} if name.endswith(".zip") else {"name": name}), target="stl", headers={"X-Api-Key": key})
    return "" if answer.status_code == 200 else str(answer.json()["error_code"])


@contextlib.contextmanager
def doors() -> Iterator[dict[str, Door]]:
    """Both ways in, warm."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), {}) as running:
        key, _ = running.keys.create("pro", label="bombs")
        both: dict[str, Door] = {
            "library": by_library,
            "service": lambda name, data: by_service(running, key, name, data),
        }
        for name, data in bombs.WARM:
            for door in both.values():
                door(name, data)
        yield both


def measured() -> Iterator[Row]:
    """Every bomb through every door that takes it."""
    with doors() as both:
        for what, bomb in [*bombs.MODELS.items(), *((f"archive: {what}", one) for what, one in bombs.ARCHIVES.items())]:
            data = bomb.make()
            for name, door in both.items():
                if name == "library" and bomb.name.endswith(".zip"):
                    continue
                before, started = restarted_peak(), time.process_time()
                told = door(bomb.name, data)
                yield Row(time.process_time() - started, peak() - before, len(data), name, what, told or "converted")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="print all, not the ten that cost the most")
    told = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rows = sorted(measured(), reverse=True)
    print("| file | bytes | door | told | CPU s | MB |\n|---|---|---|---|---|---|")
    for row in rows if told.all else rows[:SHOWN]:
        print(f"| {row.what} | {row.size} | {row.door} | {row.told} | {row.seconds:.2f} | {row.megabytes:.0f} |")
    over = [row for row in rows if row.seconds >= SECONDS or row.megabytes >= MEGABYTES]
    largest = max(row.megabytes for row in rows)
    print(f"\n{len(rows)} rows, {len(over)} of them over {SECONDS:g} s or {MEGABYTES:g} MB; largest {largest:.0f} MB")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
