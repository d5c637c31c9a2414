"""Text about reports, chains and CAD features, for people."""

from __future__ import annotations

from typing import Any

from meshhub.errors import format_number
from meshhub.model.chain import Chain
from meshhub.model.features import FeatureTable, Hole
from meshhub.model.options import flag_of
from meshhub.model.report import Report

_UNIT_SUFFIXES = {"_mm3": "mm³", "_mm2": "mm²", "_mm": "mm"}

MAX_LISTED_RADII = 12
"""Maximum number of radii in one line; --json lists all."""


def format_bytes(count: int) -> str:
    """Format a number of bytes with a decimal unit."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def format_size(extent: tuple[float, float, float] | None) -> str:
    """Format a size in millimeters along X, Y and Z."""
    return "" if extent is None else " × ".join(f"{format_number(side, 4)}" for side in extent) + " mm"


def summarize(report: Report) -> str:
    """Summarize a conversion in one line."""
    before, after = report.source, report.target
    faces = f"{after.faces:,} face{'s' * (after.faces != 1)}"
    if before.faces != after.faces:
        faces = f"{before.faces:,} → {faces}"
    return f"{faces}, {format_size(after.size_mm)}, {format_bytes(after.bytes)}, {report.seconds:.2f} s"


def list_figures(report: Report) -> list[str]:
    """Return a line for each operation and the writer with the figures that they reported."""
    lines = []
    for step in report.steps:
        text = ", ".join(_describe_figure(name, value) for name, value in step.figures.items() if value)
        if step.kind != "read" and text:
            lines.append(f"{step.step}: {text}")
    return lines


def list_steps(chain: Chain) -> list[str]:
    """Return the steps of a chain with their options, for people."""
    steps = []
    for step in chain.steps:
        options = " ".join(
            flag_of(name) if value is True else f"{flag_of(name)} {value}" for name, value in step.options.items()
        )
        verb = "run" if step.kind == "operation" else step.kind
        steps.append(f"{verb} {step.label}" + (f" ({options})" if options else ""))
    return steps


def _describe_figure(name: str, value: Any) -> str:
    """Describe a figure; a unit at the end of its name follows the value."""
    for suffix, unit in _UNIT_SUFFIXES.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')} {_format(value)} {unit}"
    return f"{name.replace('_', ' ')} {_format(value)}"


def list_features(table: FeatureTable | None) -> list[str]:
    """Return the lines of a feature table: exact size, faces by kind, radii, holes."""
    if table is None:
        return []
    kinds = ", ".join(f"{entry.count:,} {entry.kind}" for entry in table.faces)
    lines = [
        f"CAD model: {format_size(table.size_mm)}, {table.solids:,} solid{'s' * (table.solids != 1)}",
        f"  faces: {kinds}",
    ]
    for side, title in (("outside", "outer radii"), ("inside", "inner radii")):
        radii = [
            f"{entry.count:,} × R{format_number(entry.radius_mm, 6)} {entry.kind}"
            for entry in table.radii
            if entry.side == side
        ]
        if radii:
            lines.append(f"  {title}: {_first(radii)}")
    lines += [f"  hole: {line}" for line in map(describe_hole, table.holes)]
    return lines


def describe_hole(hole: Hole) -> str:
    """Describe equal holes in one line, in the notation of drawings."""
    diameter, depth = format_number(hole.diameter_mm, 6), format_number(hole.depth_mm, 6)
    text = f"{hole.count:,} × Ø{diameter} mm, {depth} mm deep, {hole.end}"
    for step in hole.steps:
        size = format_number(step.diameter_mm, 6)
        rest = f"{format_number(step.depth_mm, 6)} mm deep"
        if step.angle_deg is not None:
            rest = f"{format_number(step.angle_deg, 4)}°"
        text += f", {step.kind} Ø{size} mm {rest}"
    return text


def _first(words: list[str]) -> str:
    """Join the first words, and count the rest."""
    rest = len(words) - MAX_LISTED_RADII
    return ", ".join(words[:MAX_LISTED_RADII]) + (f" and {rest} more" if rest > 0 else "")


def _format(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_format, value))
    return f"{format_number(value, 6)}" if isinstance(value, float) else str(value)
