"""Facts that slicers state in comments: time, filament, layers, slicer, printer, and limits of the printer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from msgspec import Struct

from meshhub.toolkit.names import single_line
from meshhub_gcode.moves import Machine

_UNITS_S = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m|s)", re.IGNORECASE)
_COMMENT = re.compile(rb"^[ \t]*;[ \t]*(.{1,400}?)[ \t\r]*$", re.MULTILINE)
_SETTING = re.compile(r"([A-Za-z][\w .()^-]{0,60}?(?: ?\[[\w^]+\])?)\s*[=:]\s*(.*)")
_MAX_COMMENTS_COUNT = 20_000
"""Comments that are read at each end of a file; settings of slicers have hundreds."""

_MAX_NAME_LENGTH = 80

DEFAULT_DIAMETER_MM = 1.75
"""Diameter of most filament."""

_TIMES = (
    "estimated printing time (normal mode)",
    "total estimated time",
    "time",
    "print time",
    "build time",
    "estimated build time",
    "prediction",
)
"""Names of the time, in lower case: PrusaSlicer and OrcaSlicer, BambuStudio, Cura, ideaMaker, Simplify3D, KISSlicer,
and the list of plates in a 3MF package.
"""

_SLICER = re.compile(
    r"(?:(?:sliced|generated) (?:by|with):? +)?"
    r"((?:PrusaSlicer|SuperSlicer|OrcaSlicer|BambuStudio|Slic3r|Cura_SteamEngine|ideaMaker|Simplify3D|KISSlicer|"
    r"Kiri:Moto|CrealityPrint|QIDISlicer|AnycubicSlicer\w*|ElegooSlicer|FlashPrint|IceSL|MatterControl)\b[^;,]{0,60})",
    re.IGNORECASE,
)
_GENERATED = re.compile(r"(?:sliced|generated) (?:by|with):? +(.{1,60})", re.IGNORECASE)
_DATE = re.compile(r"(?:\+UNKNOWN)?(?: \(R\))?(?: \(build.*)? on \d{4}-.*|\+UNKNOWN.*", re.IGNORECASE)


class Facts(Struct, kw_only=True):
    """Facts that a file states; None or "" if it does not."""

    slicer: str = ""
    """Name and version."""

    printer: str = ""
    """Model of the printer."""

    seconds: float | None = None
    """Time of the print."""

    lengths_mm: list[float] = []
    """Length of the filament of each tool."""

    filament_g: float | None = None
    """Weight of the filament of all tools."""

    cost: float | None = None
    """Cost of the filament, in the currency of the slicer's settings."""

    layers: int | None = None
    """Number of layers."""

    diameter_mm: list[float] = []
    """Diameter of the filament of each tool."""

    density_g_cm3: list[float] = []
    """Density of the filament of each tool."""

    colors: list[str] = []
    """Color of the filament of each tool, such as "#FF8000"."""

    settings: dict[str, str] = {}
    """All settings, by name in lower case."""

    @property
    def filament_mm(self) -> float | None:
        """Length of the filament of all tools."""
        return sum(self.lengths_mm) or None

    def cross_section(self, tool: int) -> float:
        """Return the cross section of the filament of a tool, in square millimeters."""
        return math.pi / 4 * (_of_tool(self.diameter_mm, tool) or DEFAULT_DIAMETER_MM) ** 2

    def weigh(self, length_mm: float, tool: int, density_g_cm3: float = 0.0) -> float:
        """Return the weight of a length of the filament of a tool, in grams.

        Args:
            density_g_cm3: Density if the file states none.
        """
        return length_mm * self.cross_section(tool) * (_of_tool(self.density_g_cm3, tool) or density_g_cm3) / 1000

    @property
    def is_volumetric(self) -> bool:
        """Whether moves state cubic millimeters instead of lengths of filament."""
        return self.settings.get("use_volumetric_e") == "1"

    def machine(self) -> Machine:
        """Return the limits of the printer; those of common printers where the file states none."""

        def first(name: str, default: float) -> float:
            return next(iter(_numbers(self.settings.get(name, ""))), default) or default

        return Machine(
            first("machine_max_acceleration_extruding", 1000.0),
            first("machine_max_acceleration_x", 1e6),
            (
                first("machine_max_jerk_x", 8.0),
                first("machine_max_jerk_y", 8.0),
                first("machine_max_jerk_z", 0.4),
                first("machine_max_jerk_e", 5.0),
            ),
        )


def read_facts(text: bytes, metadata: Iterable[tuple[str, str]] = ()) -> Facts:
    """Read the facts of a file.

    Args:
        text: G-code.
        metadata: Names and values that the file states elsewhere, such as the blocks of binary G-code.
    """
    facts = Facts(settings={name.strip().lower(): value.strip() for name, value in metadata})
    for comment in _list_comments(text):
        if not facts.slicer:
            facts.slicer = _find_slicer(comment)
        # BambuStudio writes two on a line
        for part in comment.split("; "):
            match = _SETTING.fullmatch(part)
            if match:
                facts.settings.setdefault(match[1].strip().lower(), match[2].strip())
    settings = facts.settings
    producer = settings.get("producer") or settings.get("generated by") or ""
    facts.slicer = facts.slicer or _shorten(producer)
    names = ("printer_model", "printer_settings_id", "target_machine.name")
    facts.printer = _shorten(next(filter(None, map(settings.get, names)), "").strip('"'))
    facts.seconds = next(filter(None, (_read_duration(settings.get(name, "")) for name in _TIMES)), None)
    stated = (_numbers(settings.get(name, "")) for name in ("filament used [mm]", "total filament length [mm]"))
    facts.lengths_mm = next(filter(any, stated), None) or _read_meters(settings.get("filament used", ""))
    weights = ("filament used [g]", "total filament weight [g]", "total filament used [g]", "weight")
    facts.filament_g = _sum(settings, *weights)
    facts.cost = _sum(settings, "filament cost", "total filament cost")
    count = next(iter(_numbers(settings.get("total layer number") or settings.get("layer_count") or "")), None)
    facts.layers = None if count is None else int(count)
    facts.diameter_mm = _numbers(settings.get("filament_diameter", ""))
    facts.density_g_cm3 = _numbers(settings.get("filament_density", ""))
    for name in ("filament_colour", "extruder_colour"):
        colors = [color.strip().strip('"') for color in settings.get(name, "").split(";")]
        if any(colors):
            facts.colors = colors
            break
    return facts


def _list_comments(text: bytes) -> Iterable[str]:
    """Yield the comments at the start and at the end of a file, where slicers state facts."""
    half = len(text) // 2
    parts = (text[:half], text[half:]) if len(text) > 1 << 20 else (text,)
    for number, part in enumerate(parts):
        window = part[-(1 << 20) :] if number else part[: 1 << 20]
        for _, match in zip(range(_MAX_COMMENTS_COUNT), _COMMENT.finditer(window), strict=False):
            yield match[1].decode("utf-8", "replace")


def _find_slicer(comment: str) -> str:
    match = _SLICER.match(comment) or _GENERATED.match(comment)
    return _shorten(match[1]) if match else ""


def _shorten(text: str) -> str:
    return single_line(_DATE.sub("", text)).replace("Cura_SteamEngine", "Cura").strip()[:_MAX_NAME_LENGTH]


def _numbers(text: str) -> list[float]:
    """Return the numbers of a list with commas or semicolons; none if one is damaged."""
    try:
        return [float(word) for word in re.split(r"[,;]", text)] if text.strip() else []
    except ValueError:
        return []


def _sum(settings: dict[str, str], *names: str) -> float | None:
    """Return the sum over all tools of the first name that is stated with a number over 0."""
    return next(filter(None, (sum(_numbers(settings.get(name, ""))) for name in names)), None)


def _read_duration(text: str) -> float | None:
    """Return the seconds of "1h 2m 3s", "62 minutes" or "3723"."""
    try:
        return float(text)
    except ValueError:
        pass
    parts = _DURATION.findall(text)
    return sum(float(count) * _UNITS_S[unit.lower()] for count, unit in parts) if parts else None


def _read_meters(text: str) -> list[float]:
    """Return the millimeters of each tool of "1.23456m, 0.5m"."""
    return [1000 * float(length) for length in re.findall(r"(\d+(?:\.\d+)?)m\b", text)]


def _of_tool(values: list[float], tool: int) -> float:
    return values[min(tool, len(values) - 1)] if values else 0.0
