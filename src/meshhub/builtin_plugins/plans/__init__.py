"""Built-in customer plans."""

from __future__ import annotations

from meshhub.hookspecs import hookimpl
from meshhub.model.plans import Limits, Plan

MEBIBYTE = 1024 * 1024
"""Bytes."""

FREE = Plan(
    id="free",
    label="Free",
    limits=Limits(
        max_file_bytes=20 * MEBIBYTE,
        max_batch_files=3,
        requests_per_minute=30,
        conversion_timeout_seconds=90.0,
        max_request_bytes=64 * MEBIBYTE,
        request_timeout_seconds=300.0,
    ),
)

PRO = Plan(
    id="pro",
    label="Pro",
    grants=frozenset({"pro"}),
    limits=Limits(
        max_file_bytes=200 * MEBIBYTE,
        max_batch_files=100,
        requests_per_minute=300,
        conversion_timeout_seconds=90.0,
        max_request_bytes=1024 * MEBIBYTE,
        request_timeout_seconds=900.0,
    ),
)


@hookimpl
def meshhub_plans() -> list[Plan]:
    """Declare the built-in plans."""
    return [FREE, PRO]
