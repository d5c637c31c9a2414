"""Options of a check: which of the declared checks run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from meshhub.errors import InvalidOption, quote


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


def choose_checks(options: VerdictOptions, known: Iterable[str]) -> frozenset[str]:
    """Return the ids of the checks that run.

    Raises:
        InvalidOption: An id is unknown, or no check is left.
    """
    ids = frozenset(known)
    chosen = _parse("checks", options.checks, ids) if options.checks is not None else ids
    skipped = _parse("skip_checks", options.skip_checks, ids) if options.skip_checks is not None else frozenset()
    if ids and not chosen - skipped:
        raise InvalidOption("no check is left; name some in '{checks}'", options=("checks", "skip_checks"))
    return chosen - skipped


def _parse(name: str, text: str, known: frozenset[str]) -> frozenset[str]:
    ids = frozenset(item.strip().lower() for item in text.split(",") if item.strip())
    unknown = sorted(ids - known)
    if unknown:
        raise InvalidOption(
            f"option '{{{name}}}' names the unknown check {quote(unknown[0])}; known are {', '.join(sorted(known))}",
            options=(name,),
        )
    return ids
