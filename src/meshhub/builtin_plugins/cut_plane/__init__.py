"""Operation `cut-plane`: cut the scene at planes, and close the pieces."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption, quote
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage

MAX_PLANES = 8
"""Maximum planes of one request; eight cut each part into up to 256 pieces."""

_PLANE = re.compile(r"([xyz])=(-?\d{1,6}(?:\.\d{1,6})?)(%?)", re.ASCII)
"""Axis, and millimeters or percent."""


class Plane(NamedTuple):
    """Plane perpendicular to an axis.

    axis:       0, 1 or 2
    offset:     position along the axis
    is_percent: whether the offset is in percent of the extent of the scene instead of millimeters
    """

    axis: int
    offset: float
    is_percent: bool


class CutPlaneOptions(Struct, frozen=True, kw_only=True):
    """Options of `cut-plane`: where to cut, and what to keep."""

    cut_plane: (
        Annotated[
            str,
            Meta(
                title="Cut at planes",
                description="Cut the whole scene at one or several planes: an axis with a position in millimeters, or "
                "in percent of the size, such as z=40 or z=50%,x=0. Each piece is closed, keeps its place and becomes "
                "a part.",
                max_length=200,
                examples=["z=50%"],
            ),
        ]
        | None
    ) = None

    cut_plane_keep: Annotated[
        Literal["both", "low", "high"],
        Meta(
            title="Keep after the cut",
            description="Pieces to keep: both sides, only those below all planes, or only those above them.",
        ),
    ] = "both"

    def check(self) -> None:
        """Check that there are planes, and their form. Raises InvalidOption."""
        if self.cut_plane is None:
            raise InvalidOption(
                "option '{cut_plane_keep}' needs '{cut_plane}'", options=("cut_plane_keep", "cut_plane")
            )
        self.planes()

    def planes(self) -> tuple[Plane, ...]:
        """Return the planes. Raises InvalidOption."""
        texts = (self.cut_plane or "").replace(" ", "").split(",")
        matches = [match for text in texts if (match := _PLANE.fullmatch(text))]
        planes = tuple(Plane("xyz".index(match[1]), float(match[2]), bool(match[3])) for match in matches)
        is_inside = all(not plane.is_percent or 0 < plane.offset < 100 for plane in planes)
        if len(planes) < len(texts) or len(planes) > MAX_PLANES or not is_inside:
            raise InvalidOption(
                f"option '{{cut_plane}}' must be 1 to {MAX_PLANES} planes, such as z=40 or z=50%,x=0, got "
                f"{quote(self.cut_plane)}",
                options=("cut_plane",),
            )
        return planes


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `cut-plane`."""
    return [
        Operation(
            id="cut-plane",
            label="Cut at planes",
            stage=Stage.DIVIDE,
            options=CutPlaneOptions,
            run="meshhub.builtin_plugins.cut_plane.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            figures={
                "parts_cut": "cut {} part|cut {} parts",
                "parts_after": "parts {parts_before} → {}",
            },
        )
    ]
