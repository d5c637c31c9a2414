"""Repair benchmark: run the entrants on all sets, judge the written files, print the table.

    python -m benchmarks.repair [--only TEXT] [--entrants meshhub,trimesh] [--seeds 2] [--failures] [--csv FILE]

`MESHHUB_CORPUS` names a folder of real files. `REPAIR_PEERS_PYTHON` is the Python of an environment with the peers
(default: this one); a peer that is not installed is skipped, with the reason.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.repair import recipes
from benchmarks.repair.entrants import ENTRANTS
from benchmarks.repair.judge import Case, Verdict, judge, write_stl

TIMEOUT_S = 60.0
"""Seconds for one file; a longer repair counts as a crash."""

ROOT = Path(__file__).parents[2]


@dataclass
class Tally:
    """Results of one entrant."""

    verdicts: list[tuple[Case, Verdict]] = field(default_factory=list)
    crashes: int = 0
    cpu_s: float = 0.0
    skipped: str = ""


class Worker:
    """Process of one entrant, started again after a crash."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: subprocess.Popen[str] | None = None

    def repair(self, source: Path, target: Path) -> tuple[float, str, str]:
        """Return the CPU seconds, the error, and what is not installed."""
        if self.process is None:
            own = self.name.startswith("meshhub")
            python = sys.executable if own else os.environ.get("REPAIR_PEERS_PYTHON", sys.executable)
            self.process = subprocess.Popen(
                [python, "-m", "benchmarks.repair.worker", self.name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
            )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps([str(source), str(target)]) + "\n")
            self.process.stdin.flush()
            with selectors.DefaultSelector() as ready:
                ready.register(self.process.stdout, selectors.EVENT_READ)
                line = self.process.stdout.readline() if ready.select(TIMEOUT_S) else ""
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
            return 0.0, f"crashed, or took more than {TIMEOUT_S:.0f} s", ""
        seconds, error, missing = json.loads(line)
        return seconds, error, missing

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def make_cases(seeds: int) -> Iterator[Case]:
    """Yield all cases; the real files only with MESHHUB_CORPUS."""
    yield from recipes.make_damaged(seeds)
    yield from recipes.make_double_shells()
    yield from recipes.make_sheets(seeds)
    yield from recipes.make_valid(seeds)
    if corpus := os.environ.get("MESHHUB_CORPUS"):
        yield from recipes.read_real(Path(corpus))


def run(name: str, cases: list[tuple[Case, Path]], folder: Path) -> Tally:
    """Repair all files with one entrant, and judge the results."""
    tally = Tally()
    worker = Worker(name)
    for case, source in cases:
        # double shells are the task of `repair_solid`; everything else that of a plain repair
        if (name == "meshhub" and case.group == "double shells") or (
            name == "meshhub, repair_solid" and case.group != "double shells"
        ):
            continue
        target = folder / "result.stl"
        target.unlink(missing_ok=True)
        seconds, error, missing = worker.repair(source, target)
        if missing:
            tally.skipped = missing
            break
        tally.cpu_s += seconds
        tally.crashes += bool(error) or not target.exists()
        tally.verdicts.append((case, Verdict(False, reasons=(error,)) if error else judge(case, source, target)))
    worker.close()
    return tally


def share(values: list[bool | None]) -> str:
    """Return the rate of the values that apply."""
    applicable = [value for value in values if value is not None]
    return f"{sum(applicable)}/{len(applicable)} ({sum(applicable) / len(applicable):.1%})" if applicable else "-"


def columns(tally: Tally) -> dict[str, str]:
    """Return the cells of one entrant."""
    verdicts = tally.verdicts
    solid = [verdict for case, verdict in verdicts if case.expect == "solid"]
    judged = [(case, verdict) for case, verdict in verdicts if case.expect == "solid"]
    return {
        "right": share([verdict.right for _, verdict in verdicts]),
        "damaged": share([verdict.right for case, verdict in verdicts if case.group == "damaged"]),
        "double_shells": share([verdict.right for case, verdict in verdicts if case.group == "double shells"]),
        "real": share([verdict.right for case, verdict in verdicts if case.group == "real"]),
        "closed": share([bool(verdict.closed) for verdict in solid]),
        "shape": share([bool(verdict.shape) for case, verdict in judged if case.truth is not None]),
        "bodies": share([bool(verdict.bodies) for case, verdict in judged if case.bodies is not None]),
        "unchanged": share([bool(verdict.unchanged) for case, verdict in verdicts if case.expect == "valid"]),
        "sheets": share([bool(verdict.sheet) for case, verdict in verdicts if case.expect == "sheet"]),
        "crashes": str(tally.crashes),
        "cpu_s": f"{tally.cpu_s:.1f}",
    }


def write_csv(path: Path, rows: list[dict[str, object]]) -> None:
    """Write the table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        head: dict[str, object] = {"machine": "", "recorded": time.strftime("%Y-%m-%d")}
        writer = csv.DictWriter(file, [*head, *rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**head, **row} for row in rows)


def main() -> None:
    """Print the table, and write it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only files whose group or name contains this text")
    parser.add_argument(
        "--entrants", default=",".join(ENTRANTS).replace("meshhub, ", "meshhub; "), help="names, with ';' for ','"
    )
    parser.add_argument("--seeds", type=int, default=2, help="variants of each damage")
    parser.add_argument("--failures", action="store_true", help="list the wrong results")
    parser.add_argument("--csv", type=Path, help="file to write the table to")
    arguments = parser.parse_args()
    chosen = [name.replace(";", ",") for name in arguments.entrants.split(",")]
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="meshhub-repair-") as name:
        folder = Path(name)
        cases = []
        for number, case in enumerate(make_cases(arguments.seeds)):
            if arguments.only in f"{case.group}: {case.name}":
                source = folder / f"{number}.stl"
                write_stl(source, case.parts)
                cases.append((case, source))
        for entrant in chosen:
            start = time.monotonic()
            tally = run(entrant, cases, folder)
            if tally.skipped:
                print(f"skipped {entrant}: {tally.skipped}")
                continue
            cells = columns(tally)
            if not rows:
                print("| entrant | " + " | ".join(cells) + " |\n|---|" + "---|" * len(cells))
            rows.append({"entrant": entrant, "files": len(tally.verdicts), **cells})
            print(f"| {entrant} | " + " | ".join(cells.values()) + " |", flush=True)
            if arguments.csv:
                write_csv(arguments.csv, rows)
            if arguments.failures:
                for case, verdict in tally.verdicts:
                    if not verdict.right:
                        print(f"    {case.group}: {case.name}: {'; '.join(verdict.reasons)}")
                print(f"    {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
