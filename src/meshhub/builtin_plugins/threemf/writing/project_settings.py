"""Settings of projects of BambuStudio and OrcaSlicer: the printer, its presets, and the filaments."""

from __future__ import annotations

from collections.abc import Sequence

from meshhub.builtin_plugins.threemf.printers import Printer
from meshhub.model.notes import note

Setting = str | list[str]
"""Value of a setting; lists have an entry for each filament, nozzle or preset."""

_NOZZLE_MM = "0.4"
_FILAMENT_MM = "1.75"


def format_settings(printer: Printer, colors: Sequence[str], types: Sequence[str], version: str) -> dict[str, Setting]:
    """Return the settings of a project that names presets of the slicer.

    The slicers fill in all settings that `different_settings_to_system` does not list from the presets.

    Args:
        printer: Printer with its presets.
        colors: `#RRGGBB` of each filament.
        types: Material of each filament, such as "PETG".
        version: Version of the slicer.
    """
    kinds = _find_types(printer, types)
    ids = printer.filament_ids or {}
    # an entry for the process, for each filament, and for the printer
    unchanged = [""] * (len(colors) + 2)
    settings: dict[str, Setting] = {
        "version": version,
        "name": "project_settings",
        "from": "project",
        "printer_model": printer.model,
        "printer_variant": _NOZZLE_MM,
        "printer_settings_id": printer.preset,
        "print_settings_id": printer.process,
        "filament_settings_id": [printer.filaments[kind] for kind in kinds],
        "filament_ids": [ids.get(kind, "") for kind in kinds],
        "filament_type": kinds,
        "filament_colour": list(colors),
        # the slicers count filaments by their diameters, and nozzles too
        "filament_diameter": [_FILAMENT_MM] * len(colors),
        "nozzle_diameter": [_NOZZLE_MM] * printer.nozzle_count,
        "inherits_group": unchanged,
        "different_settings_to_system": unchanged,
    }
    if printer.nozzle_count > 1:
        settings["extruder_type"] = ["Direct Drive"] * printer.nozzle_count
    return settings


def _find_types(printer: Printer, types: Sequence[str]) -> list[str]:
    """Return the materials for which the printer has presets; PLA replaces others, with a note."""
    missing = {number: kind for number, kind in enumerate(types, 1) if kind not in printer.filaments}
    if missing:
        listed = ", ".join(f"{number} ({kind[:8]})" for number, kind in list(missing.items())[:3])
        listed += ", …" if len(missing) > 3 else ""
        note(
            "filament_types_replaced",
            f"no preset of {printer.model} for filaments {listed}: they are PLA in the project; "
            "choose their presets in the slicer",
            printer=printer.model,
            filaments=listed,
        )
    return [kind if kind in printer.filaments else "PLA" for kind in types]
