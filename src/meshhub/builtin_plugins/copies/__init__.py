"""Operation `copies`: put copies of the model beside it."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class CopiesOptions(Struct, frozen=True, kw_only=True):
    """Options of `copies`: how many there are, and how far apart."""

    copies: (
        Annotated[
            int,
            Meta(
                title="Copies",
                description="How often the model is there in all, side by side in rows; with a bed to arrange on, each "
                "copy of an object gets its own place.",
                ge=1,
                le=1000,
                examples=[2],
            ),
        ]
        | None
    ) = None

    copies_gap_mm: Annotated[
        float,
        Meta(
            title="Gap between copies, mm",
            description="Distance between the boxes around two copies.",
            ge=0,
            le=1000,
        ),
    ] = 5.0

    def check(self) -> None:
        """Check that there are copies to space. Raises InvalidOption."""
        if self.copies is None:
            raise InvalidOption("a gap needs copies: set '{copies}' to their number", options=("copies",))


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `copies`."""
    return [
        Operation(
            id="copies",
            label="Copies",
            stage=Stage.DIVIDE,
            options=CopiesOptions,
            run="meshhub.builtin_plugins.copies.operation:run",
            figures={
                "parts_after": "parts {parts_before} → {}",
            },
        )
    ]
