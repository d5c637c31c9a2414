"""Options of a preview."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.toolkit.rendering.options import Limit

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

    color_by: Annotated[
        Literal["model", "thickness", "overhang"],
        Meta(
            title="Colors",
            description=(
                "model shows the colors, materials and textures of the file; thickness of walls and overhang are "
                "scales, which the facts describe."
            ),
        ),
    ] = "model"

    color_limit: Limit | None = None
