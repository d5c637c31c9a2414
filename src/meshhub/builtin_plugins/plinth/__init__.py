"""Operation `plinth`: put a flat plate under the model."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class PlinthOptions(Struct, frozen=True, kw_only=True):
    """Options of `plinth`: thickness of the plate, and how far it protrudes."""

    plinth_mm: (
        Annotated[
            float,
            Meta(
                title="Plinth, mm",
                description="Put a flat plate of this thickness under each part that stands at the bottom, as one body "
                "with it. Its outline is the convex hull of the lowest part. Needs a closed mesh.",
                ge=0.1,
                le=1000,
                examples=[3],
            ),
        ]
        | None
    ) = None
    plinth_margin_mm: Annotated[
        float,
        Meta(title="Margin of the plinth, mm", description="How far the plate protrudes on all sides.", ge=0, le=1000),
    ] = 2.0

    def check(self) -> None:
        """Check that there is a plate. Raises InvalidOption."""
        if self.plinth_mm is None:
            raise InvalidOption(
                "option '{plinth_margin_mm}' needs '{plinth_mm}'", options=("plinth_margin_mm", "plinth_mm")
            )


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `plinth`."""
    return [
        Operation(
            id="plinth",
            label="Plinth",
            stage=Stage.CUT,
            memory=Memory(factor=2.0),
            options=PlinthOptions,
            run="meshhub.builtin_plugins.plinth.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            figures={
                "plates": "added {} plate|added {} plates",
                "plate_area_mm2": "of {} mm²",
            },
        )
    ]
