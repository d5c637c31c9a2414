"""What a slicer gets, and what it made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from meshhub import InvalidOption, Scene, note
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
    extension: Of the file that is wanted, such as ".gcode".
    folder:    Empty temporary folder.
    """

    scene: Scene
    options: SlicerOptions
    settings: Mapping[str, float]
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
    points = [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+)x(-?[\d.]+)", polygon)]
    if len(points) < 3:
        return None
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def describe_failure(label: str, output: str) -> str:
    """Return the message of a slicer that ended without a file."""
    return f"{label} made no G-code: {last_line(output)[:90]}; use '{{repair}}' or '{{place_on_bed}}'"


def turn(scene: Scene) -> Scene:
    """Return the scene turned by 90° about Z."""
    matrix = np.eye(4)
    matrix[:2, :2] = ((0, -1), (1, 0))
    return moved(scene, matrix)
