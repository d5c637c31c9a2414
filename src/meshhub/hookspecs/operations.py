"""Hooks that add mesh operations."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.hookspecs.marker import hookspec
from meshhub.model.capabilities import Operation


@hookspec
def meshhub_operations() -> Iterable[Operation]:  # type: ignore[empty-body]
    """Declare operations. Called once, when a registry is built."""
