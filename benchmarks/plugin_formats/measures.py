"""Figures of a model, and how those of two programs compare."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.plugin_formats.programs.stl import read_stl

TOLERANCE_RATIO = 2e-3
"""Relative difference of sizes, areas and volumes up to which two readings are equal: programs round differently."""

FLOAT32_RATIO = 2e-7
"""Part of the distance to the origin by which a size can differ, because STL has numbers of 32 bits."""


CLOSED_RATIO = 1e-3
"""Part of the area by which the area vectors of a closed surface can miss zero, with numbers of 32 bits."""


@dataclass(frozen=True)
class Measures:
    """Sorted sizes, area, and volume of closed surfaces; None for those that a program does not report."""

    sizes: tuple[float, ...] = ()
    area: float | None = None
    volume: float | None = None
    distance: float = 0.0
    """Distance of the farthest corner from the origin along an axis."""


def measure_surface(path: Path) -> Measures | None:
    """Measure an STL file; None without triangles."""
    corners = read_stl(path)
    # a program writes what cannot be a surface: its file counts as not read
    if not len(corners) or not np.isfinite(corners).all():
        return None
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    a, b, c = np.moveaxis(corners - (low + high) / 2, 1, 0)
    normals = np.cross(b - a, c - a) / 2
    area = float(np.linalg.norm(normals, axis=1).sum())
    # the area vectors of a closed surface whose triangles face one way add up to nothing
    is_closed = np.linalg.norm(normals.sum(axis=0)) < CLOSED_RATIO * area
    volume = abs(float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)) if is_closed else None
    return Measures(tuple(sorted((high - low).tolist())), area, volume, float(np.abs(corners).max()))


def measure_base(path: Path) -> Measures | None:
    """Measure the base of a solid that a drawing was extruded to."""
    corners = read_stl(path)
    surface = measure_surface(path)
    if surface is None or surface.volume is None:
        return None
    sizes = np.ptp(corners.reshape(-1, 3), axis=0)
    return Measures(tuple(sorted(sizes[:2].tolist())), surface.volume / float(sizes[2]))


def measure_filament(path: Path) -> Measures | None:
    """Measure the volume of a toolpath; a slicer reports nothing else."""
    surface = measure_surface(path)
    return surface and Measures(volume=surface.volume)


def read_figures(path: Path) -> Measures:
    figures = json.loads(path.read_text())
    return Measures(tuple(figures.get("sizes", ())), figures.get("area"), figures.get("volume"))


def compare(ours: Measures, theirs: Measures) -> tuple[float, list[str]]:
    """Return the scale from the unit of a program to millimeters, and what differs."""
    longest = ours.sizes[-1] if ours.sizes else 1.0
    scale = longest / theirs.sizes[-1] if theirs.sizes and theirs.sizes[-1] else 1.0
    faults: list[str] = []
    rows = [("size", own, other, scale, longest) for own, other in zip(ours.sizes, theirs.sizes, strict=True)]
    # parts that hardly enclose anything have a volume of rounding errors
    rows += [
        ("area", ours.area, theirs.area, scale**2, 0.0),
        ("volume", ours.volume, theirs.volume, scale**3, longest**3),
    ]
    noise = FLOAT32_RATIO * max(ours.distance, theirs.distance * scale) / longest
    for name, own, other, factor, least in rows:
        if own is None or other is None:
            continue
        limit = (TOLERANCE_RATIO + noise) * max(abs(own), least * 1e-3) + noise * least
        if not abs(own - other * factor) <= limit:
            faults.append(f"{name} {own:.6g}:{other * factor:.6g}")
    return scale, faults
