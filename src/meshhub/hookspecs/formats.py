"""Hooks that add file formats."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.hookspecs.marker import hookspec
from meshhub.model.capabilities import Reader, Writer


@hookspec
def meshhub_readers() -> Iterable[Reader]:  # type: ignore[empty-body]
    """Declare readers. Called once, when a registry is built."""


@hookspec
def meshhub_writers() -> Iterable[Writer]:  # type: ignore[empty-body]
    """Declare writers. Called once, when a registry is built."""
