"""Pairs of print-preparation operations on real files: closed in, closed out, and sliced.

    python benchmarks/prepare.py CORPUS RESULT.csv [--seconds 1200] [--slice 60] [--seed 7]

The files are those of the corpus that manifold3d accepts as solids when they are shrunk into a box of 40 mm. All
pairs of operations run on one of them after the other, again and again until the time is over. A result counts as
closed if manifold3d accepts each part of the written 3MF file. With `--slice`, PrusaSlicer slices so many of the
results; its warnings and errors count, except those that the source also gets.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import manifold3d
import numpy as np

from meshhub import MeshhubError, Registry, Scene
from meshhub.engine.isolated import Isolated
from meshhub.toolkit.geometry import welded

OPERATIONS: Mapping[str, Mapping[str, object]] = {
    "arrange": {"arrange_bed": "220x220"},
    "boolean": {"boolean": "union"},
    "chamfer-base": {"chamfer_base_mm": 0.5},
    "copies": {"copies": 2},
    "cut-plane": {"cut_plane": "z=50%"},
    "drain": {"drain_holes_mm": 2},
    "emboss": {"emboss_text": "A1", "emboss_size_mm": 4},
    "fill-holes": {"fill_holes_mm": 4},
    "fit": {"fit_mm": "30x35x35"},
    "flatten-base": {"flatten_base_mm": 1},
    "hollow": {"hollow_wall_mm": 1.5},
    "lay-flat": {"lay_flat": True},
    "merge-parts": {"merge_parts": "union"},
    "mirror": {"mirror": "x"},
    "offset": {"offset_mm": 0.5},
    "optimize": {"optimize_target_faces": 1000},
    "orient": {"orient": True},
    "place-on-bed": {"place_on_bed": True},
    "plinth": {"plinth_mm": 2},
    "reduce-colors": {"reduce_colors": 4},
    "repair": {"repair": True},
    "rotate": {"rotate_x_deg": 30},
    "scale": {"scale_percent": 90},
    "split-for-bed": {"split_for_bed": "30x30x30"},
    "split-parts": {"split_parts": True},
    "target-height": {"target_height_mm": 25},
    "thicken": {"thicken_mm": 1},
}
"""Operations with options for models of 40 mm."""

FILE_COUNT = 50
FACES = range(100, 20_001)
"""Faces of a file: fewer make a box, more take too long."""

MAX_FILE_BYTES = 5_000_000
TIMEOUT_S = 90


def is_solid(scene: Scene) -> bool:
    """Return whether all parts are valid solids of manifold3d."""
    for part in scene.parts:
        points, faces = welded(scene.meshes[part.mesh])
        mesh = manifold3d.Mesh64(np.ascontiguousarray(points), np.ascontiguousarray(faces, np.uint64))
        solid = manifold3d.Manifold(mesh)
        if solid.status() != manifold3d.Error.NoError or solid.volume() <= 0:
            return False
    return bool(scene.parts)


def choose_files(registry: Registry, corpus: Path, folder: Path, seed: int) -> list[Path]:
    """Write the files that are solids as small 3MF files, and return these."""
    with (corpus / "INDEX.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    random.Random(seed).shuffle(rows)
    chosen: list[Path] = []
    for row in rows:
        path = corpus / row["file"]
        if row["watertight"] != "True" or int(row["bytes"]) > MAX_FILE_BYTES or int(row["n_faces"] or 0) not in FACES:
            continue
        target = folder / f"{len(chosen):02}.3mf"
        try:
            registry.convert(path, target, fit_mm="40x40x40", timeout=TIMEOUT_S)
            if is_solid(registry.read(target)):
                chosen.append(target)
        except MeshhubError:
            continue
        if len(chosen) == FILE_COUNT:
            break
    return chosen


def slice_file(path: Path) -> str:
    """Slice a file with PrusaSlicer; return its warnings and errors about the mesh, "" without any."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                "prusa-slicer", "--export-gcode", "--layer-height", "0.3", "--center", "100,100", "--ensure-on-bed",
                "--output", f"{folder}/a.gcode", path,
            ],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line]
    marks = ("warning", "error", "repair", "manifold", "open edges", "empty")
    problems = [line for line in lines if any(mark in line.lower() for mark in marks)]
    return "; ".join(problems) or ("" if done.returncode == 0 else f"status {done.returncode}")


def main() -> None:
    """Run the pairs, and write a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--slice", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7, help="draws the files and the pairs")
    arguments = parser.parse_args()
    pairs = list(itertools.combinations(OPERATIONS, 2))
    random.Random(arguments.seed).shuffle(pairs)
    outcomes: Counter[str] = Counter()
    slicings: Counter[str] = Counter()
    folder = Path(tempfile.mkdtemp())
    with (
        Registry(entry_points=False, engine=Isolated(workers=1)) as registry,
        arguments.result.open("w", encoding="utf-8", newline="") as file,
    ):
        table = csv.writer(file)
        table.writerow(["first", "second", "file", "outcome", "seconds", "slicer"])
        files = choose_files(registry, arguments.corpus, folder, arguments.seed)
        deadline = time.monotonic() + arguments.seconds
        for number, (first, second) in enumerate(itertools.cycle(pairs)):
            if time.monotonic() > deadline:
                break
            source, target = files[(number + number // len(pairs)) % len(files)], folder / "result.3mf"
            start = time.monotonic()
            warnings = ""
            try:
                options = {**OPERATIONS[first], **OPERATIONS[second]}
                registry.convert(source, target, options=options, timeout=TIMEOUT_S, overwrite=True)
                outcome = "closed" if is_solid(registry.read(target)) else "open"
            except MeshhubError as error:
                outcome = error.code
            seconds = time.monotonic() - start
            if outcome == "closed" and slicings.total() < arguments.slice:
                warnings = slice_file(target)
                is_new = warnings and slice_file(source) != warnings
                warnings = warnings if is_new else "like the source" if warnings else "sliced"
                slicings["new warnings" if is_new else warnings] += 1
            outcomes[outcome] += 1
            table.writerow([first, second, source.stem, outcome, f"{seconds:.1f}", warnings])
            file.flush()
    shutil.rmtree(folder)
    print(f"{len(files)} files: {dict(outcomes)}, slicer: {dict(slicings)}")


if __name__ == "__main__":
    main()
