"""Hooks that listen."""

from __future__ import annotations

from meshhub.hookspecs.marker import hookspec
from meshhub.model.report import Report


@hookspec
def meshhub_finished(report: Report) -> None:
    """Hear of every conversion that ended, a failed one too. What it raises is logged, not told."""
