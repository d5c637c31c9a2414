"""The two plans that come with meshhub: Free for callers without a key, Pro for those with one."""

from __future__ import annotations

from meshhub.hookspecs import hookimpl
from meshhub.model.plans import Limits, Plan

MEGABYTE = 1024 * 1024

FREE = Plan(
    id="free",
    label="Free",
    limits=Limits(
        max_file_bytes=20 * MEGABYTE,
        max_batch_files=3,
        requests_per_minute=30,
        conversion_timeout_seconds=90.0,
        max_request_bytes=64 * MEGABYTE,
        request_timeout_seconds=300.0,
    ),
)

PRO = Plan(
    id="pro",
    label="Pro",
    grants=frozenset({"pro"}),
    limits=Limits(
        max_file_bytes=200 * MEGABYTE,
        max_batch_files=100,
        requests_per_minute=300,
        conversion_timeout_seconds=90.0,
        max_request_bytes=1024 * MEGABYTE,
        request_timeout_seconds=900.0,
    ),
)


@hookimpl
def meshhub_plans() -> list[Plan]:
    """Free and Pro."""
    return [FREE, PRO]
