"""What an operator can set, from the environment: `MESHHUB_` and the field's name in capitals."""

from __future__ import annotations

import ipaddress
import math
import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from meshhub.plans import Limits, Plan

PREFIX = "MESHHUB_"

PlanLimits = Mapping[str, Mapping[str, int | float | None]]


class Settings(Struct, frozen=True, kw_only=True):
    """Settings of the service.

    database_url:       where keys are kept, as SQLAlchemy's URL; a SQLite file in the user's data folder unless told
    rate_limit_url:     where requests are counted: memory://, or redis://host:port for several servers
    trusted_proxies:    addresses and networks whose X-Forwarded-For is believed
    free_plan:          the plan of callers without a key
    plan_limits:        limits that differ from what a plan declares: {"free": {"max_batch_files": 5}}
    workers:            conversions at once; the cores unless told
    batch_workers:      conversions at once for one request; half of `workers` unless told
    queue:              requests that may wait for a worker before `server_busy`
    temporary_folder:   where uploads and results lie while a request lasts; the system's unless told
    keep_free_bytes:    disk that uploads must leave free
    shutdown_seconds:   how long running requests may go on after the signal to stop
    drain_bytes, drain_seconds: how much of a refused upload is read, so that the answer reaches the sender
    """

    database_url: str | None = None
    rate_limit_url: str = "memory://"
    trusted_proxies: tuple[str, ...] = ()
    free_plan: str = "free"
    plan_limits: PlanLimits = {}
    workers: int | None = None
    batch_workers: int | None = None
    queue: int = 64
    temporary_folder: str | None = None
    keep_free_bytes: int = 512 << 20
    shutdown_seconds: float = 30.0
    drain_bytes: int = 64 << 20
    drain_seconds: float = 5.0

    def __post_init__(self) -> None:
        """Raises ValueError for what makes no sense."""
        for proxy in self.trusted_proxies:
            try:
                ipaddress.ip_network(proxy, strict=False)
            except ValueError:
                raise ValueError(f"trusted_proxies: {proxy!r} is not an address or a network like 10.0.0.0/8") from None
        for name in ("workers", "batch_workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        for name in ("queue", "keep_free_bytes", "shutdown_seconds", "drain_bytes", "drain_seconds"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")
        for plan, limits in self.plan_limits.items():
            for name in limits:
                if name not in Limits.__struct_fields__:
                    known = ", ".join(Limits.__struct_fields__)
                    raise ValueError(f"plan_limits: {plan!r} has no limit {name!r}; the limits are {known}")

    @property
    def worker_count(self) -> int:
        """Conversions at once."""
        return self.workers or os.cpu_count() or 1

    @property
    def batch_worker_count(self) -> int:
        """Conversions at once for one request: by default a batch leaves half of the workers to others."""
        return min(self.batch_workers or max(1, self.worker_count // 2), self.worker_count)

    def plan(self, declared: Plan) -> Plan:
        """A declared plan with the limits that are set here. Raises ValueError for a limit that cannot be one."""
        changed = self.plan_limits.get(declared.id, {})
        if not changed:
            return declared
        try:
            limits = msgspec.convert({**msgspec.to_builtins(declared.limits), **changed}, Limits)
        except msgspec.ValidationError as error:
            raise ValueError(f"plan_limits: {declared.id!r}: {error}") from None
        return msgspec.structs.replace(declared, limits=limits)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Settings from MESHHUB_… variables; an empty one is as good as none.

        `MESHHUB_PLAN_FREE_MAX_BATCH_FILES=5` changes a plan's limit, `none` lifts it. Lists are
        separated by commas. Raises ValueError, naming the variable.
        """
        environment = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        plans: dict[str, dict[str, int | float | None]] = {}
        for name, text in environment.items():
            if not name.startswith(PREFIX) or not text.strip():
                continue
            field = name.removeprefix(PREFIX).lower()
            if field.startswith("plan_"):
                plan, limit, value = _plan_limit(name, field.removeprefix("plan_"), text.strip())
                plans.setdefault(plan, {})[limit] = value
            elif field == "trusted_proxies":
                values[field] = tuple(part for part in re.split(r"[,\s]+", text) if part)
            elif field in cls.__struct_fields__:
                values[field] = text.strip()
        try:
            return msgspec.convert({**values, "plan_limits": plans}, cls, strict=False)
        except msgspec.ValidationError as error:
            raise ValueError(f"a {PREFIX}… variable cannot be used: {error}") from None


def _plan_limit(variable: str, rest: str, text: str) -> tuple[str, str, int | float | None]:
    for limit in Limits.__struct_fields__:
        if rest.endswith("_" + limit):
            plan = rest.removesuffix("_" + limit).replace("_", "-")
            if text.lower() == "none":
                return plan, limit, None
            try:
                value = float(text)
            except ValueError:
                value = -1.0
            if not 0 < value < math.inf:
                raise ValueError(f"{variable} must be a number above 0, or none; got {text[:40]!r}")
            return plan, limit, int(value) if value.is_integer() else value
    raise ValueError(f"{variable} names no limit; the limits are {', '.join(Limits.__struct_fields__)}")
