"""Compare the islands that `check` finds in real parts with those in the layers of PrusaSlicer.

Usage: python benchmarks/islands.py [--poses 100] [--csv FILE]   (needs prusa-slicer and MESHHUB_CORPUS)

Each part is checked as it is drawn, and turned in any direction. PrusaSlicer slices it for a resin printer, without
supports, into pictures of 0.1 mm per pixel. An island is a region of pixels in a layer that touches none of the layer
below; smaller ones than MIN_AREA_MM2 are left out. Islands are equal if their centers are in the same layer or in
neighboring ones, and about as close as they are wide.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import os
import platform
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage, stats
from scipy.spatial.transform import Rotation

from meshhub import Registry
from real_parts import Surface, make_scene, read_parts

LAYER_MM, PIXEL_MM = 0.2, 0.1
BED_MM = 120

SIDE_MM = 60.0
"""Longest side to which larger parts are scaled, so that the grid of the check has its finest cells."""

MIN_AREA_MM2 = 1.0
"""Area from which an island counts."""

MIN_DISTANCE_MM = 1.0
"""Distance of centers up to which the smallest islands are equal."""

SETTINGS = {
    "printer_technology": "SLA",
    "bed_shape": f"0x0,{BED_MM}x0,{BED_MM}x{BED_MM},0x{BED_MM}",
    "display_width": BED_MM,
    "display_height": BED_MM,
    "display_pixels_x": round(BED_MM / PIXEL_MM),
    "display_pixels_y": round(BED_MM / PIXEL_MM),
    "display_orientation": "landscape",
    "display_mirror_x": 0,
    "display_mirror_y": 0,
    "max_print_height": 200,
    "layer_height": LAYER_MM,
    "initial_layer_height": LAYER_MM,
    "supports_enable": 0,
    "pad_enable": 0,
    "elefant_foot_compensation": 0,
    "slice_closing_radius": 0,
    "sla_archive_format": "SL1",
}


class Islands(NamedTuple):
    """Centers (q, 3) from the lowest corner of the part, in mm, and areas (q,) in mm², the largest first."""

    centers: NDArray[np.float64]
    areas: NDArray[np.float64]


def choose_scale(sides: NDArray[np.float64]) -> float | None:
    """Return the scale of a part; None for parts too small or too flat to have layers."""
    scale = min(1.0, SIDE_MM / float(sides.max()))
    return scale if float((sides * scale).min()) >= 2.0 else None


def turn(surface: Surface, seed: int) -> Surface:
    """Return a part in a random direction, standing on the bed."""
    vertices = Rotation.random(rng=seed).apply(surface[0])
    return vertices - vertices.min(axis=0), surface[1]


def check_islands(registry: Registry, surface: Surface) -> tuple[Islands, int]:
    """Return the islands that a check lists, and how many it counts."""
    verdict = registry.check(make_scene(surface), checks="islands", print_layer_mm=LAYER_MM)
    places = [place for finding in verdict.findings for place in finding.places if finding.code == "islands"]
    count = sum(finding.places_found for finding in verdict.findings if finding.code == "islands")
    low = surface[0].min(axis=0)
    centers = np.array([place.position_mm for place in places]).reshape(-1, 3) - low
    return Islands(centers, np.array([place.amount or 0.0 for place in places])), count


def slice_islands(registry: Registry, surface: Surface, folder: Path) -> Islands | None:
    """Return the islands of PrusaSlicer's layers; None if it does not slice the part."""
    model, settings, archive = folder / "part.stl", folder / "sla.ini", folder / "part.sl1"
    registry.write(make_scene(surface), model)
    settings.write_text("".join(f"{name} = {value}\n" for name, value in SETTINGS.items()))
    archive.unlink(missing_ok=True)
    command = ["prusa-slicer", "--load", settings, "--export-sla", "--center", f"{BED_MM / 2},{BED_MM / 2}"]
    try:
        subprocess.run([*command, "-o", archive, model], capture_output=True, timeout=300, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    if not archive.exists():
        return None
    sides = np.ptp(surface[0], axis=0)
    # rows run down, the part lies in the middle of the bed
    origin = (BED_MM - sides[:2]) / 2
    rows = []
    below = None
    with zipfile.ZipFile(archive) as layers:
        names = sorted(name for name in layers.namelist() if name.endswith(".png"))
        for number, name in enumerate(names):
            filled = np.asarray(Image.open(io.BytesIO(layers.read(name))).convert("L"))[::-1] >= 128
            if below is not None and filled.any():
                label, count = ndimage.label(filled, np.ones((3, 3)))
                is_held = np.zeros(count + 1, np.bool_)
                is_held[label[ndimage.binary_dilation(below, np.ones((3, 3)))]] = True
                for region in np.flatnonzero(~is_held[1:]) + 1:
                    row, column = np.nonzero(label == region)
                    x, y = (column.mean() + 0.5) * PIXEL_MM - origin[0], (row.mean() + 0.5) * PIXEL_MM - origin[1]
                    rows.append((x, y, (number + 0.5) * LAYER_MM, len(row) * PIXEL_MM**2))
            below = filled
    table = np.array(sorted(rows, key=lambda island: -island[3])).reshape(-1, 4)
    return Islands(table[:, :3], table[:, 3])


def count_matched(islands: Islands, others: Islands) -> tuple[int, int]:
    """Return how many islands count, and how many of these are among others of any size."""
    large = islands.areas >= MIN_AREA_MM2
    found = 0
    for center, area in zip(islands.centers[large], islands.areas[large], strict=True):
        offset = np.abs(others.centers - center)
        near = np.hypot(offset[:, 0], offset[:, 1]) <= max(MIN_DISTANCE_MM, float(np.sqrt(area)) / 2)
        found += bool((near & (offset[:, 2] < 1.5 * LAYER_MM)).any())
    return int(large.sum()), found


def main() -> None:
    """Print and write one row for each pose of a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--poses", type=int, default=100)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    rows: list[tuple[object, ...]] = []
    with Registry(entry_points=False) as registry, tempfile.TemporaryDirectory() as folder:
        parts = read_parts(
            registry, Path(os.environ["MESHHUB_CORPUS"]), {".stl", ".obj", ".ply", ".3mf", ".glb"}, 20_000_000,
            range(50, 200_000), choose_scale,
        )  # fmt: skip
        poses = (
            (f"{name}{suffix}", surface)
            for number, (name, drawn) in enumerate(parts)
            for suffix, surface in (("", drawn), (" turned", turn(drawn, number)))
        )
        for name, surface in poses:
            found, count = check_islands(registry, surface)
            sliced = slice_islands(registry, surface, Path(folder))
            if sliced is None:
                continue
            # a verdict lists the largest places only
            least = found.areas.min() if count > len(found.areas) else 0.0
            listed = Islands(sliced.centers[sliced.areas > least], sliced.areas[sliced.areas > least])
            rows.append((name, len(surface[1]), *count_matched(listed, found), *count_matched(found, sliced)))
            print(*rows[-1], sep="\t", flush=True)
            if len(rows) == arguments.poses:
                break
    names = ("part", "triangles", "sliced", "sliced_and_found", "found", "found_and_sliced")
    table = np.array([row[2:] for row in rows], np.int64)
    rank = stats.spearmanr(table[:, 0], table[:, 2]).statistic
    print("all", len(rows), *table.sum(axis=0).tolist(), f"rank correlation {rank:.3f}", sep="\t")
    if arguments.csv is not None:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("machine", "recorded", *names))
            writer.writerows((platform.machine(), datetime.date.today().isoformat(), *row) for row in rows)


if __name__ == "__main__":
    main()
