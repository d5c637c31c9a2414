"""Operation `fit`: scale the whole scene to fill a box, such as the volume of a printer."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage
from meshhub.toolkit.lengths import parse_lengths

MIN_SIDE_MM = 0.001
"""Millimeters; shortest side of a box."""


class FitOptions(Struct, frozen=True, kw_only=True):
    """Options of `fit`: the box to fill."""

    fit_mm: (
        Annotated[
            str,
            Meta(
                title="Fit into a box, mm",
                description="Shrink or grow the whole scene uniformly to the largest size that fits into this box: "
                "width × depth × height in millimeters, such as 200x200x180, or a printer, such as prusa-mk4.",
                max_length=64,
                examples=["200x200x180"],
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None

    def check(self) -> None:
        """Check the form of the box. Raises InvalidOption."""
        if self.fit_mm is not None:
            self.box()

    def box(self) -> tuple[float, ...]:
        """Return width, depth and height of the box in millimeters. Raises InvalidOption."""
        return parse_lengths("fit_mm", self.fit_mm or "", "200x200x180", MIN_SIDE_MM)


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `fit`."""
    return [
        Operation(
            id="fit",
            label="Fit into a box",
            stage=Stage.RESIZE,
            options=FitOptions,
            run="meshhub.builtin_plugins.fit.operation:run",
            figures={
                "scale_factor": "scaled by {}",
            },
        )
    ]
