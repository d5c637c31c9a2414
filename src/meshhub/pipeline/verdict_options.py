"""Options of a check: which of the declared checks run."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class VerdictOptions(Struct, frozen=True, kw_only=True):
    """Which checks run."""

    checks: (
        Annotated[
            str,
            Meta(
                title="Checks",
                description="Ids of checks, separated by commas; only these run. Default: all.",
                examples=["walls,overhangs"],
            ),
        ]
        | None
    ) = None

    skip_checks: (
        Annotated[
            str,
            Meta(
                title="Checks to leave out",
                description="Ids of checks, separated by commas; these do not run.",
                examples=["overhangs,cups"],
            ),
        ]
        | None
    ) = None
