"""Conversion of damaged STEP files in isolated workers: each gives a result or a coded error before its deadline.

    MESHHUB_CORPUS=… python benchmarks/step_mutations.py [--count 300] [--deadline 3] [--seed 1] [files …]

Each mutation damages one file in one way (default: the files of the corpus). It is converted to STL in an isolated
worker, while another caller converts a valid STL file repeatedly. The table counts the outcomes by kind of damage; the
last lines show the slowest answers. The exit status is 1 if there is an outcome other than a result or a coded error,
or an answer after the deadline.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from meshhub import Isolated, MeshhubError, Registry, Source, Target

GRACE_S = 1.5
"""Seconds beyond the deadline to start a worker and to kill it."""

_HEADER_BYTES = 300
"""Bytes at the beginning that stay; without a header, readers reject a file before they parse its entities."""

_REFERENCE = re.compile(rb"#\d+")
_NUMBER = re.compile(rb"-?\d+\.\d*(?:E[-+]?\d+)?")
_KEYWORD = re.compile(rb"=\s*([A-Z_0-9]+)\(")


def _pick(pattern: re.Pattern[bytes], data: bytes, rng: random.Random) -> tuple[int, int]:
    """Return the span of a match of the pattern after a random position."""
    match = pattern.search(data, rng.randrange(len(data))) or pattern.search(data, data.find(b"DATA"))
    return match.span() if match else (len(data), len(data))


def _pick_position(data: bytes, rng: random.Random) -> int:
    """Return a random position, after the header of a file that is longer than it."""
    return rng.randrange(min(_HEADER_BYTES, len(data) // 2), len(data))


def flip_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change some bytes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 20)):
        changed[_pick_position(data, rng)] = rng.randrange(256)
    return bytes(changed)


def drop_lines(data: bytes, rng: random.Random) -> bytes:
    """Remove some entities."""
    lines = data.split(b";")
    for _ in range(min(rng.randint(1, 8), len(lines) - 1)):
        del lines[rng.randrange(min(6, len(lines) - 2), len(lines) - 1)]
    return b";".join(lines)


def drop_range(data: bytes, rng: random.Random) -> bytes:
    """Remove a range of the text."""
    start = _pick_position(data, rng)
    return data[:start] + data[start + rng.randint(1, 1 + len(data) // 4) :]


def cut_short(data: bytes, rng: random.Random) -> bytes:
    """Remove the end of the text, and sometimes restore the end mark."""
    head = data[: _pick_position(data, rng)]
    return head + (b");\nENDSEC;\nEND-ISO-10303-21;\n" if rng.random() < 0.5 else b"")


def other_references(data: bytes, rng: random.Random) -> bytes:
    """Make entities refer to other entities, to themselves, or to nothing."""
    names = _REFERENCE.findall(data)
    for _ in range(rng.randint(1, 10)):
        start, end = _pick(_REFERENCE, data, rng)
        other = rng.choice([*rng.sample(names, min(3, len(names))), b"#999999999", b"#0", b"$"])
        data = data[:start] + other + data[end:]
    return data


def other_numbers(data: bytes, rng: random.Random) -> bytes:
    """Make numbers huge, tiny, negative or missing."""
    for _ in range(rng.randint(1, 10)):
        start, end = _pick(_NUMBER, data, rng)
        value = rng.choice([b"1.E308", b"-1.E300", b"0.", b"1.E-300", b"-1.", b"1.E999", b"NAN", b"1.E9", b"$"])
        data = data[:start] + value + data[end:]
    return data


def other_types(data: bytes, rng: random.Random) -> bytes:
    """Change the types of entities."""
    names = _KEYWORD.findall(data)
    for _ in range(rng.randint(1, 5)):
        match = _KEYWORD.search(data, rng.randrange(len(data)))
        if match:
            data = data[: match.start(1)] + rng.choice(names) + data[match.end(1) :]
    return data


def repeat_range(data: bytes, rng: random.Random) -> bytes:
    """Repeat a range of the text, and thereby its ids."""
    start = _pick_position(data, rng)
    end = start + rng.randint(1, 1 + len(data) // 4)
    return data[:end] + data[start:]


KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_bytes, drop_lines, drop_range, cut_short, other_references, other_numbers, other_types, repeat_range,
)  # fmt: skip


def mutations(files: list[bytes], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield the kind of damage and the bytes; equal seeds give equal files."""
    rng = random.Random(seed)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        yield kind.__name__, kind(rng.choice(files), rng)


def outcome(registry: Registry, data: bytes, deadline: float) -> tuple[str, float]:
    """Return the outcome of a conversion (a code, or capitals for a failure) and its seconds."""
    started = time.perf_counter()
    try:
        report = registry.convert(Source.from_bytes(data, "damaged.step"), Target(), target="stl", timeout=deadline)
        result = "converted" if report.target.faces else "EMPTY RESULT"
    except MeshhubError as error:
        result = error.error_code
    except Exception as error:
        result = f"NO CODE {type(error).__name__}"
    return result, time.perf_counter() - started


class OtherCaller(threading.Thread):
    """Another caller that converts a valid file repeatedly."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(daemon=True)
        self.registry, self.slowest, self.answers, self.failures = registry, 0.0, 0, 0
        self._stopping = threading.Event()
        corners = np.random.default_rng(1).normal(size=(200, 3, 3)).astype("<f4")
        rows = np.zeros(200, [("n", "<f4", 3), ("v", "<f4", (3, 3)), ("a", "<u2")])
        rows["v"] = corners
        self._good = bytes(80) + np.uint32(200).tobytes() + rows.tobytes()

    def run(self) -> None:
        """Convert until `stop` is called."""
        while not self._stopping.wait(0.1):
            started = time.perf_counter()
            try:
                self.registry.convert(Source.from_bytes(self._good, "good.stl"), Target(), target="ply", timeout=30)
            except MeshhubError:
                self.failures += 1
            self.answers += 1
            self.slowest = max(self.slowest, time.perf_counter() - started)

    def stop(self) -> None:
        """Stop after the current answer."""
        self._stopping.set()
        self.join()


def corpus_files() -> list[Path]:
    """Return the STEP files of the corpus that convert when undamaged."""
    folder = Path(os.environ.get("MESHHUB_CORPUS", ""))
    if not (folder / "INDEX.csv").is_file():
        sys.exit("name STEP files, or set MESHHUB_CORPUS to a folder with INDEX.csv")
    with (folder / "INDEX.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["file"].startswith("step/") and row["expect"] == "converts"]
    return [folder / row["file"] for row in rows]


def main() -> int:
    """Convert all mutations and print the table."""
    parser = argparse.ArgumentParser(description="damaged STEP files through isolated workers")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--deadline", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    files = [path.read_bytes() for path in arguments.files or corpus_files()]
    workers = (os.cpu_count() or 1) + 1
    registry = Registry(engine=Isolated(workers=workers))
    other_caller = OtherCaller(registry)
    damaged = list(mutations(files, arguments.count, arguments.seed))
    # the first conversion loads the libraries
    outcome(registry, files[0], 60)
    other_caller.start()
    started = time.perf_counter()
    with ThreadPoolExecutor(workers - 1) as pool:
        outcomes = list(pool.map(lambda mutation: outcome(registry, mutation[1], arguments.deadline), damaged))
    seconds = time.perf_counter() - started
    other_caller.stop()
    registry.close()

    codes = sorted({code for code, _ in outcomes})
    table = Counter((kind, code) for (kind, _), (code, _) in zip(damaged, outcomes, strict=True))
    print(f"{'':18}" + "".join(f"{code:>20}" for code in codes))
    for kind in KINDS:
        print(f"{kind.__name__:18}" + "".join(f"{table[kind.__name__, code]:20}" for code in codes))
    print(f"{'all':18}" + "".join(f"{sum(actual == code for actual, _ in outcomes):20}" for code in codes))
    slowest = max(seconds for _, seconds in outcomes)
    print(f"{arguments.count} files of {len(files)} in {seconds:.0f} s, the slowest {slowest:.2f} s")
    print(
        f"another caller: {other_caller.answers} answers, slowest {other_caller.slowest:.2f} s, "
        f"{other_caller.failures} failed"
    )
    wrong = (
        [code for code in codes if code.upper() == code]
        or slowest > arguments.deadline + GRACE_S
        or other_caller.failures
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
