"""Programs that make G-code. `meshhub.toolkit.slicers` finds them on this machine."""

from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    """Slicer that writes files.

    Attributes:
        run: Function that slices a bed, as text; see `Slice` in `writer.py`.
        extensions: Files that it writes.
        install: How to install it.
    """

    run: str
    extensions: tuple[str, ...]
    install: str


PROGRAMS = {
    "prusa": Program("meshhub_slicer.prusa:slice_prusa", (".gcode", ".bgcode"), "apt-get install prusa-slicer"),
    "cura": Program("meshhub_slicer.cura:slice_cura", (".gcode",), "apt-get install cura-engine"),
    "orca": Program("meshhub_slicer.orca:slice_orca", (".gcode", ".gcode.3mf"), "install OrcaSlicer"),
    "bambu": Program("meshhub_slicer.orca:slice_orca", (".gcode", ".gcode.3mf"), "install BambuStudio"),
}
"""Programs by the id of the slicer, in the order in which `auto` tries them."""
