"""Operation `arrange`: place objects side by side on the bed of a printer."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage
from meshhub.toolkit.lengths import parse_lengths

MIN_SIDE_MM = 10.0
"""Millimeters; shortest side of a bed."""

MAX_SIDE_MM = 10_000.0
"""Millimeters; longest side of a bed."""


class ArrangeOptions(Struct, frozen=True, kw_only=True):
    """Options of `arrange`: the bed, what is placed, and how."""

    arrange_bed: (
        Annotated[
            str,
            Meta(
                title="Arrange on a bed, mm",
                description="Place the objects side by side on a bed of this width × depth in millimeters, such as "
                "220x220, or on that of a printer, such as prusa-mk4; what finds no room goes on further beds beside "
                "it.",
                max_length=64,
                examples=["220x220"],
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None

    arrange_gap_mm: Annotated[
        float,
        Meta(
            title="Gap between objects, mm",
            description="Least distance between two objects, seen from above.",
            ge=0,
            le=100,
        ),
    ] = 5.0

    arrange_turns: Annotated[
        Literal["none", "right-angles", "any"],
        Meta(
            title="Turns of objects",
            description="How objects may be turned about Z: not at all, by right angles, or by multiples of 15°.",
        ),
    ] = "right-angles"

    arrange_by: Annotated[
        Literal["objects", "parts"],
        Meta(
            title="What is placed",
            description="Whether the parts of an object, such as those of several colors, stay together, or each part "
            "is placed alone.",
        ),
    ] = "objects"

    arrange_plate: (
        Annotated[
            int,
            Meta(
                title="Keep one bed only",
                description="Keep only the objects on the bed with this number, from 1.",
                ge=1,
                le=10_000,
                examples=[1],
            ),
        ]
        | None
    ) = None

    def check(self) -> None:
        """Check that there is a bed, and its form. Raises InvalidOption."""
        if self.arrange_bed is None:
            raise InvalidOption("objects need a bed: set '{arrange_bed}' to its size", options=("arrange_bed",))
        self.bed()

    def bed(self) -> tuple[float, ...]:
        """Return width and depth of the bed in millimeters. Raises InvalidOption."""
        return parse_lengths("arrange_bed", self.arrange_bed or "", "220x220", MIN_SIDE_MM, MAX_SIDE_MM)


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `arrange`."""
    return [
        Operation(
            id="arrange",
            label="Arrange on a bed",
            stage=Stage.PLACE,
            options=ArrangeOptions,
            run="meshhub.builtin_plugins.arrange.operation:run",
            needs=("scipy",),
            install="meshhub",
            figures={
                "objects": "placed {} object|placed {} objects",
                "beds": "on {} bed|on {} beds",
            },
        )
    ]
