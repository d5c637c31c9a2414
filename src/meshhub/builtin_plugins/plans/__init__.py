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
        max_unfinished_jobs=5,
        job_timeout_seconds=90.0,
        job_retention_seconds=3600.0,
        job_requests_per_minute=300,
        job_weight=1,
        job_listing=False,
        job_webhooks=False,
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
        max_unfinished_jobs=1000,
        job_timeout_seconds=900.0,
        job_retention_seconds=86_400.0,
        job_requests_per_minute=3000,
        job_weight=4,
    ),
)


@hookimpl
def meshhub_plans() -> list[Plan]:
    """Declare the built-in plans."""
    return [FREE, PRO]
