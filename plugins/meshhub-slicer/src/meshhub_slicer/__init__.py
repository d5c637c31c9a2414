"""G-code of an installed slicer as a target: PrusaSlicer, CuraEngine, OrcaSlicer or BambuStudio: declarations."""

# why this way: docs/decisions/0063-size-of-the-slicer.md
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from meshhub_gcode import BGCODE, GCODE, GCODE_3MF
from msgspec import Meta, Struct

from meshhub import Feature, Writer, hookimpl
from meshhub.toolkit.print_materials import FILAMENTS
from meshhub.toolkit.printers import ALIASES, PRINTERS, TITLES
from meshhub_slicer.programs import PROGRAMS

MESHHUB_API = "1.0"

ENTITLEMENT = "slicer"
"""Entitlement of `quote --slicer`, too; callers of the command line and of Python have it."""

_TITLES = {id_: title for id_, title in TITLES.items() if PRINTERS[id_].process == "fdm"}
_ALIASES = {name: id_ for name, id_ in ALIASES.items() if id_ in _TITLES}

Quality = Literal["draft", "standard", "fine"]
Supports = Literal["auto", "none", "everywhere"]
if TYPE_CHECKING:
    SlicerId = Material = str
else:
    SlicerId = Literal[("auto", *PROGRAMS)]
    Material = Literal[tuple(FILAMENTS)]


class SlicerOptions(Struct, frozen=True, kw_only=True):
    """Slicer, printer and settings of the print."""

    slicer_program: Annotated[
        SlicerId,
        Meta(
            title="Slicer",
            description="Installed slicer that makes G-code: prusa, orca, bambu or cura; auto takes the first that is "
            "installed and writes the file.",
        ),
    ] = "auto"
    slicer_printer: (
        Annotated[
            str,
            Meta(
                title="Printer of the G-code",
                description="Printer for which the slicer makes G-code. Needed, unless a profile has all settings.",
                extra={"everyday": True, "titles": _TITLES, "aliases": _ALIASES},
                examples=["prusa-mk3s"],
            ),
        ]
        | None
    ) = None
    slicer_material: Annotated[
        Material,
        Meta(title="Filament of the G-code", description="Material of the filament.", extra={"everyday": True}),
    ] = "pla"
    slicer_quality: Annotated[
        Quality,
        Meta(
            title="Quality of the G-code",
            description="Layers of about 0.3 mm (draft), 0.2 mm (standard) or 0.1 mm (fine) with a nozzle of 0.4 mm.",
            extra={"everyday": True},
        ),
    ] = "standard"
    slicer_profile: (
        Annotated[
            str,
            Meta(
                title="Profile of the G-code",
                description="Name of a profile in the operator's folder of profiles, whose settings take precedence "
                "over those of the printer. Scripts and commands for hosts in it are not used.",
                max_length=100,
            ),
        ]
        | None
    ) = None
    slicer_supports: Annotated[
        Supports,
        Meta(
            title="Supports of the G-code",
            description="Where the slicer adds supports: auto below slopes under 35°, everywhere below all overhangs "
            "that it finds, or none.",
            extra={"everyday": True},
        ),
    ] = "auto"
    slicer_set: (
        Annotated[
            str,
            Meta(
                title="Settings of the G-code",
                description="Single settings by their names in PrusaSlicer, separated by commas: layer_height, "
                "first_layer_height, perimeters, top_solid_layers, bottom_solid_layers, fill_density, temperature, "
                "first_layer_temperature, bed_temperature, first_layer_bed_temperature, perimeter_speed, "
                "external_perimeter_speed, infill_speed, travel_speed, brim_width or skirts.",
                max_length=1000,
                examples=["layer_height=0.2,fill_density=15"],
            ),
        ]
        | None
    ) = None

    def check(self) -> None:
        """Raise InvalidOption for settings that cannot be set."""
        if self.slicer_set:
            from meshhub_slicer.settings import parse_settings

            parse_settings(self.slicer_set)


_MAX_FILAMENTS = {id_: printer.filaments for id_, printer in PRINTERS.items() if printer.filaments and id_ in _TITLES}
_FIGURES = {
    "seconds": "{} s of printing",
    "filament_g": "{} g of filament",
    "layers": "{} layer|{} layers",
    "cost": "costs {} {currency}",
}
_CARRIES: frozenset[Feature] = frozenset({"materials"})


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writers; a plan grants them with the entitlement."""
    return [
        Writer(
            format=format_,
            run=f"meshhub_slicer.writer:{run}",
            requires=ENTITLEMENT,
            options=SlicerOptions,
            carries=_CARRIES,
            figures=_FIGURES,
            action="Slice" if format_ is GCODE else "",
            merges_parts=False,
            max_colors={"slicer_printer": _MAX_FILAMENTS},
        )
        for format_, run in ((GCODE, "write_gcode"), (BGCODE, "write_bgcode"), (GCODE_3MF, "write_gcode_3mf"))
    ]
