"""Operation `emboss`: raise or engrave a text on a flat side, such as the number of a part."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage

MIN_SIZE_MM = 1.0
"""Millimeters; smaller capital letters cannot be printed."""

MIN_HEIGHT_MM = 0.05
"""Millimeters; less than the thinnest layer of a printer."""

Side = Literal["top", "bottom", "front", "back", "left", "right"]
"""Direction that a side of the model faces: front is -Y, left is -X."""


class EmbossOptions(Struct, frozen=True, kw_only=True):
    """Options of `emboss`: the text, its size and its place."""

    emboss_text: (
        Annotated[
            str,
            Meta(
                title="Text on a side",
                description="Raise or engrave this line of text on the largest flat region of a side, such as the "
                "number of a part. Needs a closed mesh.",
                max_length=100,
                examples=["A-1"],
            ),
        ]
        | None
    ) = None
    emboss_height_mm: Annotated[
        float,
        Meta(
            title="Height of the text, mm",
            description="How far the text stands out; negative engraves it.",
            ge=-20,
            le=20,
        ),
    ] = 0.6
    emboss_size_mm: Annotated[
        float,
        Meta(
            title="Size of the text, mm",
            description="Height of capital letters. A text that does not fit gets smaller, with a note.",
            ge=MIN_SIZE_MM,
            le=1000,
        ),
    ] = 5.0
    emboss_side: Annotated[
        Side, Meta(title="Side of the text", description="Side of the model, as it stands on the bed.")
    ] = "top"

    def check(self) -> None:
        """Check that there is a text, and that it has a height. Raises InvalidOption."""
        if self.emboss_text is None or not self.emboss_text.strip():
            raise InvalidOption(
                "options '{emboss_height_mm}', '{emboss_size_mm}' and '{emboss_side}' need '{emboss_text}'",
                options=("emboss_text", "emboss_height_mm", "emboss_size_mm", "emboss_side"),
            )
        if abs(self.emboss_height_mm) < MIN_HEIGHT_MM:
            raise InvalidOption(
                f"option '{{emboss_height_mm}}' must be at least {MIN_HEIGHT_MM} mm, or at most -{MIN_HEIGHT_MM} mm",
                options=("emboss_height_mm",),
            )


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `emboss`."""
    return [
        Operation(
            id="emboss",
            label="Text",
            stage=Stage.BASE,
            options=EmbossOptions,
            run="meshhub.builtin_plugins.emboss.operation:run",
            needs=("manifold3d", "scipy", "fontTools", "font_lato"),
            install="meshhub[text]",
            preload=("fontTools", "font_lato"),
            figures={
                "text_size_mm": "text of {} mm",
            },
        )
    ]
