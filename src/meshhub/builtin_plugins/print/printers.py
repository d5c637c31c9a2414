"""Printers and the volume in which they print, as their makers state it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

PrinterName = Literal[
    "anycubic-kobra-2", "anycubic-kobra-3", "anycubic-m7-pro", "anycubic-mono-4", "bambu-a1", "bambu-a1-mini",
    "bambu-h2d", "bambu-p1s", "bambu-x1c", "creality-cr-10", "creality-ender-3", "creality-ender-3-v3",
    "creality-k1", "creality-k1-max", "creality-k2-plus", "elegoo-centauri", "elegoo-mars-4", "elegoo-mars-5-ultra",
    "elegoo-neptune-4", "elegoo-neptune-4-max", "elegoo-saturn-3", "elegoo-saturn-4-ultra", "flashforge-ad5m",
    "formlabs-form-4", "formlabs-fuse-1", "prusa-core-one", "prusa-mini", "prusa-mk4", "prusa-xl", "qidi-plus-4",
    "sovol-sv08", "voron-2.4-350",
]  # fmt: skip
"""Id of a printer."""

ROUNDING_RATIO = 1e-6
"""Excess over a side, relative to it, that counts as rounding."""


class Printer(Struct, frozen=True):
    """Printer.

    volume_mm: width, depth and height in which it prints
    filaments: filaments of one print, with one changer of its maker; None if not known
    """

    label: str
    volume_mm: tuple[float, float, float]
    filaments: int | None = 1

    def fits(self, sides: Sequence[float], height: float) -> bool:
        """Return whether a box fits, also turned by 90°.

        Args:
            sides: Width and depth in mm, the larger first.
            height: Millimeters.
        """
        width, depth = sorted(self.volume_mm[:2], reverse=True)
        room = [side * (1 + ROUNDING_RATIO) for side in (width, depth, self.volume_mm[2])]
        return sides[0] <= room[0] and sides[1] <= room[1] and height <= room[2]


PRINTERS: dict[PrinterName, Printer] = {
    "anycubic-kobra-2": Printer("Anycubic Kobra 2", (220, 220, 250)),
    "anycubic-kobra-3": Printer("Anycubic Kobra 3", (250, 250, 260), 4),
    "anycubic-m7-pro": Printer("Anycubic Photon Mono M7 Pro", (223, 126, 230)),
    "anycubic-mono-4": Printer("Anycubic Photon Mono 4", (153, 87, 165)),
    "bambu-a1": Printer("Bambu Lab A1", (256, 256, 256), 4),
    "bambu-a1-mini": Printer("Bambu Lab A1 mini", (180, 180, 180), 4),
    "bambu-h2d": Printer("Bambu Lab H2D", (325, 320, 325), 4),
    "bambu-p1s": Printer("Bambu Lab P1S", (256, 256, 256), 4),
    "bambu-x1c": Printer("Bambu Lab X1 Carbon", (256, 256, 256), 4),
    "creality-cr-10": Printer("Creality CR-10", (300, 300, 400)),
    "creality-ender-3": Printer("Creality Ender-3", (220, 220, 250)),
    "creality-ender-3-v3": Printer("Creality Ender-3 V3", (220, 220, 250)),
    "creality-k1": Printer("Creality K1", (220, 220, 250)),
    "creality-k1-max": Printer("Creality K1 Max", (300, 300, 300)),
    "creality-k2-plus": Printer("Creality K2 Plus", (350, 350, 350), 4),
    "elegoo-centauri": Printer("Elegoo Centauri Carbon", (256, 256, 256)),
    "elegoo-mars-4": Printer("Elegoo Mars 4", (153, 77, 175)),
    "elegoo-mars-5-ultra": Printer("Elegoo Mars 5 Ultra", (153, 77, 165)),
    "elegoo-neptune-4": Printer("Elegoo Neptune 4", (225, 225, 265)),
    "elegoo-neptune-4-max": Printer("Elegoo Neptune 4 Max", (420, 420, 480)),
    "elegoo-saturn-3": Printer("Elegoo Saturn 3", (218, 123, 250)),
    "elegoo-saturn-4-ultra": Printer("Elegoo Saturn 4 Ultra", (218, 122, 220)),
    "flashforge-ad5m": Printer("Flashforge Adventurer 5M", (220, 220, 220)),
    "formlabs-form-4": Printer("Formlabs Form 4", (200, 125, 210)),
    "formlabs-fuse-1": Printer("Formlabs Fuse 1+", (165, 165, 300)),
    "prusa-core-one": Printer("Prusa CORE One", (250, 220, 270), 5),
    "prusa-mini": Printer("Prusa MINI+", (180, 180, 180)),
    "prusa-mk4": Printer("Prusa MK4", (250, 210, 220), 5),
    "prusa-xl": Printer("Prusa XL", (360, 360, 360), 5),
    "qidi-plus-4": Printer("Qidi Plus4", (305, 305, 280), 4),
    "sovol-sv08": Printer("Sovol SV08", (350, 350, 345)),
    "voron-2.4-350": Printer("Voron 2.4 (350 mm)", (350, 350, 340)),
}
"""Printers by id.

Volumes are those of profiles of OrcaSlicer, PrusaSlicer and (resin) UVtools; for Formlabs and the Mars 4 those of their
makers. Profiles of the P1S and the X1 Carbon are 250 mm high, those of the Voron 325 and 350 mm; its configuration has
340 mm. Profiles state no filaments but the five tools of the XL; the others are the slots of one changer.
"""
