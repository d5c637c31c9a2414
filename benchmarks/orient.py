"""Compare the support that PrusaSlicer prints for models as drawn, after `orient`, and on each of 26 directions.

Usage: python benchmarks/orient.py FOLDER [--parts 40] [--csv FILE]

Uses closed parts of the 3MF, OBJ, STEP and STL files in the folder, scaled to 40 mm, so that all have the same weight.
PrusaSlicer makes the support; the benchmark adds up the filament of its support moves. Parts that the CSV file has are
sliced again only after `orient`.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import itertools
import platform
import re
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshhub import Registry
from meshhub.builtin_plugins.orient.operation import _stands
from meshhub.toolkit.geometry import soup
from meshhub.toolkit.poses import center_of_mass, rotation_to_bed
from real_parts import Surface, make_scene, read_parts

LONGEST_MM = 40.0
"""Millimeters of the longest side of each part."""

FACES = range(100, 100_001)
"""Faces of the parts that are used: fewer are boxes and test files, more only take longer to slice."""

SUFFIXES = (".3mf", ".obj", ".step", ".stl", ".stp")

MAX_BYTES = 8_000_000
"""Size of the files that are read."""

SLICE_TIMEOUT_S = 120.0
"""Seconds for one slice; a part that takes longer is left out."""

FILAMENT_MM2 = np.pi * 1.75**2 / 4
"""Square millimeters of the cross section of PrusaSlicer's default filament."""

EQUAL_RATIO = 0.05
"""Support by which a result may be larger than another and count as equal."""

EQUAL_MM3 = 50.0
"""Cubic millimeters of support that count as none: a few lines around a bridge."""

SLICER = (
    "prusa-slicer", "--export-gcode", "--support-material", "--support-material-threshold", "45", "--skirts", "0",
    "--nozzle-diameter", "0.6", "--layer-height", "0.4", "--first-layer-height", "0.4", "--fill-density", "0",
    "--perimeters", "1", "--top-solid-layers", "0", "--bottom-solid-layers", "0", "--resolution", "0.1",
    "--use-relative-e-distances", "--layer-gcode", "G92 E0", "--bed-shape", "0x0,200x0,200x200,0x200",
    "--max-print-height", "200", "--center", "100,100",
)  # fmt: skip
"""Only the support counts, so the model gets no infill, and the layers are thick: a slice takes a second."""

_MOVE = re.compile(r"^G1 [^;]*[XY][^;]* E([0-9.]+)")

AXES = [np.array(step, np.float64) for step in itertools.product((-1, 0, 1), repeat=3) if any(step)]

AXIS_COLUMNS = ("axis_mm3", "axis", "standing_mm3", "standing_axis")
"""Columns of the best of 26 directions, and of the best of those on which the part does not tip over."""

Row = dict[str, object]


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parts", type=int, default=40)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    registry = Registry()
    known: dict[str, Row] = {}
    if arguments.csv and arguments.csv.exists():
        with arguments.csv.open(newline="") as file:
            known = {row["part"]: row for row in csv.DictReader(file)}
    rows: list[Row] = []
    for path, surface in read_parts(registry, arguments.folder, SUFFIXES, MAX_BYTES, FACES, choose_scale):
        name = Path(path).name.partition("__")[2] or Path(path).name
        row = compare(registry, surface, known.get(name))
        if row is None:
            print(f"{name}: PrusaSlicer gives no result", flush=True)
            continue
        rows.append({"machine": platform.processor(), "recorded": str(datetime.date.today()), "part": name, **row})
        print(rows[-1], flush=True)
        if len(rows) == arguments.parts:
            break
    if arguments.csv:
        write_csv(arguments.csv, rows)
    summarize(rows)


def choose_scale(sides: NDArray[np.float64]) -> float | None:
    """Return the scale that gives all parts one size; None for a flat one."""
    return LONGEST_MM / float(sides.max()) if min(sides) > 0 else None


def compare(registry: Registry, surface: Surface, known: Row | None) -> Row | None:
    """Slice one part in its poses; None if PrusaSlicer does not slice it.

    Args:
        registry: Runs `orient`.
        surface: The part.
        known: Earlier figures of the part as drawn and on the directions.
    """
    _, faces = surface
    start = time.process_time()
    oriented, _ = soup(registry.read(make_scene(surface), orient=True))
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as name:
        ours = measure_support(registry, (oriented, faces), Path(name))
        drawn = measure_support(registry, surface, Path(name)) if known is None else float(str(known["drawn_mm3"]))
        if drawn is None or ours is None:
            return None
        row: Row = {"faces": len(faces), "drawn_mm3": round(drawn), "oriented_mm3": round(ours)}
        if known is not None:
            row |= {column: known[column] for column in AXIS_COLUMNS}
        else:
            row |= dict.fromkeys(AXIS_COLUMNS, "")
            # directions cannot improve a pose without support
            if drawn > EQUAL_MM3:
                row |= compare_axes(registry, surface, Path(name))
        return row | {"cpu_s": round(seconds, 2)}


def compare_axes(registry: Registry, surface: Surface, folder: Path) -> Row:
    """Slice one part on 26 directions; return the best of all, and of those on which it does not tip over."""
    vertices, faces = surface
    center = center_of_mass(vertices, faces)
    supports: list[tuple[float, bool, str]] = []
    for axis in AXES:
        rotation = rotation_to_bed(axis / np.linalg.norm(axis))
        support = measure_support(registry, (vertices @ rotation.T, faces), folder)
        if support is not None:
            stands = _stands(vertices @ rotation.T, rotation @ center)
            supports.append((support, stands, " ".join(f"{step:g}" for step in axis)))
    best = min(supports)
    row: Row = {"axis_mm3": round(best[0]), "axis": best[2], "standing_mm3": "", "standing_axis": ""}
    # a ball tips over on each direction
    standing = sorted(support for support in supports if support[1])
    if standing:
        row |= {"standing_mm3": round(standing[0][0]), "standing_axis": standing[0][2]}
    return row


def measure_support(registry: Registry, surface: Surface, folder: Path) -> float | None:
    """Return the cubic millimeters of support in PrusaSlicer's G-code; None if there is no G-code."""
    source, target = folder / "part.stl", folder / "part.gcode"
    target.unlink(missing_ok=True)
    registry.write(make_scene(surface), source)
    try:
        subprocess.run(
            [*SLICER, "--output", str(target), str(source)], check=False, capture_output=True, timeout=SLICE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return None
    if not target.exists():
        return None
    filament, is_support = 0.0, False
    with target.open() as lines:
        for line in lines:
            if line.startswith(";TYPE:"):
                is_support = line.startswith(";TYPE:Support material")
            elif is_support and (move := _MOVE.match(line)):
                filament += float(move[1])
    return filament * FILAMENT_MM2


def write_csv(path: Path, rows: list[Row]) -> None:
    """Write the rows."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def summarize(rows: list[Row]) -> None:
    """Print the shares of the table."""

    def figure(row: Row, column: str) -> float:
        return float(str(row[column]))

    needing = [row for row in rows if figure(row, "drawn_mm3") > EQUAL_MM3]
    less = sum(figure(row, "oriented_mm3") < (1 - EQUAL_RATIO) * figure(row, "drawn_mm3") for row in needing)
    more = sum(figure(row, "oriented_mm3") > figure(row, "drawn_mm3") for row in rows)
    print(f"{len(rows)} parts, {len(needing)} with support as drawn: clearly less in {less}, more in {more} of all")
    for column, name in (("axis_mm3", "all"), ("standing_mm3", "those that do not tip over")):
        sampled = [row for row in rows if row[column] != ""]
        reached = [
            sum(figure(row, "oriented_mm3") <= (1 + EQUAL_RATIO) * figure(row, column) + slack for row in sampled)
            for slack in (0.0, EQUAL_MM3)
        ]
        total, best = (sum(figure(row, each) for row in sampled) for each in ("oriented_mm3", column))
        print(
            f"best of 26 directions, of {name}: within 5 % in {reached[0]} of {len(sampled)}, in {reached[1]} with "
            f"{EQUAL_MM3:g} mm³ more; {total:.0f} mm³ against {best:.0f} mm³ in total"
        )


if __name__ == "__main__":
    main()
