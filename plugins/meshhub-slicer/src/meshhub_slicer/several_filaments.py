"""Settings of PrusaSlicer for several filaments: a value for each of them.

PrusaSlicer 2.5 reads beyond lists that are shorter than the number of filaments: moves to infinity were in a third of
the files. Its window always writes complete lists.
"""

from __future__ import annotations

import re
from pathlib import Path

from meshhub.toolkit.slicers import run_slicer

Settings = dict[str, str]

_TEXTS = frozenset(
    "filament_colour filament_type filament_notes filament_settings_id filament_vendor filament_ramming_parameters "
    "start_filament_gcode end_filament_gcode extruder_colour".split()
)
"""Lists of texts, which semicolons separate."""

_NUMBERS = frozenset(
    "filament_diameter filament_soluble filament_max_volumetric_speed extrusion_multiplier filament_density "
    "filament_cost filament_spool_weight filament_loading_speed filament_loading_speed_start filament_load_time "
    "filament_unloading_speed filament_unloading_speed_start filament_unload_time filament_toolchange_delay "
    "filament_cooling_moves filament_cooling_initial_speed filament_cooling_final_speed "
    "filament_minimal_purge_on_wipe_tower temperature first_layer_temperature bed_temperature "
    "first_layer_bed_temperature fan_always_on cooling min_fan_speed max_fan_speed bridge_fan_speed "
    "disable_fan_first_layers full_fan_speed_layer fan_below_layer_time slowdown_below_layer_time min_print_speed "
    "filament_retract_length filament_retract_lift filament_retract_lift_above filament_retract_lift_below "
    "filament_retract_speed filament_deretract_speed filament_retract_restart_extra filament_retract_before_travel "
    "filament_retract_layer_change filament_wipe filament_retract_before_wipe "
    "nozzle_diameter min_layer_height max_layer_height extruder_offset retract_length retract_lift retract_lift_above "
    "retract_lift_below retract_speed deretract_speed retract_before_wipe retract_restart_extra retract_before_travel "
    "wipe retract_layer_change retract_length_toolchange retract_restart_extra_toolchange".split()
)
"""Lists of numbers, which commas separate."""

_ITEM = re.compile(r'"(?:[^"\\]|\\.)*"|[^;"]+')


def complete_lists(settings: Settings, count: int, program: str, folder: Path) -> Settings:
    """Return all settings of PrusaSlicer, also those that it adds, with a value for each filament."""
    given, full = folder / "given.ini", folder / "full.ini"
    write_settings(settings, given)
    run_slicer("PrusaSlicer", [program, "--load", given.name, "--save", full.name], folder / "log")
    lines = (line.partition(" = ") for line in full.read_text(encoding="utf-8").splitlines() if line[:1] not in "#;")
    saved = {name.strip(): value for name, separator, value in lines if separator}
    # vectors of wiping volumes have their own sizes, and PrusaSlicer corrects them
    return {name: _extend(name, value, count) for name, value in saved.items()}


def write_settings(settings: Settings, file: Path) -> None:
    """Write settings as PrusaSlicer loads them."""
    file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()), encoding="utf-8")


def _extend(name: str, value: str, count: int) -> str:
    if name in _NUMBERS:
        items, mark = value.split(","), ","
    elif name in _TEXTS:
        items, mark = _ITEM.findall(value) or ['""'], ";"
    else:
        return value
    return mark.join(items + items[:1] * (count - len(items)))
