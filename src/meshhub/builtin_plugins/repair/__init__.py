"""Operation `repair`: turn defective meshes into valid ones, and report every action."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class RepairOptions(Struct, frozen=True, kw_only=True):
    """Options of `repair`: whether to repair the scene, and to remove shells that no print needs."""

    repair: Annotated[
        bool,
        Meta(
            title="Repair",
            description="Close holes, remove stray fragments, duplicate and degenerate faces, split non-manifold edges "
            "and vertices, and orient faces outward. A valid model stays unchanged.",
        ),
    ] = False
    repair_solid: Annotated[
        bool,
        Meta(
            title="Repair to solid bodies",
            description="Repair, then remove shells inside of other shells, so that double walls and cavities become "
            "solid, and small shells that float beside the model.",
        ),
    ] = False


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `repair`."""
    return [
        Operation(
            run="meshhub.builtin_plugins.repair.operation:run",
            preload=("pymeshlab",),
            id="repair",
            label="Repair",
            stage=Stage.REPAIR,
            options=RepairOptions,
            repairs_meshes="repair",
        )
    ]
