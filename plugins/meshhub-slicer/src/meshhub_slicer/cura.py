"""CuraEngine: settings from the definitions of Cura, and its command line.

The engine takes only default values from definitions, because formulas are evaluated by the window of Cura. So what
depends on layers, lines and density is computed here.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from meshhub import InvalidOption, Scene, Target
from meshhub.builtin_plugins.stl import StlWriterOptions
from meshhub.builtin_plugins.stl.writer import write as write_stl
from meshhub.toolkit.print_materials import FILAMENTS
from meshhub.toolkit.printers import PRINTERS
from meshhub.toolkit.slicers import run_slicer
from meshhub_slicer.bundles import LAYERS_MM
from meshhub_slicer.printing import (
    Order,
    Sliced,
    check_fit,
    make_failure,
    note_general_settings,
    note_one_filament,
    require_printer,
    turn,
)
from meshhub_slicer.profiles import read_number, read_profiles
from meshhub_slicer.prusa import SUPPORT_ANGLE_DEG
from meshhub_slicer.settings import name_for_cura

GENERAL = "fdmprinter"
"""Definition of printers without one of their own."""

SEARCH_VARIABLE = "CURA_ENGINE_SEARCH_PATH"
"""Folders with definitions, by which CuraEngine finds them, too."""

LINE_MM = 0.4
"""Width of lines and nozzle."""

SHELL_MM = 0.8
"""Thickness at the top and at the bottom."""

MIN_LAYER_MM = 0.03
"""Least height of layers."""

FILAMENT_MM = 1.75
"""Diameter of filament."""

_LABEL = "CuraEngine"
_FOLDERS = ("/usr/share/cura/resources", "/usr/local/share/cura/resources")
TIME = re.compile(r"^Print time \(s\): (\d+)", re.MULTILINE)
VOLUME = re.compile(r"^Filament \(mm\^3\): (\d+)", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def slice_cura(order: Order, program: str) -> Sliced:
    """Slice a bed with one filament. Raises InvalidOption, ConversionFailed."""
    name = require_printer(order.options)
    assert order.printer is not None
    scene = order.scene
    if check_fit(scene, order.printer.volume_mm, order.printer.name):
        scene = turn(scene)
    if len(scene.used_materials()) > 1:
        note_one_filament(_LABEL)
    folders = find_definitions()
    definition = find_definition(name, folders)
    model, result = order.folder / "model.stl", order.folder / "result.gcode"
    _write_model(scene, model)
    command = make_command(program, definition, make_settings(order, definition, folders))
    output = run_slicer(
        _LABEL,
        # the file names the model, so that it gets no path of this machine
        [*command, "-l", model.name, "-o", result.name],
        order.folder / "log",
        {SEARCH_VARIABLE: os.pathsep.join(map(str, folders))},
    )
    seconds, volume = TIME.search(output), VOLUME.search(output)
    if seconds is None or volume is None or not result.exists():
        raise make_failure(_LABEL, output)
    state_figures(result, float(seconds[1]), float(volume[1]))
    return Sliced(result, _list_warnings(output))


def find_definitions() -> list[Path]:
    """Return the folders with definitions of printers and of their extruders. Raises InvalidOption without one."""
    stated = os.environ.get(SEARCH_VARIABLE, "").split(os.pathsep)
    places = [Path(place) for place in stated if place]
    places += [Path(root) / kind for root in _FOLDERS for kind in ("definitions", "extruders")]
    folders = [place for place in places if place.is_dir()]
    if not any((folder / f"{GENERAL}.def.json").is_file() for folder in folders):
        raise InvalidOption(
            f"CuraEngine needs the definitions of Cura: apt-get install cura, or set {SEARCH_VARIABLE} to their folders"
        )
    return folders


def find_definition(printer: str, folders: list[Path]) -> Path:
    """Return the definition of a printer, or the general one with a note."""
    for name in filter(None, (PRINTERS[printer].cura, GENERAL)):
        for folder in folders:
            if (folder / f"{name}.def.json").is_file():
                if name == GENERAL:
                    note_general_settings("Cura", printer)
                return folder / f"{name}.def.json"
    raise AssertionError("find_definitions checks the general definition")


def make_command(program: str, definition: Path, settings: Mapping[str, str]) -> list[str]:
    """Return the command line without the model and the result."""
    pairs = [text for key, value in settings.items() for text in ("-s", f"{key}={value}")]
    # extruders have defaults of their own, so that they get the settings, too
    return [program, "slice", "-v", "-j", str(definition), *pairs, "-e0", *pairs]


def make_settings(order: Order, definition: Path, folders: list[Path]) -> dict[str, str]:
    """Return all settings beside those of the definition: computed ones, the operator's profile, the request."""
    options, printer = order.options, order.printer
    assert printer is not None
    filament = FILAMENTS[options.slicer_material]
    settings: dict[str, str] = {"layer_height": f"{LAYERS_MM[options.slicer_quality]:g}", "layer_height_0": "0.2"}
    settings |= dict.fromkeys(("machine_nozzle_size", "line_width", "wall_line_width_0"), f"{LINE_MM:g}")
    settings |= {"material_diameter": f"{FILAMENT_MM:g}", "wall_line_count": "2", "infill_sparse_density": "20"}
    for suffix in ("", "_layer_0"):
        settings[f"material_print_temperature{suffix}"] = str(filament.nozzle_c)
        settings[f"material_bed_temperature{suffix}"] = str(filament.bed_c)
    has_support = options.slicer_supports != "none"
    angle = 90 - SUPPORT_ANGLE_DEG if options.slicer_supports == "auto" else 50
    settings |= {"support_enable": str(has_support).lower(), "support_angle": f"{angle:g}", "adhesion_type": "skirt"}
    if definition.name.startswith(GENERAL):
        width, depth, height = printer.volume_mm
        settings |= {"machine_width": f"{width:g}", "machine_depth": f"{depth:g}", "machine_height": f"{height:g}"}
    for profile in read_profiles(options.slicer_profile, ".json"):
        settings |= {key: str(value) for key, value in profile.items() if not isinstance(value, (list, dict))}
    settings |= name_for_cura(dict(order.settings))
    settings = _derive(settings) | {"center_object": "true"}
    return settings | _fill_codes(definition, folders, settings)


def _derive(settings: dict[str, str]) -> dict[str, str]:
    """Return settings with those that Cura computes from others, unless they are set."""
    layer, density = read_number(settings, "layer_height"), read_number(settings, "infill_sparse_density")
    layers = str(math.ceil(SHELL_MM / max(layer, MIN_LAYER_MM) - 1e-9))
    derived = {"top_layers": layers, "bottom_layers": layers, "initial_bottom_layers": layers, "infill_pattern": "grid"}
    # a grid has two directions
    distance = 2 * LINE_MM * 100 / density if density else 0
    derived["infill_line_distance"] = f"{distance:g}"
    if density == 100:
        derived |= {"infill_pattern": "lines", "infill_line_distance": f"{LINE_MM:g}"}
    brim = read_number(settings, "brim_width")
    if brim > 0:
        derived |= {"adhesion_type": "brim", "brim_line_count": str(round(brim / LINE_MM))}
        settings = {key: value for key, value in settings.items() if key != "adhesion_type"}
    return derived | settings


def _fill_codes(definition: Path, folders: list[Path], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the start and the end of the G-code with numbers for names in braces, as the window of Cura does."""
    values = read_defaults(definition, folders)
    filled = {}
    for key in ("machine_start_gcode", "machine_end_gcode"):
        text = settings.get(key, str(values.get(key, "")))
        if _PLACEHOLDER.search(text):
            filled[key] = _PLACEHOLDER.sub(lambda match: settings.get(match[1], str(values.get(match[1], 0))), text)
    return filled


def read_defaults(definition: Path, folders: list[Path], depth: int = 0) -> dict[str, Any]:
    """Return the default values of a definition with those that it inherits."""
    document = json.loads(definition.read_text(encoding="utf-8"))
    values: dict[str, Any] = {}
    parents = [folder / f"{document.get('inherits')}.def.json" for folder in folders]
    parent = next((path for path in parents if path.is_file()), None)
    if parent is not None and depth < 20:
        values = read_defaults(parent, folders, depth + 1)
    _collect(document.get("settings", {}), values)
    for key, override in document.get("overrides", {}).items():
        if "default_value" in override:
            values[key] = override["default_value"]
    return values


def _collect(tree: Mapping[str, Any], values: dict[str, Any]) -> None:
    for key, node in tree.items():
        if "default_value" in node:
            values[key] = node["default_value"]
        _collect(node.get("children", {}), values)


def _write_model(scene: Scene, file: Path) -> None:
    # `replace` drops the project; STL has no colors
    meshes = tuple(replace(mesh, colors=None) for mesh in scene.meshes)
    write_stl(replace(scene, meshes=meshes), Target(file.name, folder=file.parent), StlWriterOptions())


def state_figures(file: Path, seconds: float, volume_mm3: float) -> None:
    """Write time and filament at the start, where the engine leaves placeholders for the window of Cura."""
    length = volume_mm3 / (math.pi / 4 * FILAMENT_MM**2) / 1000
    text = file.read_bytes()
    end = text.index(b";Generated with")
    head = re.sub(rb"(?m)^;TIME:.*$", b";TIME:%d" % seconds, text[:end])
    head = re.sub(rb"(?m)^;Filament used:.*$", b";Filament used: %.5fm" % length, head)
    head = re.sub(rb"(?m)^;M(?:IN|AX)[XYZ]:-?[\d.]+e\+\d+\n", b"", head)
    file.write_bytes(head + text[end:])


def _list_warnings(output: str) -> str:
    """Return the lines that concern the model; the engine also warns of settings that only the window uses."""
    lines = (line for line in output.splitlines() if line.startswith(("[WARNING]", "[ERROR]", "WARNING")))
    return "\n".join(line for line in lines if "JSON setting" not in line)
