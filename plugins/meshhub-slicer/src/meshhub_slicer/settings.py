"""Settings that a request may set: keys that run nothing and read no file, with their names in each slicer."""

from __future__ import annotations

import re
from typing import NamedTuple

from meshhub import InvalidOption


class Setting(NamedTuple):
    """Setting of a slicer.

    low, high: bounds of the number
    orca:      names in OrcaSlicer and BambuStudio
    cura:      names in CuraEngine
    unit:      what these write behind the number
    """

    low: float
    high: float
    orca: tuple[str, ...]
    cura: tuple[str, ...]
    unit: str = ""


SETTINGS: dict[str, Setting] = {
    "layer_height": Setting(0.03, 1.2, ("layer_height",), ("layer_height",)),
    "first_layer_height": Setting(0.03, 1.2, ("initial_layer_print_height",), ("layer_height_0",)),
    "perimeters": Setting(0, 50, ("wall_loops",), ("wall_line_count",)),
    "top_solid_layers": Setting(0, 200, ("top_shell_layers",), ("top_layers",)),
    "bottom_solid_layers": Setting(0, 200, ("bottom_shell_layers",), ("bottom_layers", "initial_bottom_layers")),
    "fill_density": Setting(0, 100, ("sparse_infill_density",), ("infill_sparse_density",), "%"),
    "temperature": Setting(150, 400, ("nozzle_temperature",), ("material_print_temperature",)),
    "first_layer_temperature": Setting(
        150, 400, ("nozzle_temperature_initial_layer",), ("material_print_temperature_layer_0",)
    ),
    "bed_temperature": Setting(0, 150, ("hot_plate_temp", "textured_plate_temp"), ("material_bed_temperature",)),
    "first_layer_bed_temperature": Setting(
        0,
        150,
        ("hot_plate_temp_initial_layer", "textured_plate_temp_initial_layer"),
        ("material_bed_temperature_layer_0",),
    ),
    "perimeter_speed": Setting(1, 1000, ("inner_wall_speed",), ("speed_wall", "speed_wall_x")),
    "external_perimeter_speed": Setting(1, 1000, ("outer_wall_speed",), ("speed_wall_0",)),
    "infill_speed": Setting(1, 1000, ("sparse_infill_speed",), ("speed_infill",)),
    "travel_speed": Setting(1, 1000, ("travel_speed",), ("speed_travel",)),
    "brim_width": Setting(0, 50, ("brim_width",), ("brim_width",)),
    "skirts": Setting(0, 50, ("skirt_loops",), ("skirt_line_count",)),
}
"""Settings by their names in PrusaSlicer."""

_COUNTS = frozenset({"perimeters", "top_solid_layers", "bottom_solid_layers", "skirts"})
_PAIR = re.compile(r"\s*(\w{1,60})\s*=\s*(\d{1,6}(?:\.\d{1,6})?)\s*%?\s*", re.ASCII)


def parse_settings(text: str | None) -> dict[str, float]:
    """Return the numbers of "layer_height=0.2, fill_density=15" by name. Raises InvalidOption."""
    numbers: dict[str, float] = {}
    for pair in filter(str.strip, (text or "").split(",")):
        match = _PAIR.fullmatch(pair)
        if match is None:
            raise _reject(f"{pair.strip()[:30]!r} is not key=number; write layer_height=0.2,fill_density=15")
        name, number = match[1], float(match[2])
        if name not in SETTINGS:
            raise _reject(f"{name[:30]!r} cannot be set; the reference lists the keys, such as layer_height")
        setting = SETTINGS[name]
        if not setting.low <= number <= setting.high:
            raise _reject(f"{name} must be from {setting.low:g} to {setting.high:g}, got {number:g}")
        if name in _COUNTS and number % 1:
            raise _reject(f"{name} must be a whole number, got {number:g}")
        numbers[name] = number
    return numbers


def _reject(problem: str) -> InvalidOption:
    return InvalidOption(f"option '{{slicer_set}}': {problem}", options=("slicer_set",))


def name_for_prusa(numbers: dict[str, float]) -> dict[str, str]:
    """Return settings as PrusaSlicer names them."""
    return {name: f"{number:g}{SETTINGS[name].unit}" for name, number in numbers.items()}


def name_for_orca(numbers: dict[str, float]) -> dict[str, str]:
    """Return settings as OrcaSlicer and BambuStudio name them."""
    return {own: f"{number:g}{SETTINGS[name].unit}" for name, number in numbers.items() for own in SETTINGS[name].orca}


def name_for_cura(numbers: dict[str, float]) -> dict[str, str]:
    """Return settings as CuraEngine names them."""
    return {own: f"{number:g}" for name, number in numbers.items() for own in SETTINGS[name].cura}
