"""Compare `arrange_bed` with the arrangement of PrusaSlicer on sets of models.

Usage: python benchmarks/arrange.py FOLDER [--sets 20] [--bed 220x220] [--csv FILE]

Each set has 2 to 12 different STL files of the folder, scaled so that their boxes cover about half of the bed. Both
programs arrange the same files with the same gap. Printed: the share of the used rectangle that shadows cover
(density), whether everything is on one bed, and the seconds of both.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import manifold3d
import numpy as np
from numpy.typing import NDArray

from meshhub import MeshhubError, Registry
from meshhub.model.scene import Part, Scene
from meshhub.toolkit.geometry import bounds, soup

GAP_MM = 6.0
"""Millimeters; PrusaSlicer's own default."""

MAX_BYTES = 4_000_000
"""Size of the files that are used: larger ones only take longer to read."""

COVERED = 0.4
"""Share of the bed that the boxes of a set cover."""


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--bed", default="220x220")
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    bed = np.array([float(side) for side in arguments.bed.split("x")])
    registry = Registry()
    models = read_models(registry, arguments.folder)
    rows = []
    for seed in range(arguments.sets):
        row = {
            "machine": platform.processor(),
            "recorded": str(datetime.date.today()),
            "set": seed,
            **compare(registry, models, bed, random.Random(seed)),
        }
        rows.append(row)
        print(row, flush=True)
    ratios = [row["density"] / row["density_prusaslicer"] for row in rows if row["density_prusaslicer"]]
    print(
        f"density per PrusaSlicer's: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}; at least "
        f"equal in {sum(ratio >= 1 for ratio in ratios)} of {len(ratios)}"
    )
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


def read_models(registry: Registry, folder: Path) -> list[tuple[NDArray[np.float64], NDArray[np.int32]]]:
    """Return the triangles of the readable, closed files."""
    models = []
    for path in sorted(folder.rglob("*.[sS][tT][lL]")):
        if path.stat().st_size > MAX_BYTES:
            continue
        try:
            vertices, faces = soup(registry.read(path, repair=True))
        except MeshhubError:
            continue
        solid = manifold3d.Manifold(manifold3d.Mesh64(vertices.copy(), faces.astype(np.uint64)))
        if solid.status() == manifold3d.Error.NoError and (np.ptp(vertices, axis=0)[:2] > 0).all():
            models.append((vertices, faces))
    return models


def compare(
    registry: Registry,
    models: list[tuple[NDArray[np.float64], NDArray[np.int32]]],
    bed: NDArray[np.float64],
    rng: random.Random,
) -> dict[str, object]:
    """Arrange one set by both programs."""
    count = rng.randint(2, 12)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = []
        meshes = []
        for number, (vertices, faces) in enumerate(rng.sample(models, count)):
            low, high = vertices.min(axis=0), vertices.max(axis=0)
            wanted = np.sqrt(bed.prod() * COVERED * rng.uniform(0.5, 1.5) / count)
            scaled = (vertices - low) * (wanted / np.sqrt((high - low)[:2].prod()))
            scaled *= min(1.0, *(0.9 * bed / np.ptp(scaled, axis=0)[:2]))
            path = folder / f"{number}.stl"
            registry.write(registry_scene(scaled, faces), path)
            paths.append(path)
            meshes.append(registry.read(path).meshes[0])
        scene = Scene(tuple(meshes), tuple(Part(index) for index in range(len(meshes))))
        start = time.perf_counter()
        ours = registry.read(scene, arrange_bed=f"{bed[0]:g}x{bed[1]:g}", arrange_gap_mm=GAP_MM)
        middle = time.perf_counter()
        theirs = folder / "prusa.3mf"
        subprocess.run(
            ["prusa-slicer", "--merge", "--bed-shape", f"0x0,{bed[0]:g}x0,{bed[0]:g}x{bed[1]:g},0x{bed[1]:g}",
             "--duplicate-distance", f"{GAP_MM:g}", "--export-3mf", "--output", str(theirs), *map(str, paths)],
            check=True, capture_output=True,
        )  # fmt: skip
        end = time.perf_counter()
        own_plates = max(part.plate for part in ours.parts) + 1
        return {
            "models": count,
            "beds": own_plates,
            "density": round(density(ours), 3) if own_plates == 1 else 0.0,
            "density_prusaslicer": round(density(registry.read(theirs)), 3),
            "seconds": round(middle - start, 2),
            "seconds_prusaslicer": round(end - middle, 2),
        }


def registry_scene(vertices: NDArray[np.float64], faces: NDArray[np.int32]) -> Scene:
    """Return a scene of one mesh."""
    from meshhub.model.scene import Mesh

    return Scene((Mesh(vertices, faces),), (Part(0),))


def density(scene: Scene) -> float:
    """Return the area of the shadows per area of the rectangle around them."""
    area = 0.0
    for part in scene.parts:
        vertices, faces = soup(replace(scene, parts=(part,)))
        area += manifold3d.Manifold(manifold3d.Mesh64(vertices.copy(), faces.astype(np.uint64))).project().area()
    return area / float(np.ptp(bounds(scene), axis=0)[:2].prod())


if __name__ == "__main__":
    sys.exit(main())
