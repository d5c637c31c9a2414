"""Operation `mirror`: make the mirror image, such as a left hand from a right hand."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class MirrorOptions(Struct, frozen=True, kw_only=True):
    """Options of `mirror`: the axis that is reversed."""

    mirror: (
        Annotated[
            Literal["x", "y", "z"],
            Meta(
                title="Mirror",
                description="Make the mirror image of the whole scene along this axis, in place.",
                examples=["x"],
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `mirror`."""
    return [
        Operation(
            id="mirror",
            label="Mirror",
            stage=Stage.TURN,
            options=MirrorOptions,
            run="meshhub.builtin_plugins.mirror.operation:run",
            figures={
                "mirrored_along": "mirrored along {}",
            },
        )
    ]
