"""Flags of `meshhub convert`."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from meshhub.pipeline.existing_files import Overwrite


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

    @property
    def overwrite(self) -> Overwrite:
        """Existing outputs to replace; `--skip-existing` keeps the results that are up to date before this matters."""
        return True if self.force else None if self.skip_existing else False
