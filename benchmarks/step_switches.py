"""The STEP writer with each of its mechanisms switched off: which files change, and how.

    python benchmarks/step_switches.py [FOLDER…] [--parts 40] [--csv FILE] [--mechanisms NAME …]

The cases are random parts of `tests/support/cad_parts`, the solids of `step_plausible.py`, and the STL files of up to
3,000 triangles in FOLDER. Each mechanism has a process of its own, in which one function does nothing. A row counts the
cases with another number of faces, invalid files, and flat solids that became round, and has the processor time over
that of the whole writer. Lines are those of the module.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime
import importlib
import multiprocessing
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from cad_parts.parts import make
from cad_parts.triangles import write_stl
from meshhub import MeshhubError, Registry
from step_plausible import flat_cases, mesh_of, round_cases

STEP = "meshhub.builtin_plugins.step"
MAX_FACES = 3000
CASE_TIMEOUT_S = 60
NOTHING = np.empty(0, np.intp)

MECHANISMS: dict[str, tuple[str, str, str, Callable[..., Any]]] = {
    "spare points": ("facets.spare_points", "draft", "remove_spare_points", lambda *given: given),
    "slits": ("solids.slits", "draft", "close_slits", lambda *given: given),
    "chord cuts": ("recognition.chord_cuts", "draft", "assign_cut_facets", lambda *given: given[3]),
    "cut corners": ("recognition.cut_corners", "draft", "move_cut_corners", lambda *given: (given[0], NOTHING)),
    "design values": ("recognition.design_values", "draft", "round_to_design_values", lambda *given: given[1]),
    "patches": ("recognition.patch_search", "draft", "add_patches", lambda *given: given[3]),
    "roundness": ("recognition.roundness", "draft", "find_implausible", lambda *_: NOTHING),
    "touching arcs": ("solids.touching_arcs", "solids.model_check", "find_touching", lambda *given: given[1] < 0),
    "band seams": ("solids.band_seams", "solids.builder", "find_bands", lambda *_: ()),
    "pieces": ("recognition.recognize", "recognition.recognize", "_Search.try_all_pieces", lambda _: None),
    "contests": ("recognition.recognize", "recognition.recognize", "_Search.hold_contest", lambda _, **__: False),
    "second beginning": ("recognition.regular_mesh", "beginnings", "regularize", lambda _: None),
}
"""Module of each mechanism, module that calls it, its function, and what replaces that."""


def switch_off(mechanism: str) -> None:
    """Replace the function of a mechanism in this process."""
    _, caller, path, replacement = MECHANISMS[mechanism]
    target: Any = importlib.import_module(f"{STEP}.{caller}")
    *owners, name = path.split(".")
    for owner in owners:
        target = getattr(target, owner)
    setattr(target, name, replacement)


def list_cases(folders: list[Path], parts: int, scratch: Path) -> list[tuple[Path, bool]]:
    """Return the files of the cases, and whether each must stay flat."""
    cases = []
    for number in range(parts):
        # gmsh is not installed everywhere
        with contextlib.suppress(ImportError, ValueError, RuntimeError):
            make(number, str(scratch / f"part-{number}.stl"))
            cases.append((scratch / f"part-{number}.stl", False))
    solids = [*flat_cases(), *round_cases()]
    for number, case in enumerate(solids[:: max(1, len(solids) // parts)]):
        mesh = mesh_of(case.solid)
        write_stl(str(scratch / f"solid-{number}.stl"), mesh.vertices[mesh.faces])
        cases.append((scratch / f"solid-{number}.stl", case.rounds == 0))
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix.lower() == ".stl")
    # a triangle has 50 bytes, and more as text
    small = [path for path in files if path.stat().st_size <= 84 + 50 * MAX_FACES]
    return cases + [(path, False) for path in small if is_model(path)]


def is_model(path: Path) -> bool:
    """Return whether a file can be read."""
    try:
        Registry(entry_points=False).inspect(path)
    except MeshhubError:
        return False
    return True


def _end(*_: object) -> None:
    raise TimeoutError


def run(mechanism: str, cases: list[tuple[Path, bool]]) -> list[tuple[int, bool, int, float]]:
    """Return the faces, whether all solids are valid, the curved faces, and the seconds of each case."""
    if mechanism:
        switch_off(mechanism)
    registry, rows = Registry(entry_points=False), []
    signal.signal(signal.SIGALRM, _end)
    with tempfile.TemporaryDirectory() as folder:
        for path, _ in cases:
            began = time.process_time()
            signal.alarm(CASE_TIMEOUT_S)
            try:
                figures: dict[str, Any] = registry.convert(path, Path(folder, "part.step")).steps[-1].figures
                valid = figures.get("valid_solids", 0) == figures.get("solids", 0)
                row = figures["faces"], valid, figures["faces"] - figures["planes"]
            except (MeshhubError, TimeoutError):
                row = 0, False, 0
            signal.alarm(0)
            rows.append((*row, time.process_time() - began))
    return rows


def _send(connection: Any, mechanism: str, cases: list[tuple[Path, bool]]) -> None:
    connection.send(run(mechanism, cases))


def run_apart(mechanism: str, cases: list[tuple[Path, bool]]) -> list[tuple[int, bool, int, float]]:
    """Run the cases in a process of their own."""
    mine, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_send, args=(other, mechanism, cases))
    process.start()
    other.close()
    rows: list[tuple[int, bool, int, float]] = mine.recv()
    process.join()
    return rows


def compare(
    mechanism: str, cases: list[tuple[Path, bool]], whole: list[Any], without: list[Any]
) -> Iterator[tuple[str, object]]:
    """Return the columns of a row."""
    pairs = list(zip(cases, whole, without, strict=True))
    yield "machine", platform.machine()
    yield "recorded", datetime.date.today().isoformat()
    yield "mechanism", mechanism
    module = f"{STEP}.{MECHANISMS[mechanism][0]}"
    yield "lines", len(Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8").splitlines())
    yield "cases", len(pairs)
    yield "more_faces", sum(other[0] > first[0] for _, first, other in pairs)
    yield "fewer_faces", sum(0 < other[0] < first[0] for _, first, other in pairs)
    yield "faces_ratio", round(sum(row[0] for row in without) / sum(row[0] for row in whole), 3)
    yield "invalid", sum(first[1] and not other[1] for _, first, other in pairs)
    yield "flat_became_round", sum(flat and other[2] > first[2] for (_, flat), first, other in pairs)
    yield "cpu_ratio", round(sum(row[3] for row in without) / sum(row[3] for row in whole), 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="folders of STL files")
    parser.add_argument("--parts", type=int, default=40, help="random parts, and solids of step_plausible.py")
    parser.add_argument("--mechanisms", nargs="*", choices=MECHANISMS, default=list(MECHANISMS), metavar="NAME")
    parser.add_argument("--csv", type=Path, help="table to write")
    arguments = parser.parse_args()
    table: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        cases = list_cases(arguments.folders, arguments.parts, Path(scratch))
        whole = run_apart("", cases)
        print(f"{len(cases)} cases, {sum(not row[1] for row in whole)} without a valid solid", flush=True)
        for mechanism in arguments.mechanisms:
            table.append(dict(compare(mechanism, cases, whole, run_apart(mechanism, cases))))
            print(*(f"{name}={value}" for name, value in list(table[-1].items())[2:]), flush=True)
    if arguments.csv:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
