"""Operation `rotate`: turn the whole scene about the axes."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


def _about(axis: str, description: str) -> Meta:
    return Meta(
        title=f"Rotate about {axis}, degrees",
        description=f"Turn the whole scene about the {axis} axis{description}.",
        ge=-360,
        le=360,
        examples=[0],
    )


class RotateOptions(Struct, frozen=True, kw_only=True):
    """Options of `rotate`: an angle about each axis."""

    rotate_x_deg: Annotated[float, _about("X", "; positive turns Y toward Z")] | None = None

    rotate_y_deg: Annotated[float, _about("Y", ", after X; positive turns Z toward X")] | None = None

    rotate_z_deg: Annotated[float, _about("Z", ", after X and Y; positive turns X toward Y")] | None = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `rotate`."""
    return [
        Operation(
            id="rotate",
            label="Rotate",
            stage=Stage.TURN,
            options=RotateOptions,
            run="meshhub.builtin_plugins.rotate.operation:run",
            figures={
                "rotated_deg": "turned by {}° about X, Y, Z",
            },
        )
    ]
