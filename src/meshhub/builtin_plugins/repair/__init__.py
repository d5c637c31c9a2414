"""The operation `repair`: a closed, manifold, outward surface from a defective one, and an account of what was done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.capabilities import Operation, Stage
from meshhub.hookspecs import hookimpl


class RepairOptions(Struct, frozen=True, kw_only=True):
    """What `repair` takes."""

    repair: Annotated[
        bool,
        Meta(
            title="Repair",
            description="Close holes, remove fragments, doubled and degenerate faces, split what is not manifold, "
            "and turn faces outward. A sound model stays as it is.",
        ),
    ] = False


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation."""
    return [
        Operation(
            run="meshhub.builtin_plugins.repair.repair:run",
            id="repair",
            label="Repair",
            stage=Stage.REPAIR,
            options=RepairOptions,
        )
    ]
