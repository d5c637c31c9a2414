"""Operation `reduce-colors`: give every triangle one of a few flat colors, and split triangles along the borders."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage
from meshhub.toolkit.printers import MAX_FILAMENTS

MAX_FILAMENT_COUNT = max(MAX_FILAMENTS.values())
"""Maximum number of filaments that a slicer can paint with."""

DEFAULT_CELL_MM = 0.4
"""Millimeters; the width of the usual nozzle."""


class ReduceColorsOptions(Struct, frozen=True, kw_only=True):
    """Options of `reduce-colors`: the number of colors or the filaments, and the fineness of the borders."""

    reduce_colors: (
        Annotated[
            int,
            Meta(
                title="Number of colors",
                description="Reduce textures, vertex colors and materials to this many flat colors, with one "
                "material for each; triangles are split along the borders. With a list of filaments: how many "
                "of them to choose.",
                ge=1,
                le=MAX_FILAMENT_COUNT,
                examples=[4],
                extra={"everyday": True},
            ),
        ]
        | None
    ) = None
    reduce_colors_palette: (
        Annotated[
            str,
            Meta(
                title="Filaments",
                description="Colors to use, #RRGGBB, red or name=#RRGGBB, separated by commas or line breaks, or the "
                "content of a file with filaments: text, CSV, JSON or settings of a slicer. On a service, @inventory "
                "is the list that its operator keeps for you. Default: the colors that suit the model.",
                examples=["#FFFFFF,#000000,Fire red=#D01020,Sky blue=#3090D0"],
                extra={"file_extensions": (".txt", ".csv", ".json", ".ini", ".config")},
            ),
        ]
        | None
    ) = None
    reduce_colors_cell_mm: Annotated[
        float,
        Meta(
            title="Smallest color detail in mm",
            description="Size of the details that borders between colors follow; default: the width of a nozzle.",
            ge=0.05,
            le=100,
        ),
    ] = DEFAULT_CELL_MM
    reduce_colors_borders: Annotated[
        Literal["smooth", "exact"],
        Meta(
            title="Borders between colors",
            description="smooth straightens borders and removes speckles below the smallest detail; exact follows the "
            "colors of the file.",
        ),
    ] = "smooth"
    reduce_colors_dither: Annotated[
        Literal["none", "blue-noise"],
        Meta(
            title="Dithering",
            description="blue-noise mixes two filaments in fine cells where the color lies between them.",
        ),
    ] = "none"
    reduce_colors_wall_mm: (
        Annotated[
            float,
            Meta(
                title="Thickness of colored walls in mm",
                description="Match the colors that translucent filaments show on walls of this thickness: the filament "
                "of the largest area, which slicers print inside, shines through. The list of filaments must have "
                "their transmission distances. Default: filaments are opaque.",
                ge=0.05,
                le=20,
                examples=[1.2],
            ),
        ]
        | None
    ) = None
    reduce_colors_background: Annotated[
        str,
        Meta(
            title="Color behind transparent surfaces",
            description="Color, #RRGGBB or a name such as white, that shows through where the model is transparent.",
            examples=["#FFFFFF"],
        ),
    ] = "#FFFFFF"
    reduce_colors_emission: Annotated[
        bool,
        Meta(
            title="Glowing colors",
            description="Add the light that materials emit to their colors; by default, it is left out.",
        ),
    ] = False

    def check(self) -> None:
        """Raise InvalidOption for a missing number of colors, an invalid color, or too few filaments."""
        from meshhub.builtin_plugins.reduce_colors.filament_files import parse_filaments
        from meshhub.builtin_plugins.reduce_colors.filaments import check_color

        check_color("reduce_colors_background", self.reduce_colors_background)
        if self.reduce_colors is None and self.reduce_colors_palette is None:
            raise InvalidOption(
                "colors are reduced only with '{reduce_colors}' or '{reduce_colors_palette}'; set one of them",
                options=("reduce_colors", "reduce_colors_palette"),
            )
        filaments = parse_filaments(self.reduce_colors_palette) if self.reduce_colors_palette is not None else []
        if self.reduce_colors_wall_mm is not None and not any(filament.transmission_mm for filament in filaments):
            raise InvalidOption(
                "option '{reduce_colors_wall_mm}' needs filaments with a transmission distance: pass a file with a "
                "column 'td' as '{reduce_colors_palette}'",
                options=("reduce_colors_wall_mm", "reduce_colors_palette"),
            )
        if not filaments:
            return
        if self.reduce_colors is None and len(filaments) > MAX_FILAMENT_COUNT:
            raise InvalidOption(
                f"option '{{reduce_colors_palette}}' lists {len(filaments)} filaments; set '{{reduce_colors}}' to use "
                f"at most {MAX_FILAMENT_COUNT} of them",
                options=("reduce_colors", "reduce_colors_palette"),
            )
        if self.reduce_colors is not None and self.reduce_colors > len(filaments):
            raise InvalidOption(
                f"option '{{reduce_colors}}' is {self.reduce_colors}, but '{{reduce_colors_palette}}' has only "
                f"{len(filaments)} filaments",
                options=("reduce_colors", "reduce_colors_palette"),
            )


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `reduce-colors`."""
    return [
        Operation(
            id="reduce-colors",
            label="Reduce colors",
            stage=Stage.COLOR,
            memory=Memory(factor=4.0),
            options=ReduceColorsOptions,
            run="meshhub.builtin_plugins.reduce_colors.operation:run",
            needs=("scipy",),
            install="meshhub",
            drops=frozenset({"uv", "colors", "textures"}),
            transfers=frozenset({"uv", "colors", "textures"}),
            solves={"many_colors": "reduce_colors"},
            figures={
                "filament_colors": "colors {}",
                "delta_e_mean": "mean deviation {} ΔE",
            },
        )
    ]
