"""Callers, their plans, and objections to their requests."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of a plan; None lifts a limit."""

    max_file_bytes: int | None = None
    """Size of one model file, and of an archive as it is sent."""

    max_batch_files: int | None = None
    """Files of one batch."""

    requests_per_minute: int | None = None
    """Requests of one caller in a minute."""

    conversion_timeout_seconds: float | None = 90.0
    """Duration of one conversion."""

    max_request_bytes: int | None = None
    """Size of a whole request, and of the unpacked content of an archive."""

    request_timeout_seconds: float | None = None
    """Duration of a whole request."""


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
        """Return whether the plan grants the entitlement that a capability requires; None requires nothing."""
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


LOCAL = Caller(plan=Plan(id="local", label="Local", grants=frozenset({"*"})), id="local", entitled=True)
"""Caller of the command line and of Python: every entitlement, and no limit except the duration of a conversion."""
