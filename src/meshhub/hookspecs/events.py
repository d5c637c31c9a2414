"""Hooks that report events."""

from __future__ import annotations

from meshhub.hookspecs.marker import hookspec
from meshhub.model.report import Report


@hookspec
def meshhub_finished(report: Report) -> None:
    """Receive the report of every conversion that ended, also of failed ones. An exception is logged and ignored."""
