"""Printers of projects, by the names of their presets in BambuStudio and OrcaSlicer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PrinterId = Literal[
    "bambu-a1-mini",
    "bambu-a1",
    "bambu-p1s",
    "bambu-p2s",
    "bambu-x1c",
    "bambu-h2s",
    "bambu-h2d",
    "creality-k2-plus",
    "anycubic-kobra-3",
    "snapmaker-u1",
]
DEFAULT_PRINTER: PrinterId = "bambu-p1s"
"""Printer of a project for which none is requested; its plate is that of most printers of Bambu Lab."""

_BAMBU_IDS = {"PLA": "GFL99", "PETG": "GFG99", "ABS": "GFB99"}
"""Ids of the generic filaments of Bambu Lab, by their type."""


@dataclass(frozen=True)
class Printer:
    """Names that the slicers use for a printer with nozzles of 0.4 mm, and the size of its plate.

    model:        model
    preset:       preset of the printer
    process:      preset for layers of 0.2 mm
    filaments:    preset of the generic filament of each type; it has at least PLA
    plate_mm:     width and depth of the plate
    nozzle_count: number of nozzles
    programs:     profiles of the writer whose slicers have these presets
    filament_ids: ids of the generic filaments, by their type; empty: they have none
    """

    model: str
    preset: str
    process: str
    filaments: dict[str, str]
    plate_mm: tuple[float, float]
    nozzle_count: int = 1
    programs: tuple[str, ...] = ("bambu", "orca")
    filament_ids: dict[str, str] | None = None


def _bambu(
    name: str,
    process: str,
    suffix: str,
    plate_mm: tuple[float, float] = (256.0, 256.0),
    *,
    types: tuple[str, ...] = ("PLA", "PETG", "ABS"),
    nozzle_count: int = 1,
) -> Printer:
    return Printer(
        model=f"Bambu Lab {name}",
        preset=f"Bambu Lab {name} 0.4 nozzle",
        process=f"0.20mm Standard @BBL {process}",
        filaments={kind: f"Generic {kind}{suffix}" for kind in types},
        plate_mm=plate_mm,
        nozzle_count=nozzle_count,
        filament_ids=_BAMBU_IDS,
    )


# why these names: docs/decisions/0045-retargeting.md
PRINTERS: dict[PrinterId, Printer] = {
    "bambu-a1-mini": _bambu("A1 mini", "A1M", " @BBL A1M", (180.0, 180.0), types=("PLA", "PETG")),
    "bambu-a1": _bambu("A1", "A1", " @BBL A1"),
    "bambu-p1s": _bambu("P1S", "X1C", ""),
    "bambu-p2s": _bambu("P2S", "P2S", " @BBL P2S"),
    "bambu-x1c": _bambu("X1 Carbon", "X1C", ""),
    "bambu-h2s": _bambu("H2S", "H2S", " @BBL H2S", (340.0, 320.0), types=("PLA", "PETG")),
    "bambu-h2d": _bambu("H2D", "H2D", " @BBL H2D", (350.0, 320.0), nozzle_count=2),
    "creality-k2-plus": Printer(
        model="Creality K2 Plus",
        preset="Creality K2 Plus 0.4 nozzle",
        process="0.20mm Standard @Creality K2 Plus 0.4 nozzle",
        filaments={kind: f"Creality Generic {kind} @K2-all" for kind in ("PLA", "PETG", "ABS")},
        plate_mm=(350.0, 350.0),
        programs=("orca",),
    ),
    "anycubic-kobra-3": Printer(
        model="Anycubic Kobra 3",
        preset="Anycubic Kobra 3 0.4 nozzle",
        process="0.20mm Standard @Anycubic Kobra 3 0.4 nozzle",
        filaments={kind: f"Anycubic Generic {kind}" for kind in ("PLA", "PETG", "ABS")},
        plate_mm=(255.0, 255.0),
        programs=("orca",),
    ),
    "snapmaker-u1": Printer(
        model="Snapmaker U1",
        preset="Snapmaker U1 (0.4 nozzle)",
        process="0.20 Standard @Snapmaker U1 (0.4 nozzle)",
        filaments={kind: f"Snapmaker {kind} @U1" for kind in ("PLA", "PETG", "ABS")},
        plate_mm=(270.0, 270.0),
        nozzle_count=4,
        programs=("orca",),
    ),
}
