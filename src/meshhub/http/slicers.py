"""Slicers that are installed on this machine, for results of `meshhub app`."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

from meshhub.toolkit.slicers import SLICERS


def find_slicers() -> dict[str, tuple[str, str]]:
    """Return the label and the path of each installed slicer by id."""
    found = {slicer.id: (slicer.label, slicer.find()) for slicer in SLICERS.values()}
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
