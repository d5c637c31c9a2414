"""Printers of projects: those with presets in BambuStudio or OrcaSlicer."""

# why these presets: docs/decisions/0045-retargeting.md
from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from meshhub.toolkit import printers
from meshhub.toolkit.printers import Presets

DEFAULT_PRINTER = "bambu-p1s"
"""Printer of a project for which none is requested; its plate is that of most printers of Bambu Lab."""


class ProjectPrinter(NamedTuple):
    """Presets of a printer, and the width and depth of its plate in mm."""

    presets: Presets
    plate_mm: tuple[float, float]


PRINTERS: Mapping[str, ProjectPrinter] = {
    printer_id: ProjectPrinter(printer.presets, printer.plate)
    for printer_id, printer in printers.PRINTERS.items()
    if printer.presets is not None
}
"""Printers by id."""

TITLES: Mapping[str, str] = {printer_id: printers.TITLES[printer_id] for printer_id in PRINTERS}
"""Names for people by id."""

ALIASES: Mapping[str, str] = {
    name: printer_id for name, printer_id in printers.ALIASES.items() if printer_id in PRINTERS
}
"""Ids by other names."""
