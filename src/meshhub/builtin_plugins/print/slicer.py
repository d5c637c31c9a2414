"""Check `slicer`: material and time of a print, as PrusaSlicer computes them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.estimate import (
    ACCELERATION_MM_S2,
    SLOW_RATIO,
    estimate_print,
    find_missing_volume,
    replace_print,
)
from meshhub.builtin_plugins.print.layering import hanging_of
from meshhub.errors import ConversionFailed, InvalidOption, MissingDependency
from meshhub.model.estimate import Estimate
from meshhub.model.scene import Float64, Int32, Scene
from meshhub.model.verdict import Finding
from meshhub.toolkit.geometry import extremes, face_normals, soup, unit_vectors
from meshhub.toolkit.lengths import LINE_RATIO
from meshhub.toolkit.slicers import SLICERS, run_slicer

FILAMENT_MM2 = np.pi * 1.75**2 / 4
"""Square millimeters of the cross section of filament."""

_MOVE = re.compile(r"G1 [^;]*[XY][^;]* E(\d*\.?\d+)")
_TIME = re.compile(r"; estimated printing time \(normal mode\) = (.*)")
_UNITS_S = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


class Slice(NamedTuple):
    """Figures of a slicer.

    program:      name and version
    material_mm3: filament of the model
    support_mm3:  filament of the support
    seconds:      time
    """

    program: str
    material_mm3: float
    support_mm3: float
    seconds: float


def run(scene: Scene, options: PrintOptions) -> Iterator[Estimate | Finding]:
    """Estimate the print of a scene by PrusaSlicer, with its own settings for all that the options leave open.

    Args:
        scene: Millimeters, Z up.
        options: Material, layers, walls and infill; the process is fdm.
    Raises:
        InvalidOption: The process is another one.
        MissingDependency: PrusaSlicer is not installed.
        ConversionFailed: PrusaSlicer failed, or took too long.
    """
    if options.print_process != "fdm":
        raise InvalidOption("PrusaSlicer estimates the process fdm; omit '{slicer}'", options=("slicer",))
    finding = find_missing_volume(scene, options)
    if finding is not None:
        yield finding
        return
    needs_support = options.print_support == "everywhere" or len(hanging_of(scene, options).kind) > 0
    figures = slice_model(*soup(scene), options, needs_support=needs_support)
    estimate = estimate_print(scene, options)
    yield replace_print(estimate, figures.program, figures.material_mm3, figures.support_mm3, figures.seconds)


def slice_model(vertices: Float64, faces: Int32, options: PrintOptions, *, needs_support: bool = True) -> Slice:
    """Return the figures of PrusaSlicer for a model. Raises as `run`."""
    program = SLICERS["prusa"].find_console()
    if program is None:
        raise MissingDependency(
            "PrusaSlicer is not installed (no prusa-slicer in PATH); install it, or omit '{slicer}'",
            error_code=InvalidOption.error_code,
            options=("slicer",),
        )
    low, high = extremes(vertices)
    with tempfile.TemporaryDirectory() as folder:
        model, result = Path(folder) / "model.stl", Path(folder) / "model.gcode"
        model.write_bytes(_encode_stl(vertices - low, faces))
        side = float((high - low).max()) + 100
        settings = list_settings(options, side, needs_support=needs_support)
        run_slicer("PrusaSlicer", [program, *settings, "--output", str(result), str(model)], Path(folder) / "log")
        if not result.exists():
            raise ConversionFailed(
                "PrusaSlicer made no G-code of the model; use '{repair}', or omit '{slicer}'",
                options=("repair", "slicer"),
            )
        with result.open(encoding="utf-8", errors="replace") as lines:
            return read_gcode(lines)


def list_settings(options: PrintOptions, side_mm: float, *, needs_support: bool) -> list[str]:
    """Return the arguments of PrusaSlicer for options, and a bed with a side."""
    # zero: by the width of a line
    angle = 0.0 if options.print_support == "everywhere" else options.print_overhang_deg
    layer, speed = f"{options.layer_mm:g}", f"{options.print_speed_mm_s:g}"
    slow = f"{100 * SLOW_RATIO:g}%"
    settings = {
        "layer-height": layer,
        "first-layer-height": layer,
        "nozzle-diameter": f"{options.print_nozzle_mm:g}",
        "extrusion-width": f"{LINE_RATIO * options.print_nozzle_mm:g}",
        "perimeters": options.print_shell_lines,
        "top-solid-layers": options.print_solid_layers,
        "bottom-solid-layers": options.print_solid_layers,
        "fill-density": f"{options.print_infill_percent:g}%",
        "fill-pattern": "rectilinear" if options.print_infill_percent == 100 else "grid",
        "support-material-threshold": f"{angle:.0f}",
        "perimeter-speed": speed,
        "external-perimeter-speed": slow,
        "infill-speed": speed,
        "solid-infill-speed": speed,
        "top-solid-infill-speed": slow,
        "support-material-speed": speed,
        "bridge-speed": speed,
        "first-layer-speed": slow,
        "default-acceleration": f"{ACCELERATION_MM_S2:g}",
        "skirts": 0,
        "gcode-flavor": "marlin",
        "layer-gcode": "G92 E0",
        "bed-shape": f"0x0,{side_mm:.0f}x0,{side_mm:.0f}x{side_mm:.0f},0x{side_mm:.0f}",
        "max-print-height": f"{side_mm:.0f}",
        "center": f"{side_mm / 2:.0f},{side_mm / 2:.0f}",
    }
    flags = ["--export-gcode", "--use-relative-e-distances", *(["--support-material"] if needs_support else [])]
    return [*flags, *(text for name, value in settings.items() for text in (f"--{name}", str(value)))]


def read_gcode(lines: Iterable[str]) -> Slice:
    """Return the figures of G-code with relative positions of the filament. Raises ConversionFailed."""
    program, seconds = "", 0.0
    lengths = {False: 0.0, True: 0.0}
    is_support = False
    for line in lines:
        if line.startswith(";TYPE:"):
            is_support = line.startswith(";TYPE:Support")
        elif move := _MOVE.match(line):
            lengths[is_support] += float(move[1])
        elif time := _TIME.match(line):
            seconds = sum(int(count) * _UNITS_S[unit] for count, unit in re.findall(r"(\d+)([dhms])", time[1]))
        elif not program and line.startswith("; generated by "):
            program = " ".join(line.removeprefix("; generated by ").split()[:2]).replace("+UNKNOWN", "")
    if not (seconds and lengths[False]):
        raise ConversionFailed("the G-code of PrusaSlicer names no time; omit '{slicer}'", options=("slicer",))
    return Slice(program, lengths[False] * FILAMENT_MM2, lengths[True] * FILAMENT_MM2, seconds)


def _encode_stl(vertices: Float64, faces: Int32) -> bytes:
    """Return a binary STL file."""
    triangles = np.zeros(len(faces), _STL)
    triangles["normal"] = unit_vectors(face_normals(vertices, faces))
    triangles["corners"] = vertices[faces]
    return bytes(80) + np.uint32(len(faces)).tobytes() + triangles.tobytes()
