"""Compare the estimates of prints with those of PrusaSlicer: material, support and time.

Usage: python benchmarks/quote.py FOLDER [--parts 60] [--speed 60] [--csv FILE] [--fit]

Uses closed parts of the 3MF, OBJ, PLY and STL files in the folder; those with a longest side below 15 mm are scaled to
40 mm, and those above 160 mm to 100 mm, because their unit is unknown. Parts that the CSV file has are not sliced
again, only estimated. The constants of the time were fitted on every second part (`--fit` prints them), and the table
has the error of the others, too.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import spearmanr

from meshhub import MeshhubError, Registry
from meshhub.builtin_plugins.print import PrintOptions, estimate
from meshhub.toolkit.geometry import signed_volume
from meshhub.toolkit.support_material import Skin, stand_columns
from real_parts import Surface, make_scene, read_parts

SUFFIXES = (".3mf", ".obj", ".ply", ".stl")

MAX_BYTES = 30_000_000
"""Size of the files that are read."""

FACES = range(40, 300_001)
"""Faces of the parts that are used: fewer are boxes and test files, more only take longer."""

MIN_SIDE_MM, SMALL_MM, MAX_SIDE_MM, LARGE_MM = 15.0, 40.0, 160.0, 100.0
"""Longest side below which a part is scaled to the second, and above which it is scaled to the fourth."""

MIN_SLENDERNESS = 0.02
"""Shortest per longest side; thinner parts are sheets."""

MIN_VOLUME_MM3 = 100.0
"""Volume of the smallest part."""

SLICE_TIMEOUT_S = 300.0
"""Seconds for one slice; a part that takes longer is left out."""

MIN_SUPPORT_MM3 = 50.0
"""Material of support from which it counts: a few lines around a bridge are less."""

CONSTANTS = ("LINE_FACTOR", "SUPPORT_FACTOR", "TURN_S", "LAYER_S", "HOP_S")
"""Constants of the time that are fitted."""

Row = dict[str, str]


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parts", type=int, default=60)
    parser.add_argument("--speed", type=float, default=PrintOptions().print_speed_mm_s)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--fit", action="store_true", help="fit the constants of the time on every second part")
    arguments = parser.parse_args()
    known: dict[str, Row] = {}
    if arguments.csv and arguments.csv.exists():
        with arguments.csv.open(newline="") as file:
            known = {row["part"]: row for row in csv.DictReader(file)}
    rows: list[Row] = []
    surfaces: dict[str, Surface] = {}
    with Registry(entry_points=False) as registry:
        parts = read_parts(registry, arguments.folder, SUFFIXES, MAX_BYTES, FACES, choose_scale, MIN_VOLUME_MM3)
        for name, surface in parts:
            if len(rows) >= arguments.parts:
                break
            sliced = known.get(name) or slice_part(registry, surface, arguments.speed)
            if sliced is None:
                print(f"{name}: PrusaSlicer gives no result", flush=True)
                continue
            rows.append({**sliced, "part": name, **estimate_part(registry, surface, arguments.speed)})
            surfaces[name] = surface
            print(rows[-1], flush=True)
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    summarize(rows)
    if arguments.fit:
        fit(rows, surfaces, arguments.speed)


def choose_scale(sides: NDArray[np.float64]) -> float | None:
    """Return the scale that gives a part a size for printing; None for a sheet."""
    side = float(sides.max())
    if min(sides) < MIN_SLENDERNESS * side:
        return None
    return SMALL_MM / side if side < MIN_SIDE_MM else LARGE_MM / side if side > MAX_SIDE_MM else 1.0


def slice_part(registry: Registry, surface: Surface, speed: float) -> Row | None:
    """Return the figures of PrusaSlicer for one part; None if it does not slice it."""
    start = time.perf_counter()
    try:
        result = registry.estimate(make_scene(surface), slicer=True, print_speed_mm_s=speed, timeout=SLICE_TIMEOUT_S)
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
    result = registry.estimate(make_scene(surface), print_speed_mm_s=speed)
    figures = {
        "faces": len(surface[1]),
        "volume_mm3": round(result.volume_mm3),
        "model_mm3": round(result.material_mm3, 1),
        "model_support_space_mm3": round(result.support_mm3, 1),
        "model_support_mm3": round(result.support_material_mm3, 1),
        "model_print_s": round(result.seconds or 0),
        "model_s": round(time.perf_counter() - start, 2),
    }
    return {key: str(value) for key, value in figures.items()}


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
    describe("material", rows, "model_mm3", "slicer_mm3", 0.05)
    supported = [row for row in rows if float(row["slicer_support_mm3"]) > MIN_SUPPORT_MM3]
    describe("material of support", supported, "model_support_mm3", "slicer_support_mm3", 0.2)
    describe("time, parts of the fit", rows[::2], "model_print_s", "slicer_print_s", 0.2)
    describe("time, other parts", rows[1::2], "model_print_s", "slicer_print_s", 0.2)
    for chosen, label in ((rows, "all"), (supported, "those with support")):
        rank = spearmanr(column("model_support_space_mm3", chosen), column("slicer_support_mm3", chosen))[0]
        print(f"rank correlation of the space and the material of support, {label}: {rank:.3f}")
    print(f"seconds of an estimate: median {np.median(column('model_s', rows)):.1f}, "
          f"of PrusaSlicer {np.median(column('slicer_s', rows)):.1f}")  # fmt: skip


def fit(rows: list[Row], surfaces: dict[str, Surface], speed: float) -> None:
    """Print the constants of the time that suit every second part best."""
    options = PrintOptions(print_speed_mm_s=speed)
    chosen = [row for row in rows[::2] if row["part"] in surfaces]
    prints = [_prepare(*surfaces[row["part"]], options) for row in chosen]
    times = np.log([float(row["slicer_print_s"]) for row in chosen])

    def residuals(values: NDArray[np.float64]) -> NDArray[np.float64]:
        for name, value in zip(CONSTANTS, values, strict=True):
            setattr(estimate, name, float(value))
        return np.log([seconds() for seconds in prints]) - times

    start = [float(getattr(estimate, name)) for name in CONSTANTS]
    result = least_squares(residuals, start, bounds=(0, 10), loss="soft_l1", f_scale=0.1)
    print({name: round(float(value), 3) for name, value in zip(CONSTANTS, result.x, strict=True)})


def _prepare(vertices: NDArray[np.float64], faces: NDArray[np.int32], options: PrintOptions) -> Callable[[], float]:
    """Return a function that computes the time of a part by the current constants."""
    layers = estimate._slice(vertices, faces, options, estimate.MAX_CELLS_COUNT)
    deposit = estimate._fill(layers, signed_volume(vertices, faces), options)
    columns = stand_columns(Skin.of(vertices, faces), layers, options.print_overhang_deg, options.layer_mm)
    support = columns.material(options.print_nozzle_mm)
    return lambda: estimate._time(deposit, support, options)


if __name__ == "__main__":
    main()
