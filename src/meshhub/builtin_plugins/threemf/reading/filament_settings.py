"""Read the filaments that the settings of slicer projects state: colors and materials."""

from __future__ import annotations

import contextlib
import itertools
import re

import msgspec

from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.errors import UnreadableFile

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


class _BambuSettings(msgspec.Struct):
    """Settings of BambuStudio and OrcaSlicer that are read."""

    filament_colour: list[str] = []
    filament_type: list[str] = []


def read_colors(package: Package) -> list[str]:
    """Return the colors of the filaments."""
    texts: list[str] = []
    path = package.find(BAMBU_SETTINGS)
    if path is not None:
        with contextlib.suppress(UnreadableFile, msgspec.MsgspecError, RecursionError):
            texts = msgspec.json.decode(package.read(path), type=_BambuSettings).filament_colour
    path = package.find(PRUSA_SETTINGS)
    if not texts and path is not None:
        with contextlib.suppress(UnreadableFile):
            settings = dict(_COLOR_SETTING.findall(package.read(path)))
            rows = [
                settings.get(name, b"").decode("ascii", "replace") for name in (b"extruder_colour", b"filament_colour")
            ]
            extruders, filaments = (row.replace('"', "").strip().split(";") for row in rows)
            # an extruder without a color has the color of its filament
            texts = [
                extruder if _COLOR.fullmatch(extruder) else filament
                for extruder, filament in itertools.zip_longest(extruders, filaments, fillvalue="")
            ]
    matches = [_COLOR.fullmatch(text.strip()) for text in texts[:MAX_FILAMENT]]
    return [match.group(1) if match else "" for match in matches]


def read_filament_types(package: Package, count: int) -> list[str]:
    """Return the materials of `count` filaments, such as "PETG"; PLA for an unknown one."""
    texts: list[str] = []
    path = package.find(BAMBU_SETTINGS)
    if path is not None:
        with contextlib.suppress(UnreadableFile, msgspec.MsgspecError, RecursionError):
            texts = msgspec.json.decode(package.read(path), type=_BambuSettings).filament_type
    path = package.find(PRUSA_SETTINGS)
    if not texts and path is not None:
        with contextlib.suppress(UnreadableFile):
            match = _TYPE_SETTING.search(package.read(path))
            texts = match[1].decode("ascii", "replace").strip().split(";") if match else []
    return [text if _TYPE.fullmatch(text) else "PLA" for text in [*texts, *[""] * count][:count]]
