"""Who is asking, what their plan grants, and what may be said against a request."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """The bounds of a plan; None is no bound."""

    max_file_bytes: int | None = None
    max_batch_files: int | None = None
    requests_per_minute: int | None = None
    conversion_timeout_seconds: float | None = 90.0
    max_request_bytes: int | None = None
    request_timeout_seconds: float | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """A customer's plan. `grants` are entitlements; "*" grants them all."""

    id: str
    label: str
    grants: frozenset[str] = frozenset()
    limits: Limits = Limits()

    def allows(self, requires: str | None) -> bool:
        """Whether this plan grants the entitlement that a capability requires."""
        return requires is None or requires in self.grants or "*" in self.grants


class Caller(Struct, frozen=True, kw_only=True):
    """Whoever asks: a plan, and a name for logs and limits that is no secret.

    `entitled` says that `plan` holds what plug-ins grant already; `Registry.entitled` makes it so.
    """

    plan: Plan
    id: str = ""
    entitled: bool = False


class Objection(Struct, frozen=True, kw_only=True):
    """Why a review refuses a request; `remedy` says what to do about it."""

    code: str
    message: str
    remedy: str = ""


LOCAL = Caller(plan=Plan(id="local", label="Local", grants=frozenset({"*"})), id="local", entitled=True)
"""The command line and Python: every entitlement, and a deadline as the only limit."""
