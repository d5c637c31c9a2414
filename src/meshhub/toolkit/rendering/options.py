"""Options of a picture: views, size, colors, edges, background."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal, NamedTuple, get_args

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption, quote

View = Literal["iso", "iso-back", "iso-below", "front", "back", "left", "right", "top", "bottom"]
"""Direction from which a model is seen."""

VIEWS: tuple[View, ...] = get_args(View)
"""Every view."""

MAX_SIDE_PIXELS = 4096
"""Maximum pixels of one side; a picture of this size takes about 1 GB of memory and 10 s."""

MIN_SIDE_PIXELS = 16
"""Minimum pixels of one side; smaller pictures are useless."""

MAX_MARKS = 99
"""Maximum numbered places; more digits do not fit into a mark."""

_SIZE = re.compile(r"(\d{1,5})[x×](\d{1,5})", re.ASCII | re.IGNORECASE)

Measure = Literal["thickness", "overhang"]
"""Measure of a surface."""

Limit = Annotated[
    float,
    Meta(
        title="Limit that the legend marks",
        description="For thickness in mm (default: 0.8; the scale ends at four times the limit), for overhang "
        "in degrees from the bed (default: 45).",
        ge=0.05,
        le=90,
    ),
]
"""Limit of a measure, in its unit."""


class RenderOptions(Struct, frozen=True, kw_only=True):
    """Options of a picture."""

    view: Annotated[
        str,
        Meta(
            title="Views",
            description=f"One view or several, separated by commas, in one picture: {', '.join(VIEWS)}.",
            examples=["iso,front,right,top"],
            extra={"everyday": True},
        ),
    ] = "iso"
    size: Annotated[
        str,
        Meta(
            title="Size of the picture in pixels",
            description=f"Width and height as WIDTHxHEIGHT, each {MIN_SIDE_PIXELS} to {MAX_SIDE_PIXELS}.",
            examples=["1280x960"],
            extra={"everyday": True},
        ),
    ] = "1280x960"
    color_by: Annotated[
        Literal["model", "part", "surface", "thickness", "overhang", "defects", "islands", "none"],
        Meta(
            title="Colors",
            description=(
                "model shows the colors, materials and textures of the file; part gives each part its own color; "
                "surface shows the kind of each surface, with a legend, for formats that have surfaces (STEP); "
                "thickness of walls and overhang are scales with the limit in the legend; defects marks open and "
                "non-manifold edges, flipped faces and stray fragments; islands circles places where a layer of "
                "0.2 mm begins in the air; none is gray."
            ),
            extra={"everyday": True},
        ),
    ] = "model"
    color_limit: Limit | None = None
    marks: (
        Annotated[
            str,
            Meta(
                title="Places to number",
                description=f"Positions in mm as x,y,z, separated by semicolons, at most {MAX_MARKS}. They get the "
                "numbers 1, 2, …; a number behind the surface is on white.",
                examples=["10,0,5; 12,4.5,30"],
            ),
        ]
        | None
    ) = None
    edges: Annotated[
        Literal["feature", "mesh", "none"],
        Meta(
            title="Edges",
            description="feature draws outlines and sharp edges; mesh also draws the sides of every triangle.",
        ),
    ] = "feature"
    background: Annotated[
        Literal["light", "dark", "transparent"],
        Meta(title="Background", description="Color behind the model."),
    ] = "light"


class Size(NamedTuple):
    """Size in pixels."""

    width: int
    height: int


def parse_size(text: str) -> Size:
    """Return the size that the option `size` names.

    Raises:
        InvalidOption: The text has another form, or a side is out of bounds.
    """
    match = _SIZE.fullmatch(text.strip())
    size = Size(*map(int, match.groups())) if match else Size(0, 0)
    if not MIN_SIDE_PIXELS <= min(size) <= max(size) <= MAX_SIDE_PIXELS:
        raise InvalidOption(
            f"option '{{size}}' must be WIDTHxHEIGHT, each {MIN_SIDE_PIXELS} to {MAX_SIDE_PIXELS} pixels, "
            f"got {quote(text)}",
            options=("size",),
        )
    return size


def parse_views(text: str) -> tuple[View, ...]:
    """Return the views that the option `view` names.

    Raises:
        InvalidOption: A view is unknown or repeated.
    """
    names = [name.strip().lower() for name in text.split(",")]
    views = tuple(view for name in names for view in VIEWS if view == name)
    if len(views) != len(names) or len(set(views)) != len(views):
        raise InvalidOption(
            f"option '{{view}}' must list different views of {', '.join(VIEWS)}, got {quote(text)}",
            options=("view",),
        )
    return views


def parse_marks(text: str | None) -> tuple[tuple[float, float, float], ...]:
    """Return the positions that the option `marks` names.

    Raises:
        InvalidOption: A position has another form, or there are too many.
    """
    marks = []
    for item in (text or "").split(";"):
        numbers = item.split(",")
        if not item.strip():
            continue
        try:
            x, y, z = (float(number) for number in numbers)
        except ValueError:
            x = y = z = math.nan
        marks.append((x, y, z))
    if len(marks) > MAX_MARKS or not all(map(math.isfinite, (value for mark in marks for value in mark))):
        raise InvalidOption(
            f"option '{{marks}}' must list at most {MAX_MARKS} positions as x,y,z with semicolons between them, "
            f"got {quote(text or '')}",
            options=("marks",),
        )
    return tuple(marks)
