"""Hooks that add file formats."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.capabilities import Reader, Writer
from meshhub.hookspecs.marker import hookspec


@hookspec
def meshhub_readers() -> Iterable[Reader]:  # type: ignore[empty-body]
    """Declare readers. Called once, when a registry is built."""


@hookspec
def meshhub_writers() -> Iterable[Writer]:  # type: ignore[empty-body]
    """Declare writers. Called once, when a registry is built."""
