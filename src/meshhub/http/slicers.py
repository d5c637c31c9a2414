"""Slicers that are installed on this machine, for results of `meshhub app`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple


class Slicer(NamedTuple):
    """Program that opens the files of its command line.

    Attributes:
        id: Stable id.
        label: Name for people.
        names: Names on the search path.
        windows: Place below the folder of programs.
    """

    id: str
    label: str
    names: tuple[str, ...]
    windows: str


_SLICERS = (
    Slicer("prusa", "PrusaSlicer", ("prusa-slicer", "PrusaSlicer"), r"Prusa3D\PrusaSlicer\prusa-slicer.exe"),
    Slicer("orca", "OrcaSlicer", ("orca-slicer", "OrcaSlicer"), r"OrcaSlicer\orca-slicer.exe"),
    Slicer("bambu", "BambuStudio", ("bambu-studio", "BambuStudio"), r"Bambu Studio\bambu-studio.exe"),
    Slicer("cura", "Cura", ("cura", "UltiMaker-Cura"), r"UltiMaker Cura\UltiMaker-Cura.exe"),
)


def find_slicers() -> dict[str, tuple[str, str]]:
    """Return the label and the path of each installed slicer by id."""
    found = {slicer.id: (slicer.label, _find(slicer)) for slicer in _SLICERS}
    return {id_: (label, path) for id_, (label, path) in found.items() if path is not None}


def open_in_slicer(program: str, file: Path) -> None:
    """Start a slicer, which outlives the app. Raises OSError."""
    process = subprocess.Popen(  # noqa: S603
        [program, str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # reap it, whenever the user closes it
    threading.Thread(target=process.wait, daemon=True).start()


def _find(slicer: Slicer) -> str | None:
    on_path = next(filter(None, map(shutil.which, slicer.names)), None)
    if on_path is not None:
        return on_path
    if sys.platform == "win32":
        places = [Path(os.environ.get("PROGRAMFILES", ""), slicer.windows)]
    else:
        places = [Path("/Applications", f"{slicer.label}.app/Contents/MacOS", name) for name in slicer.names]
    return next((str(place) for place in places if place.is_file()), None)
