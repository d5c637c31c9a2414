"""Operation `cut-plane`: cut the scene at planes, and close the pieces."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage
from meshhub.toolkit.cut_planes import PlanePosition, parse_planes

MAX_PLANES = 8
"""Maximum planes of one request; eight cut each part into up to 256 pieces."""


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

    def planes(self) -> tuple[PlanePosition, ...]:
        """Return the positions of the planes. Raises InvalidOption."""
        return parse_planes("cut_plane", self.cut_plane or "", MAX_PLANES)


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `cut-plane`."""
    return [
        Operation(
            id="cut-plane",
            label="Cut at planes",
            stage=Stage.DIVIDE,
            memory=Memory(factor=1.5),
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
