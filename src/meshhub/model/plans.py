"""Callers, their plans, and objections to their requests."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from meshhub.model.capabilities import Count

Seconds = Annotated[float, Meta(title="a number of at least 0", ge=0)]
"""Duration in seconds."""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of a plan; None lifts a limit."""

    max_file_bytes: Count | None = None
    """Size of one model file, and of an archive before it is unpacked."""

    max_batch_files: Count | None = None
    """Files of one batch."""

    requests_per_minute: Count | None = None
    """Requests of one caller in a minute."""

    conversion_timeout_seconds: Seconds | None = 90.0
    """Duration of one conversion."""

    max_request_bytes: Count | None = None
    """Size of a whole request, and of the unpacked content of an archive; None: `max_file_bytes` for each of
    `max_batch_files`."""

    request_timeout_seconds: Seconds | None = None
    """Duration of a whole request."""

    max_unfinished_jobs: Count | None = None
    """Maximum unfinished jobs of one caller."""

    job_timeout_seconds: Seconds | None = 900.0
    """Duration of one job, after its wait in the queue."""

    job_retention_seconds: Seconds | None = 86_400.0
    """Time for which the result of a job is kept; None: until the caller deletes it."""

    job_requests_per_minute: Count | None = None
    """Requests of one caller in a minute for states and results of its jobs, in addition to `requests_per_minute`."""

    job_weight: Count | None = None
    """Share of the workers that the jobs of one caller get, relative to other callers; None: 1."""

    job_listing: bool | None = None
    """False: a caller cannot list its jobs. It always needs a key for that."""

    job_webhooks: bool | None = None
    """False: a caller cannot have webhooks sent. It always needs a key for that."""

    @property
    def request_bytes(self) -> int | None:
        """The size of a whole request: `max_request_bytes`, or the size of as many files as a batch may have."""
        if self.max_request_bytes is not None or self.max_file_bytes is None or self.max_batch_files is None:
            return self.max_request_bytes
        return self.max_file_bytes * self.max_batch_files


class Plan(Struct, frozen=True, kw_only=True):
    """Plan of a customer."""

    id: str
    """Stable id, such as "pro"."""

    label: str
    """Name for people."""

    grants: frozenset[str] = frozenset()
    """Entitlements that the plan grants; "*" grants all."""

    limits: Limits = Limits()
    """Limits of the plan."""

    def allows(self, requires: str | None) -> bool:
        """Return whether the plan grants the entitlement that a capability requires; True if it requires none."""
        return requires is None or requires in self.grants or "*" in self.grants


class Caller(Struct, frozen=True, kw_only=True):
    """Sender of a request."""

    plan: Plan
    """Plan of the caller."""

    id: str = ""
    """Public id for logs and rate limits."""

    entitled: bool = False
    """Whether `plan` includes the entitlements that plug-ins grant; set by `Registry.entitled`."""


class Objection(Struct, frozen=True, kw_only=True):
    """Reason for which a review plug-in rejects a request."""

    code: str
    """Stable code for programs; the `error_code` of the response."""

    message: str
    """Reason, for people."""

    remedy: str = ""
    """Action of the caller that resolves the objection."""


class Rule(Struct, frozen=True, kw_only=True):
    """Target formats and operations that some or all plans must not use.

    Requests for them are rejected with the objection. Unlike a review, a rule is known before any request, so listings
    can show the formats and operations that it forbids.
    """

    objection: Objection
    """Reason, for the caller."""

    formats: frozenset[str] = frozenset()
    """Ids of the target formats that are rejected."""

    operations: frozenset[str] = frozenset()
    """Ids of the operations that are rejected."""

    plans: frozenset[str] = frozenset()
    """Ids of the plans to which the rule applies; empty: to all callers."""

    def concerns(self, plan: Plan) -> bool:
        """Return whether the rule applies to the callers of a plan."""
        return not self.plans or plan.id in self.plans


LOCAL = Caller(plan=Plan(id="local", label="Local", grants=frozenset({"*"})), id="local", entitled=True)
"""Caller of the command line and of Python: it has every entitlement, and no limit except the duration of a conversion.
"""
