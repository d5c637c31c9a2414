"""Checks whether a model prints: its mesh, walls, overhangs and size."""

# why these constants: docs/decisions/0057-constants-of-the-print-checks.md
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Check, Memory
from meshhub.toolkit.lengths import LINE_RATIO, parse_lengths
from meshhub.toolkit.print_materials import MATERIALS, Process
from meshhub.toolkit.printers import ALIASES, PRINTERS, TITLES, Printer

MIN_WALLS_MM: dict[Process, float] = {"resin": 0.6, "sls": 0.7}
"""Least thickness of walls that service bureaus ask for; that of `fdm` is a line of the nozzle."""

GAP_LINE_RATIO = 1 / 3
"""Least gap of `fdm` per width of a line: slicers close gaps of up to 0.1 mm, and parts have slits of 0.2 mm."""

MIN_GAPS_MM: dict[Process, float] = {"resin": 0.2, "sls": 0.5}
"""Least gap at which both sides stay apart; that of `fdm` is a share of a line."""

MIN_SIDE_MM = 30.0
"""Millimeters; shortest side of a printer."""

LAYERS_MM: dict[Process, float] = {"fdm": 0.2, "resin": 0.05, "sls": 0.1}
"""Usual height of layers."""

if TYPE_CHECKING:
    Material = str
else:
    Material = Literal[tuple(MATERIALS)]

SupportPlaces = Literal["needed", "everywhere"]
"""Where support stands: below the places that the checks report, or below all overhangs, as slicers have it."""


class PrintOptions(Struct, frozen=True, kw_only=True):
    """Options of all checks: how the model is printed, and limits that replace those of the process."""

    print_process: Annotated[
        Process,
        Meta(
            title="Process",
            description="Way of printing: fdm (melted filament), resin (liquid resin under light) or sls (sintered "
            "powder). Limits depend on it.",
            extra={"everyday": True, "names_material": True},
        ),
    ] = "fdm"

    print_nozzle_mm: Annotated[
        float,
        Meta(title="Nozzle, mm", description="Diameter of the nozzle, for the process fdm.", ge=0.1, le=2),
    ] = 0.4

    print_wall_mm: (
        Annotated[
            float,
            Meta(
                title="Least wall, mm",
                description="Report walls that are thinner. Default: 1.125 nozzles for fdm, 0.6 for resin, 0.7 for "
                "sls.",
                ge=0.05,
                le=20,
            ),
        ]
        | None
    ) = None

    print_gap_mm: (
        Annotated[
            float,
            Meta(
                title="Least gap, mm",
                description="Report gaps that are narrower, within a part and between parts. Default: three "
                "eighths of the nozzle for fdm, 0.2 for resin, 0.5 for sls.",
                ge=0.02,
                le=20,
            ),
        ]
        | None
    ) = None

    print_layer_mm: (
        Annotated[
            float,
            Meta(
                title="Layer, mm",
                description="Height of a layer. Default: 0.2 for fdm, 0.05 for resin, 0.1 for sls.",
                ge=0.02,
                le=1,
            ),
        ]
        | None
    ) = None

    print_overhang_deg: Annotated[
        float,
        Meta(
            title="Least angle without support, degrees",
            description="Angle from the bed from which slopes need no support, however far they reach.",
            ge=5,
            le=85,
        ),
    ] = 35.0

    print_bridge_mm: Annotated[
        float,
        Meta(title="Longest bridge, mm", description="Report bridges that are longer.", ge=1, le=500),
    ] = 30.0

    print_printer: (
        Annotated[
            str,
            Meta(
                title="Printer",
                description="Printer on which the model must fit. Without it, it must fit on one of the known ones.",
                extra={"everyday": True, "titles": TITLES, "aliases": ALIASES},
            ),
        ]
        | None
    ) = None

    print_volume_mm: (
        Annotated[
            str,
            Meta(
                title="Volume of the printer, mm",
                description="Volume of a printer that is not in the list: width × depth × height in millimeters, such "
                "as 250x210x220.",
                max_length=64,
                examples=["250x210x220"],
                extra={"conflicts_with": ("print_printer",)},
            ),
        ]
        | None
    ) = None

    print_filaments: (
        Annotated[
            int,
            Meta(
                title="Filaments of the printer",
                description="Filaments that the printer has loaded, for models with colors. Default: those of one "
                "changer for a printer of the list.",
                ge=1,
                le=64,
            ),
        ]
        | None
    ) = None

    print_material: (
        Annotated[
            Material,
            Meta(
                title="Print material",
                description="Material of the estimate. Default: pla for fdm, resin for resin, pa12 for sls.",
                extra={"names_material": True},
            ),
        ]
        | None
    ) = None

    print_density_g_cm3: (
        Annotated[
            float,
            Meta(
                title="Density, g/cm³",
                description="Density of the material for the estimate. Default: the usual one of the material.",
                extra={"names_material": True},
                ge=0.1,
                le=25,
            ),
        ]
        | None
    ) = None

    print_infill_percent: Annotated[
        float,
        Meta(
            title="Infill in percent",
            description="Share of the inside that is filled, for the estimate of the process fdm.",
            ge=0,
            le=100,
        ),
    ] = 20.0

    print_shell_lines: Annotated[
        int,
        Meta(title="Lines of walls", description="Lines around each layer, for the same.", ge=1, le=20),
    ] = 2

    print_solid_layers: Annotated[
        int,
        Meta(
            title="Solid layers", description="Filled layers at the top and at the bottom, for the same.", ge=0, le=100
        ),
    ] = 4

    print_support: Annotated[
        SupportPlaces,
        Meta(
            title="Support",
            description="Support of the estimate: needed (below islands, far overhangs and long bridges), or, for the "
            "process fdm, everywhere (below all overhangs but bridges, as PrusaSlicer generates it by default).",
        ),
    ] = "needed"

    print_speed_mm_s: Annotated[
        float,
        Meta(
            title="Speed, mm/s",
            description="Speed of lines inside, for the same; lines outside are printed at half of it.",
            ge=5,
            le=500,
        ),
    ] = 60.0

    def check(self) -> None:
        """Check the form of the volume. Raises InvalidOption."""
        if self.print_volume_mm is not None:
            self.printer()

    def printer(self) -> Printer | None:
        """Return the printer that the options name; None for any. Raises InvalidOption."""
        if self.print_volume_mm is not None:
            width, depth, height = parse_lengths("print_volume_mm", self.print_volume_mm, "250x210x220", MIN_SIDE_MM)
            return Printer(name="printer", volume_mm=(width, depth, height), filaments=self.print_filaments)
        if self.print_printer is None:
            return None
        printer = PRINTERS[self.print_printer]
        return printer if self.print_filaments is None else structs.replace(printer, filaments=self.print_filaments)

    @property
    def layer_mm(self) -> float:
        """The height of a layer in mm."""
        return self.print_layer_mm or LAYERS_MM[self.print_process]

    @property
    def material(self) -> Material:
        """The material of the estimate."""
        usual = (name for name, material in MATERIALS.items() if material.process == self.print_process)
        return self.print_material or next(usual)

    @property
    def density_g_cm3(self) -> float:
        """The density of the material."""
        return self.print_density_g_cm3 or MATERIALS[self.material].density_g_cm3

    @property
    def min_wall_mm(self) -> float:
        """The least thickness of walls in mm."""
        return self.print_wall_mm or MIN_WALLS_MM.get(self.print_process, round(LINE_RATIO * self.print_nozzle_mm, 4))

    @property
    def sheet_remedy(self) -> dict[str, float]:
        """The option that gives a sheet a thickness: two of the least walls."""
        return {"thicken_mm": 2 * self.min_wall_mm}

    @property
    def min_gap_mm(self) -> float:
        """The least gap in mm."""
        return self.print_gap_mm or MIN_GAPS_MM.get(
            self.print_process, GAP_LINE_RATIO * LINE_RATIO * self.print_nozzle_mm
        )


MESH = Memory(factor=2.5)
"""Memory of the other checks."""

LAYERS = Memory(factor=7.5, base_bytes=256 << 20)
"""Memory of the checks of layers."""


def _declare(id_: str, label: str, description: str, run: str, *, memory: Memory = MESH, **others: Any) -> Check:
    """Return a check with the options of all checks.

    Args:
        id_: Id of the check.
        label: Name for people.
        description: What it finds.
        run: Module and function in this package.
        memory: Memory that it needs.
        others: Other fields.
    """
    return Check(
        id=id_,
        label=label,
        description=description,
        options=PrintOptions,
        run=f"{__name__}.{run}",
        concurrent=True,
        memory=memory,
        **{"needs": ("scipy",), "install": "meshhub"} | others,
    )


@hookimpl
def meshhub_checks() -> Iterable[Check]:
    """Declare the checks."""
    return [
        _declare(
            "mesh",
            "Mesh",
            "Holes, non-manifold edges, faces that are inside out, stray fragments.",
            "mesh:run",
            needs=(),
            install="",
        ),
        _declare(
            "overlaps",
            "Overlaps",
            "Faces that cross, bodies that overlap or lie in others, and what is there twice.",
            "overlaps:run",
        ),
        _declare("walls", "Walls", "Walls that are too thin for the process.", "walls:run_walls"),
        _declare("gaps", "Gaps", "Gaps within and between parts that fuse while they print.", "walls:run_gaps"),
        _declare(
            "overhangs",
            "Overhangs",
            "Layers that reach far into the air.",
            "layering:run_overhangs",
            memory=LAYERS,
        ),
        _declare(
            "standing",
            "Standing",
            "Whether each body holds on the bed, and does not tip over.",
            "standing:run_standing",
        ),
        _declare("size", "Size", "Printers on which the model fits, its unit, and its colors.", "size:run"),
        _declare(
            "islands",
            "Islands",
            "Places where a layer begins in the air.",
            "layering:run_islands",
            memory=LAYERS,
        ),
        _declare("spans", "Bridges", "Bridges that are too long.", "layering:run_spans", memory=LAYERS),
        _declare(
            "cups",
            "Cups",
            "Cavities that keep resin or powder, and hollows that pull at the film of a resin printer.",
            "layering:run_cups",
            memory=LAYERS,
        ),
        _declare(
            "estimate",
            "Estimate",
            "Material, weight, support and time of the print.",
            "estimate:run",
            memory=Memory(factor=4.0),
            estimates="model",
        ),
        _declare(
            "slicer",
            "Slicer",
            "The same, from PrusaSlicer, for the process fdm.",
            "slicer:run",
            requires="slicer",
            estimates="slicer",
        ),
    ]
