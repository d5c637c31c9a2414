"""OrcaSlicer and BambuStudio: settings from their own profiles, and their command line.

Recorded command line: `--load-settings "machine.json;process.json" --load-filaments "a.json;b.json" --slice 0
--export-3mf FILE --outputdir FOLDER model.3mf`.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from meshhub import InvalidOption, Target
from meshhub.builtin_plugins.threemf import ThreeMFWriteOptions
from meshhub.builtin_plugins.threemf.writer import write as write_3mf
from meshhub.toolkit.printers import Presets
from meshhub.toolkit.slicers import SLICERS, run_slicer
from meshhub_slicer.bundles import LAYERS_MM
from meshhub_slicer.printing import Order, Sliced, check_fit, find_profiles, make_failure, require_printer
from meshhub_slicer.profiles import read_profiles
from meshhub_slicer.settings import name_for_orca

_PLATE = "Metadata/plate_1.gcode"
_RESOURCES = ("resources", "share/OrcaSlicer", "share/BambuStudio", "Resources")
_IDENTITY = frozenset({"type", "name", "inherits", "from"})
"""Keys that stay those of the profile to which another one is added, because it is complete."""

_SUPPORT_ANGLE_DEG = {"auto": "35", "everywhere": "0"}

Profile = dict[str, Any]


def slice_orca(order: Order, program: str) -> Sliced:
    """Slice a bed by OrcaSlicer or BambuStudio. Raises InvalidOption, ConversionFailed."""
    label = SLICERS[order.slicer].label
    name = require_printer(order.options)
    printer = order.printer
    if printer is None or printer.presets is None or order.slicer not in printer.presets.slicers:
        raise InvalidOption(
            f"{label} has no profile of {name} here; set '{{slicer_program=prusa}}', or another printer",
            options=("slicer_program",),
        )
    check_fit(order.scene, printer.volume_mm, printer.name)
    options = msgspec.convert({"threemf_profile": order.slicer, "threemf_printer": name}, ThreeMFWriteOptions)
    # `replace` drops the project, so settings of an upload do not reach the slicer
    write_3mf(replace(order.scene), Target("model.3mf", folder=order.folder), options)
    settings, filament = _write_profiles(order, program, printer.presets)
    count = _count_filaments(order.folder / "model.3mf")
    result = order.folder / "result.gcode.3mf"
    arguments = ["--slice", "0", "--export-3mf", result.name, "--outputdir", str(order.folder)]
    loaded = ["--load-settings", ";".join(settings), "--load-filaments", ";".join([filament] * count)]
    output = run_slicer(label, [program, *loaded, *arguments, str(order.folder / "model.3mf")], order.folder / "log")
    if not result.exists():
        raise make_failure(label, output)
    if order.extension == ".gcode":
        return Sliced(_extract(result, label, output), output)
    return Sliced(result, output)


def _write_profiles(order: Order, program: str, presets: Presets) -> tuple[list[str], str]:
    """Write the profiles of printer, process and filament, and return their paths. Raises InvalidOption."""
    options = order.options
    library = _index(find_profiles(program, _RESOURCES))
    material = options.slicer_material.upper()
    if material not in presets.filaments:
        names = ", ".join(name.lower() for name in presets.filaments)
        raise InvalidOption(
            f"option '{{slicer_material}}': {presets.model} has no profile of {options.slicer_material}; use {names}",
            options=("slicer_material",),
        )
    machine = resolve(library, presets.printer)
    process = resolve(library, presets.process) | {"layer_height": f"{LAYERS_MM[options.slicer_quality]:g}"}
    filament = resolve(library, presets.filaments[material])
    process["enable_support"] = "0" if options.slicer_supports == "none" else "1"
    process["support_threshold_angle"] = _SUPPORT_ANGLE_DEG.get(options.slicer_supports, "35")
    kinds = {"machine": machine, "process": process, "filament": filament}
    for profile in read_profiles(options.slicer_profile, ".json"):
        kinds[_find_kind(profile)] |= {key: value for key, value in profile.items() if key not in _IDENTITY}
    for key, value in name_for_orca(dict(order.settings)).items():
        # filaments have lists
        target = filament if key in filament or "temp" in key else process
        target[key] = [value] if target is filament else value
    paths = []
    for kind, profile in kinds.items():
        path = order.folder / f"{kind}.json"
        path.write_text(json.dumps(profile | {"post_process": []}), encoding="utf-8")
        paths.append(str(path))
    return paths[:2], paths[2]


def _find_kind(profile: Profile) -> str:
    """Return the kind of a profile; exported profiles have an id of their kind instead of a type."""
    ids = {"machine": "printer_settings_id", "filament": "filament_settings_id"}
    return next((kind for kind, key in ids.items() if profile.get("type") == kind or key in profile), "process")


def resolve(library: dict[str, Path], name: str, depth: int = 0) -> Profile:
    """Return a profile with what it inherits. Raises InvalidOption."""
    path = library.get(name)
    if path is None or depth > 20:
        raise InvalidOption(
            f"the installed slicer has no profile {name[:60]!r}; update it, or choose another printer",
            options=("slicer_printer",),
        )
    own: Profile = json.loads(path.read_text(encoding="utf-8"))
    parent = resolve(library, own["inherits"], depth + 1) if own.get("inherits") else {}
    return {**parent, **own, "name": name, "inherits": "", "from": "system"}


def _index(folder: Path) -> dict[str, Path]:
    """Return the files of profiles by name: BBL first, because several makers have the same common profiles."""
    files = sorted(folder.glob("*/*/**/*.json"), key=lambda path: (path.parts[len(folder.parts)] != "BBL", path))
    library: dict[str, Path] = {}
    for path in files:
        library.setdefault(path.stem, path)
    return library


def _count_filaments(file: Path) -> int:
    with zipfile.ZipFile(file) as archive:
        settings = json.loads(archive.read("Metadata/project_settings.config"))
    return max(1, len(settings.get("filament_colour", [])))


def _extract(package: Path, label: str, output: str) -> Path:
    """Return the G-code of the only plate of a package. Raises ConversionFailed."""
    file = package.with_name("result.gcode")
    try:
        with zipfile.ZipFile(package) as archive, archive.open(_PLATE) as source, file.open("wb") as target:
            shutil.copyfileobj(source, target)
    except (KeyError, zipfile.BadZipFile):
        raise make_failure(label, output) from None
    return file
