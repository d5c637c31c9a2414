"""Materials of filament: temperatures and densities, where a slicer has no profile."""

from __future__ import annotations

from typing import NamedTuple


class Filament(NamedTuple):
    """Temperatures of nozzle and bed, and density."""

    nozzle_c: int
    bed_c: int
    density_g_cm3: float


MATERIALS: dict[str, Filament] = {
    "pla": Filament(210, 60, 1.24),
    "petg": Filament(240, 80, 1.27),
    "abs": Filament(250, 100, 1.04),
    "asa": Filament(255, 100, 1.07),
    "tpu": Filament(225, 50, 1.21),
    "pa": Filament(260, 90, 1.13),
    "pc": Filament(270, 110, 1.20),
}
"""By name: the generic filaments of OrcaSlicer, and the densities of the estimate of prints."""
