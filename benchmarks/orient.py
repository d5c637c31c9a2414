"""Compare the support that PrusaSlicer prints: as drawn, after `orient`, and after a random turn and `orient`.

Usage: python benchmarks/orient.py PRINTED CORPUS [--parts 20] [--csv FILE]

Uses all parts in the folder PRINTED, which print as they are drawn, and closed parts of the folder CORPUS. PrusaSlicer
prints support where its defaults want it; the benchmark adds up the filament of its support moves. The figures of
parts as drawn that the CSV file has are not measured again.
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
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from meshhub import Registry
from meshhub.toolkit.geometry import moved, soup
from meshhub.toolkit.poses import rotation_to_bed
from printed_parts import list_parts
from real_parts import Surface, make_scene, read_parts

SIDES_MM, LONGEST_MM = (20.0, 200.0), 60.0
"""Longest sides in millimeters of parts that keep their size, and of the others after scaling."""

FACES = range(100, 60_001)
"""Faces of the parts of the corpus: fewer are boxes and test files, more only take longer to slice."""

SUFFIXES = (".3mf", ".obj", ".step", ".stl", ".stp")

MAX_BYTES = 8_000_000
"""Size of the files that are read."""

SLICE_TIMEOUT_S = 240.0
"""Seconds for one slice; a part that takes longer is left out."""

SAME_COSINE = float(np.cos(np.deg2rad(0.01)))
"""Cosine of the angle up to which a pose is that as drawn, and is not sliced again."""

NOISE_RATIO, NOISE_MM = 0.01, 1.0
"""Share and millimeters of filament by which the support of equal poses differs."""

GOAL_RATIO = 1.1
"""Support after a random turn, per support as drawn, that counts as found."""

SLICER = (
    "nice", "-n", "5", "prusa-slicer", "--export-gcode", "--support-material", "--support-material-auto", "--skirts",
    "0", "--use-relative-e-distances", "--layer-gcode", "G92 E0", "--bed-shape", "0x0,400x0,400x400,0x400",
    "--max-print-height", "400", "--center", "200,200",
)  # fmt: skip
"""The default profile, on a bed that is large enough for all parts in all poses."""

_MOVE = re.compile(r"^G1 [^;]*[XY][^;]* E([0-9.]+)")

Row = dict[str, object]


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("printed", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--parts", type=int, default=20)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    registry = Registry()
    known: dict[str, Row] = {}
    if arguments.csv and arguments.csv.exists():
        with arguments.csv.open(newline="") as file:
            known = {row["part"]: row for row in csv.DictReader(file)}
    closed = (
        ("corpus", Path(path).name.partition("__")[2] or Path(path).name, surface)
        for path, surface in read_parts(registry, arguments.corpus, SUFFIXES, MAX_BYTES, FACES, choose_scale)
    )
    rows: list[Row] = []
    for group, part, surface in itertools.chain(
        read_printed(registry, arguments.printed), itertools.islice(closed, arguments.parts)
    ):
        row = compare(registry, part, surface, known.pop(part, None))
        if row is None:
            print(f"{part}: PrusaSlicer gives no result", flush=True)
            continue
        rows.append({"machine": platform.processor(), "recorded": str(datetime.date.today()), "group": group, **row})
        print(rows[-1], flush=True)
        if arguments.csv:
            # long runs may be stopped and continued
            write_csv(arguments.csv, [*rows, *known.values()])
    for group in ("printed", "corpus"):
        summarize(group, [row for row in rows if row["group"] == group])


def read_printed(registry: Registry, folder: Path) -> Iterator[tuple[str, str, Surface]]:
    """Yield group, name and surface of the parts that print as they are drawn."""
    for name, path in list_parts(folder):
        yield "printed", name, soup(registry.read(path))


def choose_scale(sides: NDArray[np.float64]) -> float | None:
    """Return the scale that gives a part a size of printed parts; None for a flat one."""
    longest = float(sides.max())
    if min(sides) <= 0:
        return None
    return 1.0 if SIDES_MM[0] <= longest <= SIDES_MM[1] else LONGEST_MM / longest


def compare(registry: Registry, part: str, surface: Surface, known: Row | None) -> Row | None:
    """Slice one part in its poses; None if PrusaSlicer does not slice it.

    Args:
        registry: Runs `orient`.
        part: Name, which determines the random turn.
        surface: The part.
        known: Earlier figures of the part as drawn.
    """
    start = time.process_time()
    oriented = orient(registry, surface)
    seconds = time.process_time() - start
    turn = np.eye(4)
    turn[:3, :3] = Rotation.random(random_state=zlib.crc32(part.encode())).as_matrix()
    turned = orient(registry, soup(moved(make_scene(surface), turn)))
    drawn = measure_support(registry, surface) if known is None else float(str(known["drawn_mm"]))
    if drawn is None:
        return None
    ours, found = (measure_pose(registry, surface, result, drawn) for result in (oriented, turned))
    if ours is None or found is None:
        return None
    return {
        "part": part,
        "faces": len(surface[1]),
        "drawn_mm": round(drawn, 1),
        "oriented_mm": round(ours, 1),
        "turned_mm": round(found, 1),
        "cpu_s": round(seconds, 2),
    }


def orient(registry: Registry, surface: Surface) -> Surface:
    """Return a part after `orient`."""
    return soup(registry.read(make_scene(surface), orient=True))


def measure_pose(registry: Registry, surface: Surface, result: Surface, drawn: float) -> float | None:
    """Return the support of a part in the pose of a result, which may be turned about Z, in millimeters of filament."""
    before, after = (vertices - vertices.mean(axis=0) for vertices, _ in (surface, result))
    down = -Rotation.align_vectors(before, after)[0].as_matrix()[:, 2]
    if down[2] < -SAME_COSINE:
        return drawn
    return measure_support(registry, (surface[0] @ rotation_to_bed(down).T, surface[1]))


def measure_support(registry: Registry, surface: Surface) -> float | None:
    """Return the millimeters of filament of the support in PrusaSlicer's G-code; None if there is no G-code."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "part.stl"), Path(folder, "part.gcode")
        registry.write(make_scene(surface), source)
        try:
            subprocess.run(
                [*SLICER, "--output", str(target), str(source)],
                check=False,
                capture_output=True,
                timeout=SLICE_TIMEOUT_S,
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
        return filament


def write_csv(path: Path, rows: list[Row]) -> None:
    """Write the rows."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def summarize(group: str, rows: list[Row]) -> None:
    """Print the shares of the table."""
    drawn, oriented, turned = (
        np.array([float(str(row[column])) for row in rows]) for column in ("drawn_mm", "oriented_mm", "turned_mm")
    )
    noise = np.maximum(NOISE_RATIO * drawn, NOISE_MM)
    print(
        f"{group}: {len(rows)} parts; after orient, more support than as drawn in {(oriented > drawn + noise).sum()}, "
        f"less in {(oriented < drawn - noise).sum()}; after a random turn, at most {GOAL_RATIO} times as much in "
        f"{(turned <= GOAL_RATIO * drawn + NOISE_MM).sum()}, as much or less in {(turned <= drawn + noise).sum()}; "
        f"in total {drawn.sum():.0f}, {oriented.sum():.0f} and {turned.sum():.0f} mm of filament"
    )


if __name__ == "__main__":
    main()
