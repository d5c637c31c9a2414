"""Read the filaments that the settings of slicer projects state: colors and materials."""

from __future__ import annotations

import itertools
import re

import msgspec

from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.builtin_plugins.threemf.reading.project_files import read_project_file

PRUSA_SETTINGS = "Metadata/Slic3r_PE.config"
"""Print settings of PrusaSlicer."""

BAMBU_SETTINGS = "Metadata/project_settings.config"
"""Print settings of BambuStudio and OrcaSlicer."""

MAX_FILAMENT = 64
"""Largest number of a filament; slicers have at most 32."""

_COLOR_SETTING = re.compile(rb"^; (extruder_colour|filament_colour) = (.*)$", re.MULTILINE)
_COLOR = re.compile(r"#([0-9A-Fa-f]{6})(?:[0-9A-Fa-f]{2})?")
_TYPE_SETTING = re.compile(rb"^; filament_type = (.*)$", re.MULTILINE)
_TYPE = re.compile(r"[A-Za-z0-9+ -]{1,20}")


class _BambuColors(msgspec.Struct):
    """Colors in the settings of BambuStudio and OrcaSlicer."""

    filament_colour: list[str] = []


class _BambuTypes(msgspec.Struct):
    """Materials in the settings of BambuStudio and OrcaSlicer."""

    filament_type: list[str] = []


def read_colors(package: Package) -> list[str]:
    """Return the colors of the filaments."""
    settings = read_project_file(package, BAMBU_SETTINGS, msgspec.json.Decoder(_BambuColors).decode)
    texts = settings.filament_colour if settings is not None else []
    if not texts:
        texts = read_project_file(package, PRUSA_SETTINGS, _find_colors) or []
    matches = [_COLOR.fullmatch(text.strip()) for text in texts[:MAX_FILAMENT]]
    return [match.group(1) if match else "" for match in matches]


def read_filament_types(package: Package, count: int) -> list[str]:
    """Return the materials of `count` filaments, such as "PETG"; PLA for an unknown one."""
    settings = read_project_file(package, BAMBU_SETTINGS, msgspec.json.Decoder(_BambuTypes).decode)
    texts = settings.filament_type if settings is not None else []
    if not texts:
        texts = read_project_file(package, PRUSA_SETTINGS, _find_types) or []
    return [text if _TYPE.fullmatch(text) else "PLA" for text in [*texts, *[""] * count][:count]]


def _find_colors(data: bytes) -> list[str]:
    settings = dict(_COLOR_SETTING.findall(data))
    rows = [settings.get(name, b"").decode("ascii", "replace") for name in (b"extruder_colour", b"filament_colour")]
    extruders, filaments = (row.replace('"', "").strip().split(";") for row in rows)
    # an extruder without a color has the color of its filament
    return [
        extruder if _COLOR.fullmatch(extruder) else filament
        for extruder, filament in itertools.zip_longest(extruders, filaments, fillvalue="")
    ]


def _find_types(data: bytes) -> list[str]:
    match = _TYPE_SETTING.search(data)
    return match[1].decode("ascii", "replace").strip().split(";") if match else []
