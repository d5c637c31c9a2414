"""Support of real files as drawn, as `orient` turns them, and in 26 directions, measured by PrusaSlicer.

    python benchmarks/orient.py CORPUS RESULT.csv [--files 40] [--directions 0] [--seconds 900]

The files are those of `benchmarks/prepare.py`. PrusaSlicer slices each with support below 45 degrees; the volume of the
support is that of the filament of its paths. With `--directions N`, the first N files are also sliced in all 26
directions of a cube's sides, edges and corners.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from meshhub import Registry, Scene
from meshhub.engine.isolated import Isolated
from meshhub.toolkit.geometry import turned
from meshhub.toolkit.poses import rotation_to_bed
from prepare import choose_files

FILAMENT_MM2 = np.pi * (1.75 / 2) ** 2
ANGLE_DEG = 45
LESS_RATIO = 0.98
"""Support per support as drawn below which it counts as less."""

SAME_MM3 = 20.0
"""Difference of supports that PrusaSlicer itself shows for the same pose beside another skirt."""

_EXTRUSION = re.compile(r"^G1 .*?E(-?[\d.]+)")


def measure_support(registry: Registry, scene: Scene, folder: Path) -> float | None:
    """Return the mm³ of support that PrusaSlicer prints below a scene; None if it does not slice it."""
    model, code = folder / "model.stl", folder / "model.gcode"
    registry.convert(scene, model, place_on_bed=True)
    code.unlink(missing_ok=True)
    subprocess.run(
        [
            "prusa-slicer", "--export-gcode", "--layer-height", "0.3", "--center", "100,100", "--support-material",
            "--support-material-threshold", str(ANGLE_DEG), "--use-relative-e-distances", "--layer-gcode", "G92 E0",
            "--output", code, model,
        ],
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    if not code.exists():
        return None
    total, is_support = 0.0, False
    for line in code.read_text(encoding="utf-8").splitlines():
        if line.startswith(";TYPE:"):
            is_support = "Support" in line
        elif is_support and (match := _EXTRUSION.match(line)):
            total += max(float(match[1]), 0.0)
    return total * FILAMENT_MM2


def main() -> None:
    """Measure the files, and write a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--directions", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=900)
    arguments = parser.parse_args()
    directions = [np.array(step, float) for step in itertools.product((-1, 0, 1), repeat=3) if any(step)]
    folder = Path(tempfile.mkdtemp())
    better = worse = same = 0
    with (
        Registry(entry_points=False, engine=Isolated(workers=1)) as registry,
        arguments.result.open("w", encoding="utf-8", newline="") as file,
    ):
        table = csv.writer(file)
        table.writerow(["file", "as_drawn_mm3", "oriented_mm3", "best_of_26_mm3"])
        files = choose_files(registry, arguments.corpus, folder)
        deadline = time.monotonic() + arguments.seconds
        for number, path in enumerate(files[: arguments.files]):
            if time.monotonic() > deadline:
                break
            scene = registry.read(path)
            drawn = measure_support(registry, scene, folder)
            oriented = measure_support(registry, registry.read(scene, orient=True), folder)
            if drawn is None or oriented is None:
                continue
            poses = directions if number < arguments.directions else []
            supports = [
                support
                for down in poses
                if (
                    support := measure_support(
                        registry, turned(scene, rotation_to_bed(down / np.linalg.norm(down))), folder
                    )
                )
                is not None
            ]
            table.writerow([path.stem, f"{drawn:.0f}", f"{oriented:.0f}", f"{min(supports):.0f}" if supports else ""])
            file.flush()
            if oriented < LESS_RATIO * drawn - SAME_MM3:
                better += 1
            elif oriented > drawn / LESS_RATIO + SAME_MM3:
                worse += 1
            else:
                same += 1
    shutil.rmtree(folder)
    print(f"support: less for {better} files, about the same for {same}, more for {worse}")


if __name__ == "__main__":
    main()
