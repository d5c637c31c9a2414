"""Profiles that PrusaSlicer brings along: files of a maker with presets of printers, prints and filaments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from meshhub import InvalidOption
from meshhub.toolkit.print_materials import FILAMENTS
from meshhub.toolkit.printers import Printer
from meshhub_slicer.conditions import holds

Settings = dict[str, str]

LAYERS_MM = {"draft": 0.3, "standard": 0.2, "fine": 0.1}
"""Height of layers with a nozzle of 0.4 mm by quality; the nearest profile is used."""

_NOZZLE = "0.4"
"""Nozzle of the profiles, in millimeters."""

_SECTION = re.compile(r"\[(printer|print|filament):(.+)\]")

_NOT_SETTINGS = re.compile(r"inherits.*|renamed_from|alias|default_.*_profile|compatible_\w+|printer_variant")


class Preset(NamedTuple):
    """Named settings of one kind."""

    name: str
    settings: Settings


class Bundle:
    """Presets of a file."""

    def __init__(self, text: str) -> None:
        self._own: dict[tuple[str, str], Settings] = {}
        section: Settings = {}
        for line in text.splitlines():
            if line.startswith("["):
                match = _SECTION.fullmatch(line.strip())
                section = self._own.setdefault((match[1], match[2]), {}) if match else {}
            elif line and line[0] not in "#;":
                name, separator, value = line.partition("=")
                if separator:
                    section[name.strip()] = value.strip()
        self._full: dict[tuple[str, str], Settings] = {}

    def resolve(self, kind: str, name: str, depth: int = 0) -> Settings:
        """Return the settings of a preset with those that it inherits."""
        key = kind, name
        if key not in self._full:
            own = self._own.get(key, {})
            full: Settings = {}
            if depth < 50:
                for parent in filter(None, map(str.strip, own.get("inherits", "").split(";"))):
                    full |= self.resolve(kind, parent, depth + 1)
            self._full[key] = full | own
        return self._full[key]

    def list(self, kind: str) -> Iterator[Preset]:
        """Yield the presets of a kind that can be chosen."""
        for own_kind, name in self._own:
            if own_kind == kind and not name.startswith("*"):
                yield Preset(name, self.resolve(kind, name))

    def find_printer(self, models: tuple[str, ...], nozzles: int) -> Preset | None:
        """Return the preset of the first model that has one for the size and the number of nozzles."""
        for model in models:
            for preset in self.list("printer"):
                settings = preset.settings
                count = len(settings.get("nozzle_diameter", "").split(","))
                is_usable = settings.get("printer_variant", "").endswith(_NOZZLE) and count >= nozzles
                if settings.get("printer_model") == model and is_usable:
                    return preset
        return None


def find_profile(folder: Path, printer: Printer, filaments: int) -> tuple[Bundle, Preset] | None:
    """Return the preset of a printer, and the file that has it; None without one.

    Args:
        folder: Profiles of PrusaSlicer.
        printer: Printer of the table.
        filaments: Number of filaments of the print.
    """
    wanted = [(printer.prusa, 1)]
    if filaments > 1:
        wanted.insert(0, (printer.prusa_several, filaments))
    bundles = [_read(path) for path in sorted(folder.glob("*.ini"))]
    for models, nozzles in wanted:
        for bundle in bundles:
            preset = bundle.find_printer(models, nozzles)
            if preset is not None:
                return bundle, preset
    return None


def join_presets(bundle: Bundle, printer: Preset, quality: str, material: str) -> Settings:
    """Return the settings of a printer with those of the print and of the filament that fit.

    Raises:
        InvalidOption: The profiles have no filament of the material.
    """
    process = _choose_print(bundle, printer, quality)
    filament = _choose_filament(bundle, printer, process, material)
    joined = process.settings | filament.settings | printer.settings
    # start codes of printers depend on the names
    names = {
        "printer_settings_id": printer.name,
        "print_settings_id": process.name,
        "filament_settings_id": f'"{filament.name}"',
    }
    return {name: value for name, value in joined.items() if not _NOT_SETTINGS.fullmatch(name)} | names


def _choose_print(bundle: Bundle, printer: Preset, quality: str) -> Preset:
    usable = [preset for preset in bundle.list("print") if _fits(preset.settings, printer)]
    default = printer.settings.get("default_print_profile", "").strip('"')
    wanted = LAYERS_MM[quality]

    def rank(preset: Preset) -> tuple[float, bool, str]:
        layer = float(preset.settings.get("layer_height", "0"))
        return abs(layer - wanted), preset.name != default, preset.name

    return min(usable, key=rank) if usable else Preset(default, bundle.resolve("print", default))


def _list_types(material: str) -> tuple[str, ...]:
    """Return the types of a material in these files."""
    return FILAMENTS[material].types or (material.upper(),)


def _choose_filament(bundle: Bundle, printer: Preset, process: Preset, material: str) -> Preset:
    usable = [
        preset
        for preset in bundle.list("filament")
        if _fits(preset.settings, printer)
        and holds(preset.settings.get("compatible_prints_condition", "").strip('"'), process.settings)
    ]
    types = _list_types(material)
    chosen = [preset for preset in usable if _read_type(preset) in types]
    if not chosen:
        present = {_read_type(preset) for preset in usable}
        names = ", ".join(name for name in FILAMENTS if present.intersection(_list_types(name)))
        raise InvalidOption(
            f"option '{{slicer_material}}': {printer.name:.40} has no profile of {material}; use {names or 'another'}",
            options=("slicer_material",),
        )
    default = printer.settings.get("default_filament_profile", "").strip('"')

    def rank(preset: Preset) -> tuple[bool, bool, str]:
        return not preset.name.startswith("Generic "), preset.name != default, preset.name

    return min(chosen, key=rank)


def _read_type(filament: Preset) -> str:
    return filament.settings.get("filament_type", "").strip('"').upper()


def _fits(settings: Mapping[str, str], printer: Preset) -> bool:
    names = [name.strip().strip('"') for name in settings.get("compatible_printers", "").split(";")]
    if any(names):
        return printer.name in names
    return holds(settings.get("compatible_printers_condition", ""), printer.settings)


@cache
def _read(path: Path) -> Bundle:
    return Bundle(path.read_text(encoding="utf-8", errors="replace"))
