"""Operation `split-for-bed`: cut parts that are larger than the bed of a printer into pieces that fit."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage
from meshhub.toolkit.cut_planes import PlanePosition, parse_planes
from meshhub.toolkit.lengths import parse_lengths

MAX_CUTS = 32
"""Maximum planes of one request; a bed of 30 mm cuts a meter into 34 pieces."""

MIN_SIDE_MM = 30.0
"""Minimum millimeters of the sides of a bed; leaves room for connectors."""


class SplitForBedOptions(Struct, frozen=True, kw_only=True):
    """Options of `split-for-bed`: the bed, where to cut, and how to connect the pieces."""

    split_for_bed: (
        Annotated[
            str,
            Meta(
                title="Split for a bed, mm",
                description="Cut each part that is larger than this printer into pieces that fit: width × depth × "
                "height in millimeters, such as 220x220x250, or its name, such as prusa-mk4. Parts are not turned.",
                max_length=64,
                examples=["220x220x250"],
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None

    split_for_bed_cuts: (
        Annotated[
            str,
            Meta(
                title="Positions of the cuts",
                description="Planes at which to cut parts that are larger than the bed: an axis with a position in "
                "millimeters, or in percent of the size, such as x=110,z=50%. Pieces that are still larger are cut "
                "further. Default: evenly spaced.",
                max_length=600,
                examples=["x=110,z=50%"],
            ),
        ]
        | None
    ) = None

    split_for_bed_connectors: Annotated[
        Literal["none", "pegs", "dowels", "dovetail"],
        Meta(
            title="Connectors of the pieces",
            description="How to connect the pieces: pegs on one side, holes on both sides for separate dowels, or "
            "dovetails to slide together; only where there is material around.",
        ),
    ] = "none"

    split_for_bed_clearance_mm: Annotated[
        float,
        Meta(
            title="Clearance of the connectors, mm",
            description="Gap between a connector and its hole on each side.",
            ge=0,
            le=2,
        ),
    ] = 0.15

    def check(self) -> None:
        """Check that there is a bed, and the form of its size and of the cuts. Raises InvalidOption."""
        if self.split_for_bed is None:
            raise InvalidOption(
                "cuts and connectors need a bed: set '{split_for_bed}' to its size", options=("split_for_bed",)
            )
        self.bed()
        self.cuts()

    def bed(self) -> tuple[float, ...]:
        """Return width, depth and height of the bed in millimeters. Raises InvalidOption."""
        return parse_lengths("split_for_bed", self.split_for_bed or "", "220x220x250", MIN_SIDE_MM)

    def cuts(self) -> tuple[PlanePosition, ...]:
        """Return the requested positions of the cuts. Raises InvalidOption."""
        text = self.split_for_bed_cuts
        return () if text is None else parse_planes("split_for_bed_cuts", text, MAX_CUTS)


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `split-for-bed`."""
    return [
        Operation(
            id="split-for-bed",
            label="Split for a bed",
            stage=Stage.DIVIDE,
            options=SplitForBedOptions,
            run="meshhub.builtin_plugins.split_for_bed.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            figures={
                "parts_split": "split {} part|split {} parts",
                "parts_after": "parts {parts_before} → {}",
                "cuts_added": "{} cut added|{} cuts added",
                "connectors": "{} connector|{} connectors",
            },
        )
    ]
