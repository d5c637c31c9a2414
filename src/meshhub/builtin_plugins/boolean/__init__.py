"""Operation `boolean`: combine the solids of all parts to one."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class BooleanOptions(Struct, frozen=True, kw_only=True):
    """Options of `boolean`: how to combine."""

    boolean: (
        Annotated[
            Literal["union", "difference", "intersection"],
            Meta(
                title="Combine parts",
                description="Make one solid of all parts: union keeps the volume of any part, difference that of the "
                "first part without all others, intersection that of all parts at once. Needs closed meshes.",
                examples=["union"],
            ),
        ]
        | None
    ) = None


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `boolean`."""
    return [
        Operation(
            id="boolean",
            label="Combine parts",
            stage=Stage.SHAPE,
            options=BooleanOptions,
            run="meshhub.builtin_plugins.boolean.operation:run",
            needs=("manifold3d", "scipy"),
            install="meshhub",
            drops=frozenset({"names", "hierarchy", "instances"}),
            figures={
                "volume_after_mm3": "volume {volume_before_mm3} → {} mm³",
            },
        )
    ]
