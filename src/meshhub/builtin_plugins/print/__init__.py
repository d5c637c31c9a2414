"""Checks whether a model prints: its mesh, walls, overhangs and size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.builtin_plugins.print.printers import PRINTERS as PRINTERS
from meshhub.builtin_plugins.print.printers import PrinterName
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Check

Process = Literal["fdm", "resin", "sls"]
"""Way of printing: melted filament, liquid resin, or sintered powder."""

MIN_WALLS_MM: dict[Process, float] = {"resin": 0.6, "sls": 0.7}
"""Least thickness of walls that service bureaus ask for; that of `fdm` is two lines of the nozzle."""

MIN_GAPS_MM: dict[Process, float] = {"fdm": 0.3, "resin": 0.2, "sls": 0.5}
"""Least gap at which both sides stay apart."""


class PrintOptions(Struct, frozen=True, kw_only=True):
    """Options of all checks: how the model is printed, and limits that replace those of the process."""

    print_process: Annotated[
        Process,
        Meta(
            title="Process",
            description="Way of printing: fdm (melted filament), resin (liquid resin under light) or sls (sintered "
            "powder). Limits depend on it.",
        ),
    ] = "fdm"

    print_nozzle_mm: Annotated[
        float,
        Meta(title="Nozzle of mm", description="Diameter of the nozzle, for the process fdm.", ge=0.1, le=2),
    ] = 0.4

    print_wall_mm: (
        Annotated[
            float,
            Meta(
                title="Least wall of mm",
                description="Report walls that are thinner. Default: two nozzles for fdm, 0.6 for resin, 0.7 for sls.",
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
                title="Least gap of mm",
                description="Report gaps that are narrower, within a part and between parts. Default: 0.3 for fdm, "
                "0.2 for resin, 0.5 for sls.",
                ge=0.02,
                le=20,
            ),
        ]
        | None
    ) = None

    print_layer_mm: Annotated[
        float,
        Meta(title="Layer of mm", description="Height of a layer.", ge=0.02, le=1),
    ] = 0.2

    print_overhang_deg: Annotated[
        float,
        Meta(
            title="Least angle without support, degrees",
            description="Report surfaces that overhang at less than this angle from the bed.",
            ge=5,
            le=85,
        ),
    ] = 45.0

    print_bridge_mm: Annotated[
        float,
        Meta(title="Longest bridge of mm", description="Report bridges that are longer.", ge=1, le=500),
    ] = 10.0

    print_printer: (
        Annotated[
            PrinterName,
            Meta(
                title="Printer",
                description="Printer on which the model must fit. Without it, it must fit on one of the known ones.",
            ),
        ]
        | None
    ) = None

    @property
    def min_wall_mm(self) -> float:
        """The least thickness of walls in mm."""
        return self.print_wall_mm or MIN_WALLS_MM.get(self.print_process, 2 * self.print_nozzle_mm)

    @property
    def min_gap_mm(self) -> float:
        """The least gap in mm."""
        return self.print_gap_mm or MIN_GAPS_MM[self.print_process]


@hookimpl
def meshhub_checks() -> Iterable[Check]:
    """Declare the checks."""
    package = "meshhub.builtin_plugins.print"
    return [
        Check(
            id="mesh",
            label="Mesh",
            description="Holes, non-manifold edges, faces that are inside out, stray fragments.",
            options=PrintOptions,
            run=f"{package}.mesh:run",
        ),
        Check(
            id="walls",
            label="Walls",
            description="Walls that are too thin for the process.",
            options=PrintOptions,
            run=f"{package}.walls:run_walls",
            needs=("scipy",),
            install="meshhub",
        ),
        Check(
            id="gaps",
            label="Gaps",
            description="Gaps within and between parts that fuse while they print.",
            options=PrintOptions,
            run=f"{package}.walls:run_gaps",
            needs=("scipy",),
            install="meshhub",
        ),
        Check(
            id="overhangs",
            label="Overhangs",
            description="Surfaces that need support, and about how much.",
            options=PrintOptions,
            run=f"{package}.standing:run_overhangs",
            needs=("scipy",),
            install="meshhub",
        ),
        Check(
            id="standing",
            label="Standing",
            description="Whether the model holds on the bed, and does not tip over.",
            options=PrintOptions,
            run=f"{package}.standing:run_standing",
            needs=("scipy",),
            install="meshhub",
        ),
        Check(
            id="size",
            label="Size",
            description="Printers on which the model fits, and more triangles than a printer shows.",
            options=PrintOptions,
            run=f"{package}.standing:run_size",
            needs=("scipy",),
            install="meshhub",
        ),
        Check(
            id="islands",
            label="Islands",
            description="Places where a layer begins in the air.",
            options=PrintOptions,
            run=f"{package}.layering:run_islands",
            needs=("scipy",),
            install="meshhub",
        ),
        Check(
            id="spans",
            label="Bridges",
            description="Long bridges, and layers that reach far into the air.",
            options=PrintOptions,
            run=f"{package}.layering:run_spans",
            needs=("scipy",),
            install="meshhub",
        ),
        Check(
            id="cups",
            label="Cups",
            description="Cavities that keep resin or powder, and hollows that pull at the film of a resin printer.",
            options=PrintOptions,
            run=f"{package}.layering:run_cups",
            needs=("scipy",),
            install="meshhub",
        ),
    ]
