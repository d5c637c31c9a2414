"""Settings of projects of BambuStudio and OrcaSlicer: the printer, its presets, and the filaments."""

from __future__ import annotations

from collections.abc import Sequence

from meshhub.model.notes import note
from meshhub.toolkit.printers import Presets

Setting = str | list[str]
"""Value of a setting; lists have an entry for each filament, nozzle or preset."""

_NOZZLE_MM = "0.4"
_FILAMENT_MM = "1.75"


def format_settings(presets: Presets, colors: Sequence[str], types: Sequence[str], version: str) -> dict[str, Setting]:
    """Return the settings of a project that names presets of the slicer.

    The slicers fill in all settings that `different_settings_to_system` does not list from the presets.

    Args:
        presets: Presets of the printer.
        colors: `#RRGGBB` of each filament.
        types: Material of each filament, such as "PETG".
        version: Version of the slicer.
    """
    kinds = _find_types(presets, types)
    ids = presets.filament_ids
    # an entry for the process, for each filament, and for the printer
    unchanged = [""] * (len(colors) + 2)
    settings: dict[str, Setting] = {
        "version": version,
        "name": "project_settings",
        "from": "project",
        "printer_model": presets.model,
        "printer_variant": _NOZZLE_MM,
        "printer_settings_id": presets.printer,
        "print_settings_id": presets.process,
        "filament_settings_id": [presets.filaments[kind] for kind in kinds],
        "filament_ids": [ids.get(kind, "") for kind in kinds],
        "filament_type": kinds,
        "filament_colour": list(colors),
        # the slicers count filaments by their diameters, and nozzles too
        "filament_diameter": [_FILAMENT_MM] * len(colors),
        "nozzle_diameter": [_NOZZLE_MM] * presets.nozzles,
        "inherits_group": unchanged,
        "different_settings_to_system": unchanged,
    }
    if presets.nozzles > 1:
        settings["extruder_type"] = ["Direct Drive"] * presets.nozzles
    return settings


def _find_types(presets: Presets, types: Sequence[str]) -> list[str]:
    """Return the materials for which the printer has presets; PLA replaces others, with a note."""
    missing = {number: kind for number, kind in enumerate(types, 1) if kind not in presets.filaments}
    if missing:
        listed = ", ".join(f"{number} ({kind[:8]})" for number, kind in list(missing.items())[:3])
        listed += ", …" if len(missing) > 3 else ""
        note(
            "filament_types_replaced",
            f"no preset of {presets.model} for filaments {listed}: they are PLA in the project; "
            "choose their presets in the slicer",
            printer=presets.model,
            filaments=listed,
        )
    return [kind if kind in presets.filaments else "PLA" for kind in types]
