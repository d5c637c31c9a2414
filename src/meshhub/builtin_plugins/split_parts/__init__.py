"""Operation `split-parts`: make a part of each body."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Operation, Stage


class SplitPartsOptions(Struct, frozen=True, kw_only=True):
    """Options of `split-parts`: whether to split."""

    split_parts: Annotated[
        bool,
        Meta(
            title="Split into parts",
            description="Make a part of each body, a shell with its cavities; the parts keep their places.",
        ),
    ] = False


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    """Declare the operation `split-parts`."""
    return [
        Operation(
            id="split-parts",
            label="Split into parts",
            stage=Stage.DIVIDE,
            options=SplitPartsOptions,
            run="meshhub.builtin_plugins.split_parts.operation:run",
            figures={
                "parts_after": "parts {parts_before} → {}",
            },
        )
    ]
