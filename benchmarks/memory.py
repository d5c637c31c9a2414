"""Peak memory of conversions between binary formats: `python benchmarks/memory.py [--kinds] [--csv FILE]`.

A closed sphere of two million triangles is converted in a process of its own for each pair of formats, after a small
model that imports everything; the peak is what comes on top of that. Linux only, because the peak is reset through
/proc/self/clear_refs.

With `--kinds`, each operation, each check, all checks and a quote run on an STL sphere of 100,000 triangles (5 MB) of
100 mm, and the last column divided by that of `convert` is the factor that operations, checks and writers declare.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from meshhub import MeshhubError, Registry
from speed import write_sphere

FORMATS = (".stl", ".ply", ".glb")
FACE_COUNT, SMALL_FACE_COUNT = 2_000_000, 2_000
RESET_PEAK = "5"
"""Text that sets the peak to the present memory (proc(5))."""


def read_peak_mb() -> float:
    """Return the largest resident memory since the last reset."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    match = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert match is not None
    return int(match[1]) / 1024


def measure(source: Path, target: Path) -> None:
    """Convert in this process, and print the peak beyond that of the imports in MB."""
    registry = Registry(entry_points=False)
    registry.convert(source.with_stem("small"), target)
    Path("/proc/self/clear_refs").write_text(RESET_PEAK, encoding="ascii")
    before = read_peak_mb()
    registry.convert(source, target)
    print(read_peak_mb() - before)


KINDS: dict[str, tuple[str, dict[str, object]]] = {
    "convert": ("convert", {}),
    "repair": ("convert", {"repair": True}),
    "repair self-intersections": ("convert", {"repair": True, "repair_self_intersections": True}),
    "repair solid": ("convert", {"repair": True, "repair_solid": True}),
    "optimize": ("convert", {"optimize_target_faces": 50_000}),
    "optimize error": ("convert", {"optimize_max_error_mm": 0.05}),
    "reduce-colors": ("convert", {"reduce_colors": 4}),
    "orient": ("convert", {"orient": True}),
    "lay-flat": ("convert", {"lay_flat": True}),
    "boolean": ("convert", {"boolean": "union"}),
    "fill-holes": ("convert", {"fill_holes_mm": 5}),
    "offset": ("convert", {"offset_mm": 2}),
    "thicken": ("convert", {"thicken_mm": 1.2}),
    "hollow": ("convert", {"hollow_wall_mm": 2}),
    "flatten-base": ("convert", {"flatten_base_mm": 1}),
    "merge-parts": ("convert", {"merge_parts": "union"}),
    "plinth": ("convert", {"plinth_mm": 3}),
    "chamfer-base": ("convert", {"flatten_base_mm": 1, "chamfer_base_mm": 0.5}),
    "drain": ("convert", {"hollow_wall_mm": 2, "drain_holes_mm": 3}),
    "cut-plane": ("convert", {"cut_plane": "z=50%"}),
    "split-for-bed": ("convert", {"split_for_bed": "60x60x60"}),
    "split-parts": ("convert", {"split_parts": True}),
    "arrange": ("convert", {"arrange_bed": "220x220"}),
    "step": ("step", {}),
    **{
        f"check {name}": ("check", {"checks": name})
        for name in "cups estimate gaps islands mesh overhangs overlaps size spans standing walls".split()
    },
    "check": ("check", {}),
    "quote": ("quote", {}),
}
"""Purpose and options of each kind; `step` is a conversion to STEP."""
SUFFIXES = {"convert": ".3mf", "step": ".step"}
KIND_FACE_COUNT = 100_000


def measure_kind(name: str, source: Path) -> None:
    """Run a kind in this process, and print the peak beyond that of the imports in MB."""
    registry = Registry(entry_points=False)
    purpose, options = KINDS[name]

    def run(path: Path) -> None:
        try:
            if purpose in SUFFIXES:
                registry.convert(path, path.with_name("result" + SUFFIXES[purpose]), **options)
            else:
                getattr(registry, purpose)(path, **options)
        except MeshhubError as error:
            print(error, file=sys.stderr)

    run(source.with_stem("small"))
    Path("/proc/self/clear_refs").write_text(RESET_PEAK, encoding="ascii")
    before = read_peak_mb()
    run(source)
    print(read_peak_mb() - before)


def measure_kinds(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return a row for each kind."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stem, count in (("large", KIND_FACE_COUNT), ("small", SMALL_FACE_COUNT)):
            write_sphere(folder, count, ".stl").rename(folder / f"{stem}.stl")
        size = (folder / "large.stl").stat().st_size / 2**20
        for kind in names:
            command = [sys.executable, __file__, "--inner-kind", kind, str(folder / "large.stl")]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                print(kind, result.stderr[-300:], file=sys.stderr)
                continue
            peak = float(result.stdout)
            rows.append((kind, f"{size:.0f}", f"{peak:.0f}", f"{peak / size:.1f}"))
            print(*rows[-1], result.stderr.strip()[:80], sep="\t", flush=True)
    return rows


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, metavar="KIND")
    parser.add_argument("--inner", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--inner-kind", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inner:
        measure(*arguments.inner)
        return
    if arguments.inner_kind:
        measure_kind(arguments.inner_kind[0], Path(arguments.inner_kind[1]))
        return
    is_about_formats = arguments.kinds is None
    rows = measure_formats() if is_about_formats else measure_kinds(arguments.kinds or tuple(KINDS))
    if arguments.csv is not None:
        columns = ("from", "to") if is_about_formats else ("kind",)
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("machine", "recorded", *columns, "source_mb", "peak_mb", "peak_per_source"))
            writer.writerows((platform.machine(), datetime.date.today().isoformat(), *row) for row in rows)


def measure_formats() -> list[tuple[str, ...]]:
    """Return a row for each pair of formats."""
    rows = []
    with tempfile.TemporaryDirectory() as name, Registry(entry_points=False) as registry:
        folder = Path(name)
        for stem, count in (("large", FACE_COUNT), ("small", SMALL_FACE_COUNT)):
            sphere = write_sphere(folder, count, ".stl")
            for suffix in FORMATS:
                registry.convert(sphere, folder / f"{stem}{suffix}")
        for source_suffix, target_suffix in product(FORMATS, FORMATS):
            source, target = folder / f"large{source_suffix}", folder / f"result{target_suffix}"
            command = [sys.executable, __file__, "--inner", str(source), str(target)]
            peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            size = source.stat().st_size / 2**20
            rows.append((source_suffix[1:], target_suffix[1:], f"{size:.0f}", f"{peak:.0f}", f"{peak / size:.1f}"))
            print(*rows[-1], sep="\t", flush=True)
    return rows


if __name__ == "__main__":
    main()
