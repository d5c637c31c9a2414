"""Operation `split-for-bed`: cut parts that are larger than the bed of a printer into pieces that fit."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage
from meshhub.toolkit.lengths import parse_lengths

MIN_SIDE_MM = 30.0
"""Minimum millimeters of the sides of a bed; leaves room for connectors."""


class SplitForBedOptions(Struct, frozen=True, kw_only=True):
    """Options of `split-for-bed`: the bed, and how to connect the pieces."""

    split_for_bed: (
        Annotated[
            str,
            Meta(
                title="Split for a bed, mm",
                description="Cut each part that is larger than this printer into pieces that fit: width × depth × "
                "height in millimeters, such as 220x220x250. Parts are not turned.",
                max_length=64,
                examples=["220x220x250"],
                extra={"everyday": True},
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
        """Check that there is a bed, and its form. Raises InvalidOption."""
        if self.split_for_bed is None:
            raise InvalidOption(
                "connectors need pieces: set '{split_for_bed}' to the size of the bed", options=("split_for_bed",)
            )
        self.bed()

    def bed(self) -> tuple[float, ...]:
        """Return width, depth and height of the bed in millimeters. Raises InvalidOption."""
        return parse_lengths("split_for_bed", self.split_for_bed or "", "220x220x250", MIN_SIDE_MM)


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
                "connectors": "{} connector|{} connectors",
            },
        )
    ]
