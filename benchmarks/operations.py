"""Every operation, and random pairs and triples of them, on real parts at their own size.

    python benchmarks/operations.py FOLDER… --csv RESULT.csv [--parts 60] [--chains 300] [--seconds 3000] [--seed 7]
    python benchmarks/operations.py --csv RESULT.csv --summary

The parts are files of 1,000 to 400,000 faces that manifold3d accepts as solids as they stand, 5 to 600 mm long. Each
chain runs in a process of its own. Its result is right if each part is a solid of manifold3d, after its numbers
were rounded to 32 bits and equal points were welded, and if volume, bodies and sides are those that
`chain_predictions.py` predicts. PrusaSlicer slices every twentieth right result, and must not say more than of the
source. Rows that are in the CSV file do not run again. Parts, chains and their order are random, and always the same.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import itertools
import multiprocessing
import os
import platform
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
from manifold3d import Error, Manifold, OpType

import chain_predictions
from chain_predictions import OPERATIONS, PartFigures
from meshhub import MeshhubError, Registry
from meshhub.errors import ConversionTimeout, EngineError, PluginError
from meshhub.model.report import Report
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import signed_volume, soup

COLUMNS = (
    "machine", "recorded", "part", "faces", "chain", "outcome", "detail", "plain_s", "seconds", "slicer",
)  # fmt: skip

SUFFIXES = {".stl", ".3mf", ".obj", ".ply", ".glb", ".step", ".stp"}
FACES = range(1_000, 400_001)
SIDE_MM = (5.0, 600.0)
"""Shortest and longest length of a part in mm: what printers print."""

LARGEST_METERS = 1.0
"""A part whose longest side is under this number of its file is in meters, as descriptions of robots are."""

TIMEOUT_S = 90
"""Seconds for a row, as for a request, until operations stop early; and processor seconds after which it is late."""

LIFETIME_S = 900.0
"""Seconds for a row, and for PrusaSlicer: ends what waits and uses no processor time."""

SLICER_TIMEOUT_S = 20
"""Processor seconds for PrusaSlicer: on the largest parts, it would take as long as a hundred other rows."""

SLICE_EVERY = 20
"""Every how many rows PrusaSlicer slices."""

MAX_RATIO = 10
"""Greatest processor time of a chain, in plain conversions of the same file."""

MIN_PLAIN_S = 0.1
"""Processor seconds of a plain conversion from which a chain is compared with it; a smaller file is mostly overhead."""

MAX_DETAIL_CHARS = 160
"""Characters of a detail in the table."""

EXPLAINING_NOTES = {
    "cut_not_closed", "no_cavity", "no_room_for_drain", "stays_solid", "self_intersections_left", "inner_walls_left",
    "not_closed", "not_manifold", "target_faces_missed", "size_changed", "strays_removed", "floating_removed",
    "parts_below_cut", "shells_below_cut", "no_flat_base", "open_section", "walls_stay_thin", "second_stage",
    "sheet_thickened", "reduction_stopped", "several_beds", "plane_misses_model", "bodies_united", "bodies_joined",
    "wall_vanished", "gap_closed", "offset_uneven", "volume_changed", "result_invalid",
}  # fmt: skip
"""Notes that name a difference between a result and what its operation promises."""

CONTEXT = multiprocessing.get_context("forkserver")


class RealPart(NamedTuple):
    """A part with its figures.

    name:    path below its folder
    path:    file
    unit:    unit of its numbers
    figures: of its solids in mm
    """

    name: str
    path: Path
    unit: str
    figures: PartFigures


class Row(NamedTuple):
    """What is run once: operations in the order of the stages, on a part."""

    part: RealPart
    chain: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Return the columns that name the row."""
        return self.part.name, " + ".join(self.chain)


class Outcome(NamedTuple):
    """Outcome of a row, with processor seconds of the conversions."""

    outcome: str
    detail: str
    plain_s: float = 0.0
    seconds: float = 0.0


def read_part(registry: Registry, folder: Path, path: Path) -> RealPart | None:
    """Return a file as a part; None if it is no solid, or too small or too large."""
    if path.stat().st_size > 100 * FACES.stop:
        return None
    for unit in ("mm", "m"):
        try:
            options = {"input_unit": unit} if unit != "mm" else {}
            scene = registry.read(path, options=options)
        except MeshhubError:
            return None
        if sum(len(scene.meshes[part.mesh].faces) for part in scene.parts) not in FACES:
            return None
        solids = chain_predictions.read_solids(scene)
        if any(solid.status() is not Error.NoError or solid.volume() <= 0 for solid in solids):
            return None
        faces = sum(len(faces) for _, faces in chain_predictions.read_surfaces(scene))
        figures = chain_predictions.measure(solids, signed_volume(*soup(scene)), faces)
        longest = float(figures.sides.max())
        if longest >= LARGEST_METERS:
            name = path.relative_to(folder).as_posix().replace(",", "_")
            is_large = longest >= SIDE_MM[0] and longest <= SIDE_MM[1]
            return RealPart(name, path, unit, figures) if is_large else None
    return None


def choose_parts(registry: Registry, folders: Iterable[Path], count: int, seed: int) -> list[RealPart]:
    """Return parts of the folders in turn, in a random order that is always the same; of equal shapes, there is one."""
    parts: dict[tuple[int, int], RealPart] = {}
    for parts_of_turn in itertools.zip_longest(*(_read_parts(registry, folder, seed) for folder in folders)):
        for part in parts_of_turn:
            if part is not None:
                parts.setdefault((part.figures.faces, round(part.figures.signed_volume)), part)
        if len(parts) >= count:
            break
    return list(parts.values())[:count]


def _read_parts(registry: Registry, folder: Path, seed: int) -> Iterator[RealPart]:
    """Yield the parts of a folder in random order, and after two of these the largest file."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    largest = sorted(paths, key=lambda path: path.stat().st_size, reverse=True)
    random.Random(seed).shuffle(paths)
    parts, large = (filter(None, (read_part(registry, folder, path) for path in order)) for order in (paths, largest))
    for three in itertools.zip_longest(parts, parts, large):
        yield from filter(None, three)


def make_rows(parts: list[RealPart], chains: int, seed: int) -> list[Row]:
    """Return every operation on every part, and random pairs and triples, in random order."""
    generator = random.Random(seed)
    rows = [Row(part, (name,)) for part in parts for name in OPERATIONS]
    names = list(OPERATIONS)
    keys = {row.key for row in rows}
    wanted = len(rows) + chains
    while len(rows) < wanted:
        part = generator.choice(parts)
        chain = tuple(sorted(generator.sample(names, generator.choice((2, 3))), key=names.index))
        options = [option for name in chain for option in OPERATIONS[name].options(part.figures)]
        row = Row(part, chain)
        if len(set(options)) == len(options) and row.key not in keys:
            keys.add(row.key)
            rows.append(row)
    generator.shuffle(rows)
    return rows


def run_row(row: Row, folder: Path) -> Outcome:
    """Run a row in a process of its own; its result is `result.3mf` in the folder."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_convert_and_judge, args=(row, folder, sender), daemon=True)
    process.start()
    sender.close()
    outcome = Outcome("failed", "the process ended without a result")
    try:
        while receiver.poll(LIFETIME_S):
            message = receiver.recv()
            outcome = outcome._replace(**message)
            if "outcome" in message:
                return outcome
        return outcome._replace(outcome="late", detail=f"not finished after {LIFETIME_S:.0f} s")
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            return outcome._replace(outcome="late", detail=f"not finished after {TIMEOUT_S} s of processor time")
        return outcome._replace(detail=f"the process ended with status {process.exitcode}")
    finally:
        process.kill()
        process.join()
        receiver.close()


def _convert_and_judge(row: Row, folder: Path, sender: Connection) -> None:
    """Send the seconds of a plain conversion, then those of the chain, then the outcome."""
    resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT_S, TIMEOUT_S + 5))
    part = row.part
    unit = {"input_unit": part.unit} if part.unit != "mm" else {}
    with Registry(entry_points=False) as registry:
        for _ in range(2):  # the first one imports what readers and writers need
            start = time.process_time()
            registry.convert(part.path, folder / "plain.3mf", options=unit, overwrite=True)
            plain_s = time.process_time() - start
        sources: list[Path | Scene] = [part.path]
        options: dict[str, object] = dict(unit)
        for name in row.chain:
            options |= OPERATIONS[name].options(part.figures)
            if OPERATIONS[name].primitive:
                sources.append(_write_block(registry, part, folder))
        sender.send({"plain_s": plain_s})
        start = time.process_time()
        report = None
        try:
            source = sources if len(sources) > 1 else sources[0]
            report = registry.convert(source, folder / "result.3mf", options=options, overwrite=True, timeout=TIMEOUT_S)
            outcome = {}
        except ConversionTimeout as error:
            outcome = {"outcome": "late", "detail": str(error)}
        except MeshhubError as error:
            is_fault = isinstance(error, EngineError | PluginError)
            outcome = {"outcome": "failed" if is_fault else "said", "detail": f"{error.error_code}: {error}"}
        except Exception as error:
            outcome = {"outcome": "failed", "detail": f"{type(error).__name__}: {error}"}
        sender.send({"seconds": time.process_time() - start, **outcome})
        if report is not None:
            sender.send(_judge(registry, row, folder, report))


def _write_block(registry: Registry, part: RealPart, folder: Path) -> Path:
    """Write the block that is combined with a part, in the unit of the part."""
    mesh = chain_predictions.make_block(part.figures).to_mesh64()
    vertices = np.asarray(mesh.vert_properties)[:, :3] / (1000.0 if part.unit == "m" else 1.0)
    path = folder / "block.stl"
    scene = Scene((Mesh(vertices, np.asarray(mesh.tri_verts).astype(np.int32)),), (Part(0),))
    registry.write(scene, path, overwrite=True)
    return path


def _judge(registry: Registry, row: Row, folder: Path, report: Report) -> dict[str, object]:
    """Return the outcome of a chain that wrote a file."""

    def read_source() -> Manifold:
        return Manifold.batch_boolean(chain_predictions.read_solids(registry.read(folder / "plain.3mf")), OpType.Add)

    prediction = chain_predictions.predict(row.chain, row.part.figures, read_source)
    problem = chain_predictions.judge(prediction, chain_predictions.read_solids(registry.read(folder / "result.3mf")))
    if not problem:
        return {"outcome": "right", "detail": ""}
    notes = [note.code for note in report.notes if note.code in EXPLAINING_NOTES]
    return {"outcome": "said" if notes else "wrong", "detail": "; ".join([problem, *notes])}


def slice_file(path: Path) -> str:
    """Slice a file with PrusaSlicer; return its warnings and errors about the mesh, "" without any."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [
                    "prlimit", f"--cpu={SLICER_TIMEOUT_S}",
                    "prusa-slicer", "--export-gcode", "--nozzle-diameter", "0.8", "--layer-height", "0.6",
                    "--fill-density", "0", "--perimeters", "1", "--top-solid-layers", "0", "--bottom-solid-layers", "0",
                    "--bed-shape", "0x0,2000x0,2000x2000,0x2000", "--max-print-height", "1000", "--dont-arrange",
                    "--center", "1000,1000", "--ensure-on-bed", "--output", f"{folder}/a.gcode", path,
                ],
                capture_output=True, text=True, check=False, timeout=LIFETIME_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "not finished"
    if done.returncode in {-signal.SIGXCPU, -signal.SIGKILL}:
        return "not finished"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line]
    marks = ("warning", "error", "repair", "manifold", "open edges", "empty")
    problems = [line for line in lines if any(mark in line.lower() for mark in marks)]
    return "; ".join(problems) or ("" if done.returncode == 0 else f"status {done.returncode}")


def compare_slices(folder: Path) -> str:
    """Return "sliced", "like the source", or what PrusaSlicer says only of the result."""
    problem = slice_file(folder / "result.3mf")
    if problem in {"", "not finished"}:
        return problem or "sliced"
    # messages name the file
    known = slice_file(folder / "plain.3mf").replace("plain", "result")
    return "like the source" if known == problem else problem


def run_to_line(row: Row, is_sliced: bool) -> list[object]:
    """Run a row, and return its line of the table."""
    folder = Path(tempfile.mkdtemp())
    try:
        outcome = run_row(row, folder)
        slicer = ""
        if is_sliced and outcome.outcome == "right":
            slicer = compare_slices(folder)[:MAX_DETAIL_CHARS]
            if slicer not in {"sliced", "like the source", "not finished"}:
                outcome = outcome._replace(outcome="wrong", detail="PrusaSlicer has a message")
    finally:
        shutil.rmtree(folder)
    return [
        f"{platform.machine()}, {os.cpu_count()} shared cores",
        datetime.datetime.now(datetime.UTC).date(),
        row.part.name,
        row.part.figures.faces,
        row.key[1],
        outcome.outcome,
        outcome.detail[:MAX_DETAIL_CHARS],
        f"{outcome.plain_s:.3f}",
        f"{outcome.seconds:.3f}",
        slicer,
    ]


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table, none if there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def run_rows(rows: list[Row], result: Path, seconds: float, processes: int) -> None:
    """Run the rows that are not in the table, until the time is over, and append a line for each."""
    done = {(line["part"], line["chain"]) for line in read_table(result)}
    deadline = time.monotonic() + seconds
    is_new = not result.exists()
    with result.open("a", encoding="utf-8", newline="") as file, ThreadPoolExecutor(processes) as pool:
        table = csv.writer(file, lineterminator="\n")
        if is_new:
            table.writerow(COLUMNS)

        def run(numbered: tuple[int, Row]) -> list[object] | None:
            number, row = numbered
            return run_to_line(row, number % SLICE_EVERY == 0) if time.monotonic() < deadline else None

        missing = [(number, row) for number, row in enumerate(rows) if row.key not in done]
        for future in as_completed(pool.submit(run, numbered) for numbered in missing):
            line = future.result()
            if line is not None:
                table.writerow(line)
                file.flush()


def _importable_modules() -> list[str]:
    """Return the modules of this process that have a file."""
    return [name for name, module in sys.modules.items() if name != "__main__" and getattr(module, "__file__", None)]


def summarize(lines: list[dict[str, str]]) -> Iterator[str]:
    """Yield a table: counts and processor time of each operation alone, and of all pairs and triples."""
    yield "| chain | rows | right | said | wrong | failed | late | seconds | compared | ratio | over 10 times |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    groups: dict[str, list[dict[str, str]]] = {name: [] for name in (*OPERATIONS, "pairs", "triples", "all")}
    for line in lines:
        names = line["chain"].split(" + ")
        groups[("", line["chain"], "pairs", "triples")[len(names)]].append(line)
        groups["all"].append(line)
    for name, chosen in groups.items():
        if not chosen:
            continue
        counts = Counter(line["outcome"] for line in chosen)
        cells = [str(counts[outcome]) for outcome in ("right", "said", "wrong", "failed", "late")]
        cells.append(f"{statistics.median(float(line['seconds']) for line in chosen):.2f}")
        ratios = [_find_ratio(line) for line in chosen if float(line["plain_s"]) >= MIN_PLAIN_S]
        cells += [str(len(ratios)), f"{statistics.median(ratios):.1f}" if ratios else "–"]
        yield f"| {name} | {len(chosen)} | {' | '.join(cells)} | {sum(ratio > MAX_RATIO for ratio in ratios)} |"
    slices = Counter(line["slicer"] for line in lines if line["slicer"])
    yield f"\nParts: {len({line['part'] for line in lines})}; slicer: {dict(slices)}"


def _find_ratio(line: dict[str, str]) -> float:
    """Return the processor time of a chain in plain conversions."""
    return float(line["seconds"]) / float(line["plain_s"])


def main() -> None:
    """Run the rows, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="folders of real parts")
    parser.add_argument("--csv", type=Path, required=True, metavar="CSV", help="table to continue")
    parser.add_argument("--parts", type=int, default=60)
    parser.add_argument("--chains", type=int, default=300, help="random pairs and triples")
    parser.add_argument("--seconds", type=float, default=3000)
    parser.add_argument("--seed", type=int, default=7, help="draws the parts and the chains")
    parser.add_argument("--processes", type=int, default=2, help="rows at once")
    parser.add_argument("--summary", action="store_true", help="print the summary of the table only")
    arguments = parser.parse_args()
    if not arguments.summary:
        with Registry(entry_points=False) as registry:
            parts = choose_parts(registry, arguments.folders, arguments.parts, arguments.seed)
            registry.convert_bytes(parts[0].path, "3mf")  # imports the writer
            modules = {operation.run.partition(":")[0] for operation in registry.operations.values()}
        # processes start with all modules, so that seconds of small parts are not those of imports
        CONTEXT.set_forkserver_preload(["__main__", *modules, *_importable_modules()])
        rows = make_rows(parts, arguments.chains, arguments.seed)
        run_rows(rows, arguments.csv, arguments.seconds, arguments.processes)
    for line in summarize(read_table(arguments.csv)):
        print(line)


if __name__ == "__main__":
    main()
