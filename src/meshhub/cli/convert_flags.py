"""Flags of `meshhub convert`."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class ConvertFlags(Struct, frozen=True, kw_only=True):
    """Flags of `meshhub convert` besides the options of plug-ins; `timeout` in seconds, None for no limit."""

    to: str | None
    output: str | None
    output_dir: Path | None
    combine: bool
    force: bool
    jobs: int | None
    timeout: float | None
    name: str | None
    dry_run: bool
    skip_existing: bool
    watch: Path | None
    server: str | None
    quiet: bool
    as_json: bool
