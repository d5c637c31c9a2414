"""Random parts in the style of real ones, as CAD programs triangulate them, through meshhub and back to CAD.

    python benchmarks/step_designs.py [--parts 2000] [--first 0] [--jobs 2] [--folder FOLDER] [--results FILE]
                                      [--without-kernel] [--surfaces freeform]

`tests/support/cad_parts` builds the parts. Half of them are triangulated by OpenCASCADE, a fifth by gmsh where it is
installed, the others are made like those of OpenSCAD. OpenCASCADE checks the returned files: a valid solid for each
body with the volume that the report states, and how many faces have the kind, surface and bounds of a true face.
Cylinders of fewer than three facets are not counted. meshhub reads each valid file back, and the solids that are open
as triangles are counted.

A part is *silent* if it is invalid and the report says that OpenCASCADE found it valid. Parts that OpenCASCADE cannot
build, or whose triangles do not close, are left out. `--folder` keeps the triangles and STEP files, and reuses the
triangles. `--results` adds a line of JSON for each part as it ends. `--without-kernel` leaves only the check of the
writer.
"""

from __future__ import annotations

import argparse
import json
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support")]

PART_TIMEOUT_S = 120.0
"""Seconds for one part; OpenCASCADE hangs on some."""
OPEN_CODES = {"open_solid", "faces_not_meshed", "faces_lost"}
"""Notes of a valid file that OpenCASCADE cannot turn into closed triangles."""
MIN_FACETS_COUNT = 3
"""Facets of a curved face from which its recognition is counted."""


def convert_part(number: int, folder: Path, surfaces: str) -> dict[str, Any]:
    """Make, convert and judge a part; return one row of results."""
    from cad_parts.parts import make
    from cad_parts.truth import judge_part
    from meshhub import MeshhubError, Registry, Source

    part, truth = folder / f"{number}.stl", folder / f"{number}.json"
    if not truth.exists():
        try:
            design = make(number, str(part))
        except Exception as error:  # OpenCASCADE raises many kinds where an operation is impossible
            design = {"left out": f"{type(error).__name__}: {error}"[:80]}
        truth.write_text(json.dumps(design), encoding="utf-8")
    row: dict[str, Any] = json.loads(truth.read_text(encoding="utf-8"))
    faces = row.pop("faces", [])
    if "left out" not in row and not Registry().inspect(Source.from_path(part)).model.watertight:
        row["left out"] = "its triangles do not close"
    if "left out" in row:
        return row
    back = folder / f"{number}.step"
    began = time.process_time()
    try:
        report = Registry().convert(part, back, step_surfaces=surfaces)
    except MeshhubError as error:
        return row | {"seconds": time.process_time() - began, "figures": {}, "notes": [], "fault": error.error_code}
    row["seconds"] = time.process_time() - began
    figures: dict[str, Any] = {}
    for step in report.steps:
        figures |= step.figures
    notes = [note.code for note in report.notes]
    row |= {"figures": figures, "notes": notes} | judge_part(back, figures, faces)
    if not row["fault"]:
        codes = {note.code for note in Registry().inspect(Source.from_path(back)).notes}
        row["not read back"] = sorted(codes & OPEN_CODES)
    return row


def work(folder: Path, surfaces: str, *, without_kernel: bool) -> None:
    """Convert the parts whose numbers come from standard input; print their rows."""
    import OCP.STEPControl  # noqa: F401 - loaded once, as in the workers of the service

    from meshhub.builtin_plugins.step import writer

    if without_kernel:
        writer.is_available = lambda: False
    for line in sys.stdin:
        number = int(line)
        print(json.dumps({"number": number} | convert_part(number, folder, surfaces)), flush=True)


class _Workers:
    """Processes that convert parts; one that crashes or hangs is replaced."""

    def __init__(self, numbers: list[int], folder: Path, surfaces: str, *, without_kernel: bool) -> None:
        self._numbers: queue.Queue[int] = queue.Queue()
        for number in numbers:
            self._numbers.put(number)
        self.rows: queue.Queue[dict[str, Any]] = queue.Queue()
        self._command = [sys.executable, __file__, "work", str(folder), surfaces]
        self._command += ["--without-kernel"] * without_kernel

    def run(self) -> None:
        """Convert parts until none is left."""
        process = self._start()
        while not self._numbers.empty():
            try:
                number = self._numbers.get_nowait()
            except queue.Empty:
                break
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            timer = threading.Timer(PART_TIMEOUT_S, process.kill)
            timer.start()
            line = process.stdout.readline()
            while line and not line.startswith("{"):
                line = process.stdout.readline()
            timer.cancel()
            if line:
                self.rows.put(json.loads(line))
                continue
            status = process.wait()
            self.rows.put({"number": number, "left out": f"process ended with status {status}"})
            process = self._start()
        assert process.stdin is not None
        process.stdin.close()
        process.wait()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def verdict(row: dict[str, Any]) -> str:
    """Return the class of a row: valid, error, left out, or how an invalid file is reported."""
    if "left out" in row:
        return "left out"
    if not row["fault"]:
        return "valid"
    if not row["figures"]:
        return "error"
    is_reported = "invalid_solid" in row["notes"] or row["figures"].get("valid_solids") not in (
        None,
        row["figures"]["solids"],
    )
    if is_reported:
        return "invalid and reported"
    return "silent" if row["figures"]["step_check"] == "kernel" else "invalid, checked by the writer only"


def summarize(rows: list[dict[str, Any]]) -> None:
    """Print totals."""
    from cad_parts.truth import KINDS

    counts = Counter(verdict(row) for row in rows)
    print(", ".join(f"{count} {name}" for name, count in counts.most_common()))
    for reason, count in Counter(row["left out"].split(":")[0] for row in rows if "left out" in row).most_common():
        print(f"  left out, {reason}: {count}")
    judged = [row for row in rows if "left out" not in row]
    unread = [row["number"] for row in judged if row.get("not read back")]
    print(f"valid, but open or not meshed when read back: {len(unread)} {unread}")
    print(f"simpler faces in {sum('flat_faces' in row['notes'] for row in judged)} parts")
    for program in ("occ", "gmsh", "scad"):
        mine = [row for row in judged if row["triangulation"]["program"] == program and "true_faces" in row]
        faces = [face for row in mine for face in row["true_faces"]]
        shares = []
        for kind in KINDS:
            is_found = [
                f["found"] for f in faces if f["kind"] == kind and f["facets"] >= (kind != "Plane") * MIN_FACETS_COUNT
            ]
            if is_found:
                shares.append(f"{kind} {sum(is_found)}/{len(is_found)} {sum(is_found) / len(is_found):.1%}")
        print(f"{program}: {len(mine)} parts; {', '.join(shares)}")
    seconds = [row["seconds"] for row in judged]
    if seconds:
        print(f"{sum(row['triangles'] for row in judged)} triangles in {sum(seconds):.1f} s, "
              f"median {statistics.median(seconds):.3f} s")  # fmt: skip


def main() -> int:
    """Convert and check the parts; print those that are invalid, and totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--without-kernel", action="store_true")
    parser.add_argument("--surfaces", default="freeform", choices=["analytic", "freeform", "planar"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        numbers = list(range(options.first, options.first + options.parts))
        workers = _Workers(numbers, folder, options.surfaces, without_kernel=options.without_kernel)
        threads = [threading.Thread(target=workers.run, daemon=True) for _ in range(options.jobs)]
        for thread in threads:
            thread.start()
        rows = []
        for _ in numbers:
            row = workers.rows.get()
            rows.append(row)
            if options.results:
                with options.results.open("a", encoding="utf-8") as results:
                    results.write(json.dumps(row) + "\n")
            if verdict(row) not in ("valid", "left out"):
                print(f"part {row['number']} ({row['style']}: {', '.join(row['features'])}; "
                      f"{row['triangulation']['program']}): {row['fault']}, {verdict(row)}", flush=True)  # fmt: skip
    summarize(rows)
    return 1 if any(verdict(row) == "silent" for row in rows) else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(Path(sys.argv[2]), sys.argv[3], without_kernel=sys.argv[4:] == ["--without-kernel"])
        sys.exit(0)
    sys.exit(main())
