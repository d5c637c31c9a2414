"""PrusaSlicer: settings from its own profiles, and its command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from meshhub import InvalidOption
from meshhub.toolkit.print_materials import FILAMENTS
from meshhub.toolkit.printers import Printer
from meshhub.toolkit.slicers import SLICERS, run_slicer
from meshhub_slicer.bundles import LAYERS_MM, find_profile, join_presets
from meshhub_slicer.printing import (
    Order,
    Sliced,
    check_fit,
    describe_size,
    find_profiles,
    make_failure,
    note_general_settings,
    note_one_filament,
    require_printer,
)
from meshhub_slicer.profiles import read_number, read_profiles
from meshhub_slicer.prusa_model import write_prusa_model
from meshhub_slicer.settings import name_for_prusa
from meshhub_slicer.several_filaments import complete_lists, write_settings

Settings = dict[str, str]

BINARY_SINCE = (2, 7)
"""First version that writes binary G-code."""

SUPPORT_ANGLE_DEG = 35
"""Slopes below this angle from the bed get supports: `print_overhang_deg` of the checks."""

_LABEL = "PrusaSlicer"
_RESOURCES = ("share/PrusaSlicer", "resources", "Resources")


def slice_prusa(order: Order, program: str) -> Sliced:
    """Slice a bed. Raises InvalidOption for settings and models that do not fit, ConversionFailed if it fails."""
    check_version(order.extension)
    model, colors = write_model(order)
    settings = make_settings(order, program, max(1, len(colors)))
    if len(colors) > 1:
        settings |= {"filament_colour": ";".join(colors), "extruder_colour": ";".join(colors)}
    bed = describe_size(settings.get("bed_shape", ""))
    if bed is None:
        raise InvalidOption("the profile has no bed_shape; set '{slicer_printer}'", options=("slicer_printer",))
    name = order.printer.name if order.printer is not None else settings.get("printer_settings_id", "the printer")
    height = read_number(settings, "max_print_height") or (order.printer.volume_mm[2] if order.printer else 1e4)
    is_turned = check_fit(order.scene, (bed[2] - bed[0], bed[3] - bed[1], height), name)
    ini, result = order.folder / "settings.ini", order.folder / f"result{order.extension}"
    if len(colors) > 1:
        count = len(settings["nozzle_diameter"].split(","))
        settings = complete_lists(settings, count, program, order.folder)
    write_settings(settings, ini)
    center = f"{(bed[0] + bed[2]) / 2:g},{(bed[1] + bed[3]) / 2:g}"
    folders = ["--loglevel", "2", "--datadir", str(order.folder / "data"), "--output", str(result)]
    rotation = ["--rotate", "90"] if is_turned else []
    command = [program, *folders, "--export-gcode", "--load", str(ini), *rotation, "--center", center, str(model)]
    output = run_slicer(_LABEL, command, order.folder / "log")
    if not result.exists():
        raise make_failure(_LABEL, output)
    return Sliced(result, output)


def check_version(extension: str) -> None:
    """Raise InvalidOption if the installed version does not write the file."""
    if extension != ".bgcode":
        return
    version = SLICERS["prusa"].read_version()
    numbers = tuple(int(number) for number in version.split(".")[:2])
    if numbers < BINARY_SINCE:
        raise InvalidOption(
            f"binary G-code needs PrusaSlicer 2.7 or later, and {version or 'an unknown version'} is installed; "
            "write .gcode, or update it"
        )


def write_model(order: Order) -> tuple[Path, list[str]]:
    """Write the model; return the file and the colors of its filaments, none for one filament.

    Raises:
        InvalidOption: The model has more filaments than the printer.
    """
    printer, file = order.printer, order.folder / "model.3mf"
    colors = write_prusa_model(order.scene, file, is_painted=True)
    if len(colors) == 1:
        return file, []
    if printer is None or printer.filaments is None or len(colors) <= printer.filaments:
        return file, colors
    if printer.filaments > 1:
        raise InvalidOption(
            f"the model has {len(colors)} filaments, and {printer.name} prints {printer.filaments}; "
            f"use '{{reduce_colors}}' = {printer.filaments}",
            options=("reduce_colors",),
        )
    note_one_filament(printer.name)
    write_prusa_model(order.scene, file, is_painted=False)
    return file, []


def make_settings(order: Order, program: str, filaments: int) -> Settings:
    """Return all settings: of the printer, then of the operator's profile, then of the request."""
    options = order.options
    settings: Settings = {}
    for profile in read_profiles(options.slicer_profile, ".ini"):
        settings |= {key: str(value) for key, value in profile.items()}
    if "bed_shape" not in settings or options.slicer_printer is not None:
        settings = _settings_of_printer(order, program, filaments) | settings
    settings |= _support(options.slicer_supports) | name_for_prusa(dict(order.settings))
    if filaments > 1:
        settings |= _several_filaments(settings, filaments)
    # the file states how long it takes and what it needs, and nothing of this machine
    return settings | {"gcode_comments": "0", "output_filename_format": "result.gcode", "post_process": ""}


def _settings_of_printer(order: Order, program: str, filaments: int) -> Settings:
    options = order.options
    name = require_printer(options)
    assert order.printer is not None
    found = find_profile(find_profiles(program, _RESOURCES), order.printer, filaments)
    if found is not None:
        return join_presets(*found, options.slicer_quality, options.slicer_material)
    note_general_settings("the installed PrusaSlicer", name)
    return _general_settings(order.printer, options.slicer_quality, options.slicer_material)


def _general_settings(printer: Printer, quality: str, material: str) -> Settings:
    """Return settings for a printer of which only the volume is known, with the defaults of PrusaSlicer."""
    width, depth, height = printer.volume_mm
    filament = FILAMENTS[material]
    layer = f"{LAYERS_MM[quality]:g}"
    return {
        "printer_technology": "FFF",
        "printer_model": printer.name,
        "bed_shape": f"0x0,{width:g}x0,{width:g}x{depth:g},0x{depth:g}",
        "max_print_height": f"{height:g}",
        "nozzle_diameter": "0.4",
        "gcode_flavor": "marlin2",
        "use_relative_e_distances": "1",
        "before_layer_gcode": "G92 E0",
        "layer_height": layer,
        "first_layer_height": "0.2",
        "filament_type": material.upper(),
        "filament_density": f"{filament.density_g_cm3:g}",
        "filament_diameter": "1.75",
        "temperature": str(filament.nozzle_c),
        "first_layer_temperature": str(filament.nozzle_c),
        "bed_temperature": str(filament.bed_c),
        "first_layer_bed_temperature": str(filament.bed_c),
        "end_gcode": r"M104 S0\nM140 S0\nM107\nG91\nG1 Z5 F600\nG90\nM84",
    }


def _several_filaments(settings: Mapping[str, str], count: int) -> Settings:
    nozzles = settings.get("nozzle_diameter", "0.4").split(",")
    if len(nozzles) >= count:
        return {}
    return {
        "nozzle_diameter": ",".join((nozzles * count)[:count]),
        "single_extruder_multi_material": "1",
        "wipe_tower": "1",
        "use_relative_e_distances": "1",
        "before_layer_gcode": settings.get("before_layer_gcode") or "G92 E0",
    }


def _support(places: str) -> Settings:
    if places == "none":
        return {"support_material": "0"}
    # zero: PrusaSlicer finds overhangs by the width of lines
    angle = "0" if places == "everywhere" else str(SUPPORT_ANGLE_DEG)
    return {"support_material": "1", "support_material_auto": "1", "support_material_threshold": angle}
