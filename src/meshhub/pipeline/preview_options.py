"""Options of a preview."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

PREVIEW_FORMAT = "glb"
"""Id of the format that previews have."""


class PreviewOptions(Struct, frozen=True, kw_only=True):
    """Options of a preview."""

    max_triangles: Annotated[
        int,
        Meta(
            title="Most triangles",
            description="A model with more is reduced to this number by merging vertices that are close together.",
            ge=1000,
            le=2_000_000,
        ),
    ] = 100_000
