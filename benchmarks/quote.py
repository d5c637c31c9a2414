"""Compare the estimates of prints with those of PrusaSlicer: material, support and time.

Usage: python benchmarks/quote.py FOLDER… [--parts 200] [--speed 60] [--csv FILE]

Uses closed parts of the 3MF, OBJ, PLY and STL files in the folders. A longest side below 2 mm is in meters; then parts
below 8 mm are scaled to 40 mm, and those above 260 mm to 100 mm, because their unit is unknown. Parts that the CSV file
has are not sliced again, only estimated. Support stands everywhere, as PrusaSlicer places it by default. The table has
the parts of the repositories on which the constants were fitted, other parts that were printed, and parts of packages,
which `unseen_parts.py` collects. Without folders, the table is of the rows of the CSV file.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import itertools
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from meshhub import MeshhubError, Registry
from meshhub.builtin_plugins.print import PrintOptions
from real_parts import Surface, make_scene, read_parts

SUFFIXES = (".3mf", ".obj", ".ply", ".stl")

MAX_BYTES = 30_000_000
"""Size of the files that are read."""

FACES = range(40, 300_001)
"""Faces of the parts that are used: fewer are boxes and test files, more only take longer."""

METERS = 2.0
"""Longest side below which the numbers are meters, as those of robots."""

MIN_SIDE_MM, SMALL_MM, MAX_SIDE_MM, LARGE_MM = 8.0, 40.0, 260.0, 100.0
"""Longest side below which a part is scaled to the second, and above which it is scaled to the fourth."""

MIN_SLENDERNESS = 0.02
"""Shortest per longest side; thinner parts are sheets."""

MIN_VOLUME_MM3 = 100.0
"""Volume of the smallest part."""

SLICE_TIMEOUT_S = 300.0
"""Seconds for one slice; a part that takes longer is left out."""

MIN_SUPPORT_MM3 = 50.0
"""Material of support from which it counts: a few lines around a bridge are less."""

FITTED = ("VoronDesign+Voron-0", "VoronDesign+Voron-2", "VoronDesign+Voron-Trident__STLs_Gantry")
"""Beginnings of the names of parts on which the constants of material and time were fitted."""

PACKAGED = ("deb-", "npm-", "pypi-")
"""Beginnings of the names of parts of packages."""

GROUPS = ("parts of the fit", "other printed parts", "unseen parts of packages")
"""Groups of parts in the table."""

Row = dict[str, str]


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--parts", type=int, default=200)
    parser.add_argument("--speed", type=float, default=PrintOptions().print_speed_mm_s)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    known: dict[str, Row] = {}
    if arguments.csv and arguments.csv.exists():
        with arguments.csv.open(newline="") as file:
            known = {row["part"]: row for row in csv.DictReader(file)}
    if not arguments.folders:
        summarize(list(known.values()))
        return
    rows: list[Row] = []
    with Registry(entry_points=False) as registry:
        parts = [
            read_parts(registry, folder, SUFFIXES, MAX_BYTES, FACES, choose_scale, MIN_VOLUME_MM3)
            for folder in arguments.folders
        ]
        for name, surface in itertools.chain(*parts):
            if len(rows) >= arguments.parts:
                break
            sliced = known.get(name) or slice_part(registry, surface, arguments.speed)
            if sliced is None:
                print(f"{name}: PrusaSlicer gives no result", flush=True)
                continue
            rows.append({**sliced, "part": name, **estimate_part(registry, surface, arguments.speed)})
            print(rows[-1], flush=True)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    summarize(rows)


def choose_scale(sides: NDArray[np.float64]) -> float | None:
    """Return the scale that gives a part a size for printing; None for a sheet."""
    side = float(sides.max())
    if min(sides) < MIN_SLENDERNESS * side:
        return None
    unit = 1000.0 if side < METERS else 1.0
    size = unit * side
    return SMALL_MM / side if size < MIN_SIDE_MM else LARGE_MM / side if size > MAX_SIDE_MM else unit


def slice_part(registry: Registry, surface: Surface, speed: float) -> Row | None:
    """Return the figures of PrusaSlicer for one part; None if it does not slice it."""
    start = time.perf_counter()
    try:
        result = registry.estimate(
            make_scene(surface),
            slicer=True,
            print_speed_mm_s=speed,
            print_support="everywhere",
            timeout=SLICE_TIMEOUT_S,
        )
    except MeshhubError:
        return None
    figures = {
        "slicer_mm3": round(result.material_mm3, 1),
        "slicer_support_mm3": round(result.support_material_mm3, 1),
        "slicer_print_s": round(result.seconds or 0),
        "slicer_s": round(time.perf_counter() - start, 2),
    }
    texts = {key: str(value) for key, value in figures.items()}
    return {"machine": platform.processor(), "recorded": str(datetime.date.today()), "slicer": result.method, **texts}


def estimate_part(registry: Registry, surface: Surface, speed: float) -> Row:
    """Return the figures of the model for one part."""
    start = time.perf_counter()
    result = registry.estimate(make_scene(surface), print_speed_mm_s=speed, print_support="everywhere")
    figures = {
        "faces": len(surface[1]),
        "volume_mm3": round(result.volume_mm3),
        "model_mm3": round(result.material_mm3, 1),
        "model_support_space_mm3": round(result.support_mm3, 1),
        "model_support_mm3": round(result.support_material_mm3, 1),
        "model_print_s": round(result.seconds or 0),
        "model_print_error": round(result.seconds_error or 0, 3),
        "model_s": round(time.perf_counter() - start, 2),
    }
    return {key: str(value) for key, value in figures.items()}


def find_group(part: str) -> str:
    """Return the group of a part by the beginning of its name."""
    fitted, printed, unseen = GROUPS
    name = part.rpartition("/")[2]
    return fitted if name.startswith(FITTED) else unseen if name.startswith(PACKAGED) else printed


def add_filament(row: Row) -> Row:
    """Return a row with the filament of the model and its support together."""
    totals = {kind: float(row[f"{kind}_mm3"]) + float(row[f"{kind}_support_mm3"]) for kind in ("model", "slicer")}
    return row | {f"{kind}_all": str(total) for kind, total in totals.items()}


def summarize(rows: list[Row]) -> None:
    """Print the errors: the median, the 90th percentile, and the share within the aim."""

    def column(name: str, chosen: Sequence[Row]) -> NDArray[np.float64]:
        return np.array([float(row[name]) for row in chosen])

    def describe(label: str, chosen: Sequence[Row], estimated: str, measured: str, aim: float) -> None:
        error = np.abs(column(estimated, chosen) / column(measured, chosen) - 1)
        print(
            f"| {label} | {len(chosen)} | {np.median(error):.1%} | {np.quantile(error, 0.9):.1%} | "
            f"{np.mean(error <= aim):.0%} within {aim:.0%} |"
        )

    print("| figure | parts | median error | 90th percentile | share |")
    print("| --- | --- | --- | --- | --- |")
    groups = {label: [row for row in rows if find_group(row["part"]) == label] for label in GROUPS}
    for label, chosen in groups.items():
        if not chosen:
            continue
        describe(f"material, {label}", chosen, "model_mm3", "slicer_mm3", 0.05)
        describe(f"time, {label}", chosen, "model_print_s", "slicer_print_s", 0.2)
        supported = [row for row in chosen if float(row["slicer_support_mm3"]) > MIN_SUPPORT_MM3]
        describe(f"material of support, {label}", supported, "model_support_mm3", "slicer_support_mm3", 0.2)
        describe(f"all filament, {label}", [add_filament(row) for row in chosen], "model_all", "slicer_all", 0.05)
    for label, chosen in groups.items():
        if not chosen:
            continue
        rank = spearmanr(column("model_support_mm3", chosen), column("slicer_support_mm3", chosen))[0]
        error = np.abs(column("model_print_s", chosen) / column("slicer_print_s", chosen) - 1)
        covered = float(np.mean(error <= column("model_print_error", chosen)))
        print(f"{label}: rank correlation of the material of support {rank:.3f}; the stated range of the time covers "
              f"{covered:.0%}")  # fmt: skip
    timed = [row for row in rows if row["model_s"]]
    if timed:
        print(f"seconds of an estimate: median {np.median(column('model_s', timed)):.1f}, "
              f"of PrusaSlicer {np.median(column('slicer_s', timed)):.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
