"""Materials of prints: their densities, and the temperatures of filaments. The table is `print_materials.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from meshhub.toolkit.package_files import package_folder

Process = Literal["fdm", "resin", "sls"]
"""Way of printing: melted filament, liquid resin, or sintered powder."""


class PrintMaterial(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Material of a print."""

    density_g_cm3: Annotated[float, Meta(gt=0)]
    """Density of the print."""

    density_source: str = ""
    """Where the density is from, for the documentation."""

    process: Process = "fdm"
    """Process that prints it."""

    nozzle_c: int = 0
    """Temperature of the nozzle for a filament, in °C."""

    bed_c: int = 0
    """Temperature of the bed for a filament, in °C."""

    types: tuple[str, ...] = ()
    """Types in profiles of PrusaSlicer; without any, the id in capitals."""


def _read() -> dict[str, PrintMaterial]:
    with (package_folder("meshhub.toolkit") / "print_materials.toml").open("rb") as stream:
        return msgspec.convert(tomllib.load(stream), dict[str, PrintMaterial])


MATERIALS: Mapping[str, PrintMaterial] = _read()
"""Materials by id."""

FILAMENTS: Mapping[str, PrintMaterial] = {name: item for name, item in MATERIALS.items() if item.process == "fdm"}
"""Materials that a nozzle melts."""
