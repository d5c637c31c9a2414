"""Operation `orient`: turn the scene so that it prints with little support."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Memory, Operation, Stage


class OrientOptions(Struct, frozen=True, kw_only=True):
    """Options of `orient`: whether to turn the scene, and what counts."""

    orient: Annotated[
        bool,
        Meta(
            title="Orient for printing",
            description="Turn the whole scene so that it stands safely and needs little support; a pose that is as "
            "good stays.",
            extra={"everyday": True},
        ),
    ] = False

    orient_angle_deg: Annotated[
        float,
        Meta(
            title="Steepest overhang without support, degrees",
            description="Surfaces need support where they overhang at less than this angle from the bed.",
            ge=5,
            le=85,
        ),
    ] = 45.0

    orient_support_weight: Annotated[
        float,
        Meta(
            title="Weight of support",
            description="How much the filament of the support counts, as a share of the volume of the hull.",
            ge=0,
            le=100,
        ),
    ] = 1.0

    orient_contact_weight: Annotated[
        float,
        Meta(
            title="Weight of contact",
            description="How much it counts that little of the model touches the bed; by default, "
            "it decides between equal support.",
            ge=0,
            le=100,
        ),
    ] = 0.002

    orient_height_weight: Annotated[
        float,
        Meta(
            title="Weight of height",
            description="How much the height counts, as a share of the longest diagonal; by default, "
            "it decides between equal support.",
            ge=0,
            le=100,
        ),
    ] = 0.002


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `orient`."""
    return [
        Operation(
            id="orient",
            label="Orient for printing",
            stage=Stage.TURN,
            memory=Memory(factor=2.0),
            options=OrientOptions,
            run="meshhub.builtin_plugins.orient.operation:run",
            needs=("fast_simplification", "scipy"),
            install="meshhub",
            figures={
                "support_mm3": "support {support_before_mm3} → {} mm³",
                "contact_mm2": "stands on {} mm²",
            },
        )
    ]
