"""Code that single conversions and batches share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from meshhub.errors import OutputExists
from meshhub.pipeline.resolve import unsupported_target
from meshhub.registry import Registry


class ConvertFlags(Struct, frozen=True, kw_only=True):
    """Flags of `meshhub convert` besides the options of plug-ins; `timeout` in seconds, None for no limit."""

    to: str | None
    output: str | None
    output_dir: Path | None
    force: bool
    jobs: int | None
    timeout: float | None
    quiet: bool
    as_json: bool


def extension_of(registry: Registry, to: str) -> str:
    """Return the extension of a target format. Raises UnsupportedTarget."""
    target_format = registry.declarations.format_of(to)
    if target_format is None:
        raise unsupported_target(to, registry.declarations)
    return target_format.extensions[0]


@contextlib.contextmanager
def closing(registry: Registry) -> Iterator[None]:
    """Close the registry's engine and hooks at the end, also after an exception."""
    try:
        yield
    finally:
        registry.close()


@contextlib.contextmanager
def suggesting_overwrite(flags: str) -> Iterator[None]:
    """Name the flags that overwrite an existing output in the error about it."""
    try:
        yield
    except OutputExists as error:
        raise OutputExists(f"{error.message}; use {flags} to overwrite it") from error
