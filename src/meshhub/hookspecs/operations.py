"""Hooks that add mesh operations."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.capabilities import Operation
from meshhub.hookspecs.marker import hookspec


@hookspec
def meshhub_operations() -> Iterable[Operation]:  # type: ignore[empty-body]
    """Declare operations. Called once, when a registry is built."""
