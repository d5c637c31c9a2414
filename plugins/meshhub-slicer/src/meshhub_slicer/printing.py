"""What a slicer gets, and what it made."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from meshhub import ConversionFailed, InvalidOption, Scene, note
from meshhub.errors import format_number
from meshhub.toolkit.geometry import bounds, moved
from meshhub.toolkit.printers import PRINTERS, Printer
from meshhub.toolkit.slicers import last_line
from meshhub_slicer import SlicerOptions


@dataclass(frozen=True)
class Order:
    """One file to slice.

    scene:     Millimeters, Z up; one bed.
    options:   Those of the request.
    settings:  Those of `slicer_set`, by the names in PrusaSlicer.
    slicer:    Id of the slicer.
    extension: Of the file that is wanted, such as ".gcode".
    folder:    Empty temporary folder.
    """

    scene: Scene
    options: SlicerOptions
    settings: Mapping[str, float]
    slicer: str
    extension: str
    folder: Path

    @property
    def printer(self) -> Printer | None:
        """The printer of the request."""
        name = self.options.slicer_printer
        return None if name is None else PRINTERS[name]


@dataclass(frozen=True)
class Sliced:
    """File that a slicer made, and what the program printed."""

    file: Path
    output: str


def require_printer(options: SlicerOptions) -> str:
    """Return the id of the printer. Raises InvalidOption."""
    if options.slicer_printer is None:
        raise InvalidOption(
            "G-code is for one printer; set '{slicer_printer}' to its name, such as prusa-mk4",
            options=("slicer_printer",),
        )
    return options.slicer_printer


def check_fit(scene: Scene, sides_mm: tuple[float, float, float], name: str) -> bool:
    """Return whether the model must be turned by 90° to fit on a bed. Raises InvalidOption if it does not fit."""
    low, high = bounds(scene)
    size = tuple(float(side) for side in high - low)
    room = Printer(name=name, volume_mm=sides_mm).volume_mm
    slack = [side * (1 + 1e-6) for side in room]
    if size[2] <= slack[2]:
        if size[0] <= slack[0] and size[1] <= slack[1]:
            return False
        if size[1] <= slack[0] and size[0] <= slack[1]:
            note("slicer_turned", "turned by 90° about Z, because only so the model fits on the bed")
            return True
    shown, volume = (" × ".join(format_number(side, 4) for side in sides) for sides in (size, room))
    raise InvalidOption(
        f"the model is {shown} mm, and {name:.40} prints {volume} mm; use '{{split_for_bed}}', or scale it",
        options=("split_for_bed",),
    )


def describe_size(polygon: str) -> tuple[float, float, float, float] | None:
    """Return least and greatest X and Y of a bed such as "0x0,250x0,250x210,0x210"; None without one."""
    points = [(float(x), float(y)) for x, y in re.findall(r"(-?\d+(?:\.\d+)?)x(-?\d+(?:\.\d+)?)", polygon)]
    if len(points) < 3:
        return None
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def make_failure(label: str, output: str) -> ConversionFailed:
    """Return the error of a slicer that ended without a file."""
    return ConversionFailed(
        f"{label} made no G-code: {last_line(output)[:90]}; use '{{repair}}' or '{{place_on_bed}}'",
        options=("repair", "place_on_bed"),
    )


def note_general_settings(slicer: str, printer: str) -> None:
    """Add the note that a slicer does not know the printer."""
    note(
        "slicer_general_settings",
        f"{slicer} has no profile of {printer}: general settings; check the start of the G-code, "
        "or set {slicer_profile}",
        options=("slicer_profile",),
        printer=printer,
    )


def note_one_filament(name: str) -> None:
    """Add the note that a printer or a slicer prints one filament."""
    note("slicer_one_filament", f"{name} prints one filament: colors are left out", printer=name)


def find_profiles(program: str, resources: Sequence[str]) -> Path:
    """Return the folder of the profiles that a slicer brings along.

    Args:
        program: Path of the program.
        resources: Names of folders with resources, beside the program or the folder of programs.
    """
    real = Path(program).resolve()
    places = [folder / name / "profiles" for folder in (real.parent, real.parent.parent) for name in resources]
    return next((place for place in places if place.is_dir()), places[0])


def turn(scene: Scene) -> Scene:
    """Return the scene turned by 90° about Z."""
    matrix = np.eye(4)
    matrix[:2, :2] = ((0, -1), (1, 0))
    return moved(scene, matrix)
