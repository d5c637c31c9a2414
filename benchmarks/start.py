"""Time of the shortest commands: `python benchmarks/start.py [COUNT] [PYTHON]` prints rows of `results/start.csv`.

CPU time of all processes of a command, user and system, and its duration, each the median of COUNT runs (default: 15).
The commands take turns, so that a busy moment of the machine meets all of them. `over_python_ms` is the CPU time beyond
that of `python -c pass`. Bytecode is compiled before, as in an installed package.
"""

from __future__ import annotations

import csv
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from speed import write_sphere

FACES_70_KB = 1400
RUN_COUNT = 15


class Times(NamedTuple):
    """Seconds of one run."""

    cpu_s: float
    wall_s: float


def list_commands(python: str, folder: Path) -> dict[str, list[str]]:
    """Return the commands by name; the first one is the base."""
    source = write_sphere(folder, FACES_70_KB, ".stl")
    meshhub = [python, "-m", "meshhub"]
    targets = ("3mf", "obj", "glb", "ply", "stl")
    convert = {
        f"convert 70 kB STL → {target.upper()}": [
            *(*meshhub, "convert", str(source), "--output", str(folder / f"result.{target}"), "--force", "--quiet"),
        ]
        for target in targets
    }
    return {
        "python -c pass": [python, "-c", "pass"],
        "meshhub --help": [*meshhub, "--help"],
        "meshhub formats": [*meshhub, "formats"],
        "meshhub explain": [*meshhub, "explain", str(source), "3mf"],
        **convert,
    }


def run(command: list[str], environment: dict[str, str]) -> Times:
    """Run a command, which waits for its own processes. Raises CalledProcessError."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Times(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall_s)


def main() -> None:
    """Measure and print the rows."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RUN_COUNT
    python = sys.argv[2] if len(sys.argv) > 2 else sys.executable
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="meshhub-start-") as folder:
        commands = list_commands(python, Path(folder))
        for command in commands.values():
            run(command, environment)
        times: dict[str, list[Times]] = {name: [] for name in commands}
        for _ in range(count):
            for name, command in commands.items():
                times[name].append(run(command, environment))
    cpu_ms = {name: 1000 * statistics.median(each.cpu_s for each in runs) for name, runs in times.items()}
    base_ms = next(iter(cpu_ms.values()))
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("command", "cpu_ms", "over_python_ms", "wall_ms"))
    for name, runs in times.items():
        wall_ms = 1000 * statistics.median(each.wall_s for each in runs)
        table.writerow((name, f"{cpu_ms[name]:.0f}", f"{cpu_ms[name] - base_ms:.0f}", f"{wall_ms:.0f}"))


if __name__ == "__main__":
    main()
