"""Operation `rotate`: turn the whole scene about the axes."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class RotateOptions(Struct, frozen=True, kw_only=True):
    """Options of `rotate`: an angle about each axis."""

    rotate_x_deg: (
        Annotated[
            float,
            Meta(
                title="Rotate about X, degrees",
                description="Turn the whole scene about the X axis; positive turns Y toward Z.",
                ge=-360,
                le=360,
                examples=[0],
            ),
        ]
        | None
    ) = None

    rotate_y_deg: (
        Annotated[
            float,
            Meta(
                title="Rotate about Y, degrees",
                description="Turn the whole scene about the Y axis, after X; positive turns Z toward X.",
                ge=-360,
                le=360,
                examples=[0],
            ),
        ]
        | None
    ) = None

    rotate_z_deg: (
        Annotated[
            float,
            Meta(
                title="Rotate about Z, degrees",
                description="Turn the whole scene about the Z axis, after X and Y; positive turns X toward Y.",
                ge=-360,
                le=360,
                examples=[0],
            ),
        ]
        | None
    ) = None


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
