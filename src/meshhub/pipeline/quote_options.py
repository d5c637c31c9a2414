"""Options of a quote."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

MAX_QUANTITY_COUNT = 1_000_000
"""Maximum pieces of a quote; more is certainly a typing error."""


class QuoteOptions(Struct, frozen=True, kw_only=True):
    """What is quoted, and how it is estimated."""

    quantity: Annotated[
        int,
        Meta(
            title="Quantity",
            description="Number of equal pieces.",
            ge=1,
            le=MAX_QUANTITY_COUNT,
            extra={"everyday": True},
        ),
    ] = 1

    material: (
        Annotated[
            str,
            Meta(
                title="Material",
                description="Name of a material of the rate card. Default: its first one.",
                examples=["pla"],
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None

    slicer: Annotated[
        bool,
        Meta(
            title="Use a slicer",
            description="Take material and time from an installed slicer instead of the model; slower.",
        ),
    ] = False
