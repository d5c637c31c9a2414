"""Callers, their plans, and objections to their requests."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of a plan; None lifts a limit.

    Attributes:
        max_file_bytes: Size of one model file, and of an archive as it is sent.
        max_batch_files: Files of one batch.
        requests_per_minute: Requests of one caller in a minute.
        conversion_timeout_seconds: Duration of one conversion.
        max_request_bytes: Size of a whole request, and of the unpacked content of an archive.
        request_timeout_seconds: Duration of a whole request.
    """

    max_file_bytes: int | None = None
    max_batch_files: int | None = None
    requests_per_minute: int | None = None
    conversion_timeout_seconds: float | None = 90.0
    max_request_bytes: int | None = None
    request_timeout_seconds: float | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """Plan of a customer.

    Attributes:
        id: Stable id, such as "pro".
        label: Name for people.
        grants: Entitlements that the plan grants; "*" grants all.
        limits: Limits of the plan.
    """

    id: str
    label: str
    grants: frozenset[str] = frozenset()
    limits: Limits = Limits()

    def allows(self, requires: str | None) -> bool:
        """Return whether the plan grants the entitlement that a capability requires; None requires nothing."""
        return requires is None or requires in self.grants or "*" in self.grants


class Caller(Struct, frozen=True, kw_only=True):
    """Sender of a request.

    Attributes:
        plan: Plan of the caller.
        id: Public id for logs and rate limits.
        entitled: Whether `plan` includes the entitlements that plug-ins grant; set by `Registry.entitled`.
    """

    plan: Plan
    id: str = ""
    entitled: bool = False


class Objection(Struct, frozen=True, kw_only=True):
    """Reason for which a review plug-in rejects a request.

    Attributes:
        code: Stable code for programs; the `error_code` of the response.
        message: Reason, for people.
        remedy: What the caller can do about it.
    """

    code: str
    message: str
    remedy: str = ""


LOCAL = Caller(plan=Plan(id="local", label="Local", grants=frozenset({"*"})), id="local", entitled=True)
"""Caller of the command line and of Python: every entitlement, and no limit except the duration of a conversion."""
