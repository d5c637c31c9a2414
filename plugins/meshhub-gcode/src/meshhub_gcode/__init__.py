"""G-code of 3D printers for meshhub: what a print takes, and its toolpath as a model: declarations."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub import Feature, Format, Magic, Reader, hookimpl

MESHHUB_API = "1.0"

GCODE = Format(
    id="gcode",
    label="G-code",
    extensions=(".gcode", ".gco", ".g"),
    media_types=("text/x.gcode",),
    specification="https://marlinfw.org/meta/gcode/",
    memory_ratio=110.0,
)
BGCODE = Format(
    id="bgcode",
    label="Binary G-code",
    extensions=(".bgcode", ".bgc"),
    media_types=("application/x.bgcode",),
    magic=(Magic(b"GCDE"),),
    specification="https://github.com/prusa3d/libbgcode/blob/main/doc/specifications.md",
    is_compressed=True,
    memory_ratio=450.0,
)
GCODE_3MF = Format(
    id="gcode-3mf",
    label="3MF with G-code",
    extensions=(".gcode.3mf",),
    media_types=("model/3mf",),
    specification="https://wiki.bambulab.com/en/software/bambu-studio/manual/bambu-file-format",
    is_compressed=True,
    memory_ratio=1500.0,
)

_CARRIES: frozenset[Feature] = frozenset({"names", "materials"})


class GcodeOptions(Struct, frozen=True, kw_only=True):
    """Colors and accuracy of the lines of a toolpath."""

    gcode_color_by: Annotated[
        Literal["feature", "tool"],
        Meta(
            title="Parts and colors of a toolpath",
            description="feature makes a part of each kind of line, such as outer walls and infill; tool makes one of "
            "each tool or filament, in the color that the file states.",
        ),
    ] = "feature"
    gcode_tolerance_mm: Annotated[
        float,
        Meta(
            title="Tolerance of toolpaths in mm",
            description="Corners of a line that lie closer to a straight line are left out, and arcs become straight "
            "lines at this distance.",
            ge=0.001,
            le=1.0,
        ),
    ] = 0.02


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the readers; G-code states millimeters or inches, and becomes millimeters."""
    return [
        Reader(
            format=GCODE,
            run="meshhub_gcode.reader:read_gcode",
            sniff="meshhub_gcode.sniff:sniff_gcode",
            options=GcodeOptions,
            carries=_CARRIES,
        ),
        Reader(
            format=BGCODE,
            run="meshhub_gcode.reader:read_bgcode",
            needs=("heatshrink2",),
            install="meshhub-gcode",
            options=GcodeOptions,
            carries=_CARRIES,
        ),
        Reader(
            format=GCODE_3MF,
            run="meshhub_gcode.reader:read_gcode_3mf",
            sniff="meshhub_gcode.sniff:sniff_gcode_3mf",
            options=GcodeOptions,
            carries=_CARRIES,
            # below 3MF: a package without a name is a model
            score=40,
        ),
    ]
