"""Printers: their names, the volume in which they print, and their presets in slicers.

The table is `printers.toml` beside this module. A file of the same name and form in the user's configuration folder
adds printers, and replaces those of the same id.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import platformdirs
from msgspec import Meta, Struct

from meshhub.model.options import fold_choice
from meshhub.toolkit.package_files import package_folder
from meshhub.toolkit.print_materials import Process

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

FILE_NAME = "printers.toml"

MAX_BYTES = 1 << 20
"""Maximum bytes of a file; many times those of the built-in one."""

ROUNDING_RATIO = 1e-6
"""Excess over a side, relative to it, that counts as rounding."""

MAX_FILAMENTS = {"prusa": 15, "bambu": 32, "orca": 32}
"""Largest filament that a slicer paints with, by the id of the slicer."""

log = logging.getLogger(__name__)

_ID = re.compile(r"[a-z0-9.]+(?:-[a-z0-9.]+)*")

Millimeters = Annotated[float, Meta(gt=0, le=10_000)]
Text = Annotated[str, Meta(min_length=1, max_length=200)]


class Presets(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names that slicers use for a printer with nozzles of 0.4 mm."""

    slicers: tuple[Literal["bambu", "orca"], ...]
    """Slicers that have these presets, as profiles of the 3MF writer."""

    model: Text
    """Model of the printer."""

    printer: Text
    """Preset of the printer."""

    process: Text
    """Preset for layers of 0.2 mm."""

    filaments: dict[str, Text]
    """Preset of the generic filament of each type; PLA is one of them."""

    filament_ids: dict[str, Text] = {}
    """Ids of the generic filaments, by type."""

    nozzles: Annotated[int, Meta(ge=1, le=64)] = 1
    """Number of nozzles."""

    def __post_init__(self) -> None:
        """Raise ValueError without a preset for PLA, which replaces other filaments."""
        if "PLA" not in self.filaments:
            raise ValueError("presets need a filament PLA")


class Printer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Printer."""

    name: Text
    """Name for people."""

    volume_mm: tuple[Millimeters, Millimeters, Millimeters]
    """Width, depth and height in which it prints."""

    aliases: tuple[Text, ...] = ()
    """Further names."""

    process: Process = "fdm"
    """Way of printing."""

    filaments: Annotated[int, Meta(ge=1, le=64)] | None = 1
    """Filaments of one print, with one changer of its maker; None if not known."""

    plate_mm: tuple[Millimeters, Millimeters] | None = None
    """Width and depth of the plate in slicers; None: that of the volume."""

    prusa: tuple[Text, ...] = ()
    """Models in profiles of PrusaSlicer, the first that a version has."""

    prusa_several: tuple[Text, ...] = ()
    """The same with a changer, or with several tools."""

    cura: str = ""
    """Definition of Cura."""

    presets: Presets | None = None
    """Names in BambuStudio and OrcaSlicer; None: not known."""

    @property
    def plate(self) -> tuple[float, float]:
        """Width and depth of the plate in slicers, in mm."""
        return self.plate_mm or self.volume_mm[:2]

    def fits(self, sides: Sequence[float], height: float) -> bool:
        """Return whether a box fits, also turned by 90°.

        Args:
            sides: Width and depth in mm, the larger first.
            height: Millimeters.
        """
        width, depth = sorted(self.volume_mm[:2], reverse=True)
        room = [side * (1 + ROUNDING_RATIO) for side in (width, depth, self.volume_mm[2])]
        return sides[0] <= room[0] and sides[1] <= room[1] and height <= room[2]


def find_printer(text: str) -> Printer | None:
    """Return the printer with this id or other name, such as "Prusa MK4" or "mk4"; None without one."""
    name = fold_choice(text)
    return PRINTERS.get(ALIASES.get(name, name))


def _read_file(file: Path | Traversable) -> dict[str, Printer]:
    """Read a table of printers. Raises OSError; ValueError with a message for people."""
    with file.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES:,} bytes")
    printers = msgspec.convert(tomllib.loads(data.decode("utf-8")), dict[str, Printer])
    for printer_id in printers:
        if not _ID.fullmatch(printer_id):
            raise ValueError(f"the id {printer_id!r:.60} must be in kebab-case, such as acme-one")
    return printers


def _read_printers() -> dict[str, Printer]:
    """Return all printers, sorted by id; an invalid file of the user is logged."""
    printers = _read_file(package_folder("meshhub.toolkit") / FILE_NAME)
    own = platformdirs.user_config_path("meshhub", appauthor=False) / FILE_NAME
    try:
        printers |= _read_file(own)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        log.warning("left out the printers of %s: %s", own, error)
    return dict(sorted(printers.items()))


def _list_aliases(printers: Mapping[str, Printer]) -> dict[str, str]:
    """Return the ids by other names: names, aliases, and what follows the maker in an id; those of one printer only."""
    names = [
        (fold_choice(alias), printer_id)
        for printer_id, printer in printers.items()
        for alias in {printer.name, *printer.aliases, printer_id.partition("-")[2] or printer_id}
    ]
    counts = Counter(alias for alias, _ in set(names))
    return {alias: printer_id for alias, printer_id in names if counts[alias] == 1 and alias not in printers}


PRINTERS: Mapping[str, Printer] = _read_printers()
"""Printers by id."""

ALIASES: Mapping[str, str] = _list_aliases(PRINTERS)
"""Ids of printers by their other names, as `fold_choice` spells them."""

TITLES: Mapping[str, str] = {printer_id: printer.name for printer_id, printer in PRINTERS.items()}
"""Names for people by id."""
