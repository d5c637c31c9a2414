"""What an operator can set: in the environment as `MESHHUB_` and the field's name in capitals, or in a TOML file."""

from __future__ import annotations

import contextlib
import difflib
import ipaddress
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs

from meshhub.errors import InvalidSettings, quote
from meshhub.model.plans import Limits, Plan

PREFIX = "MESHHUB_"

FILE = "MESHHUB_SETTINGS"
"""The variable that names the settings file."""

_TOML_LINE = re.compile(r"\s*(?:\[\s*(?P<table>[^\[\]]+)\]|(?P<key>[^=\s#\[][^=#]*?)\s*=)")

MOST_WORKERS = 1000
"""More is a slip of the pen: every one is a process."""

LEAST_MEMORY = 64 << 20
"""Bytes; with less, libraries cannot be loaded."""

_UNBOUNDED = 1 << 62
"""No limit of a plan is as large; whoever means none says so."""

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
    conversion_memory_bytes: what a conversion may take beyond what its worker began with
    queue:              requests that may wait for a worker before `server_busy`
    connections_per_address: connections open at once from one address, if it is not a trusted proxy's
    temporary_folder:   where uploads and results lie while a request lasts; the system's unless told
    keep_free_bytes:    disk that uploads must leave free
    shutdown_seconds:   how long running requests may go on after the signal to stop
    metrics:            who may read /metrics: callers on this machine ("loopback"), "everyone", or nobody ("off")
    log:                how the service logs: "text", or "json" with an object a line
    drain_bytes, drain_seconds: how much of a refused upload is read, so that the answer reaches the sender
    """

    database_url: str | None = None
    rate_limit_url: str = "memory://"
    trusted_proxies: tuple[str, ...] = ()
    free_plan: str = "free"
    plan_limits: PlanLimits = {}
    workers: int | None = None
    batch_workers: int | None = None
    conversion_memory_bytes: int = 6 << 30
    queue: int = 64
    connections_per_address: int = 256
    temporary_folder: str | None = None
    keep_free_bytes: int = 512 << 20
    shutdown_seconds: float = 30.0
    metrics: Literal["loopback", "everyone", "off"] = "loopback"
    log: Literal["text", "json"] = "text"
    drain_bytes: int = 256 << 20
    drain_seconds: float = 5.0

    def __post_init__(self) -> None:
        """Raises InvalidSettings for what makes no sense."""
        for proxy in self.trusted_proxies:
            try:
                everyone = ipaddress.ip_network(proxy, strict=False).prefixlen == 0
            except ValueError:
                raise InvalidSettings(
                    f"trusted_proxies: {quote(proxy)} is not an address or a network like 10.0.0.0/8"
                ) from None
            if everyone:
                raise InvalidSettings(
                    f"trusted_proxies: {proxy!r} trusts every caller, who could then name any address as its own; "
                    "name your proxies"
                )
        if self.conversion_memory_bytes < LEAST_MEMORY:
            raise InvalidSettings(
                f"conversion_memory_bytes must be at least {LEAST_MEMORY}, got {quote(self.conversion_memory_bytes)}"
            )
        if self.connections_per_address < 1:
            raise InvalidSettings(
                f"connections_per_address must be at least 1, got {quote(self.connections_per_address)}"
            )
        for name in ("workers", "batch_workers"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MOST_WORKERS:
                raise InvalidSettings(f"{name} must be at least 1 and at most {MOST_WORKERS}, got {quote(value)}")
        for name in ("queue", "keep_free_bytes", "shutdown_seconds", "drain_bytes", "drain_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidSettings(f"{name} must be a number, and not negative; got {quote(getattr(self, name))}")
        for plan, limits in self.plan_limits.items():
            for name in limits:
                if name not in Limits.__struct_fields__:
                    known = ", ".join(Limits.__struct_fields__)
                    raise InvalidSettings(
                        f"plan_limits: {quote(plan)} has no limit {quote(name)}; the limits are {known}"
                    )

    @property
    def worker_count(self) -> int:
        """Conversions at once."""
        return self.workers or cores()

    @property
    def most_at_once(self) -> int:
        """Conversions at once when several callers ask: the last one is for a caller who has none running."""
        return self.worker_count + 1

    @property
    def batch_worker_count(self) -> int:
        """Conversions at once for one request: by default a batch leaves half of the workers to others."""
        return min(self.batch_workers or max(1, self.worker_count // 2), self.worker_count)

    def plan(self, declared: Plan) -> Plan:
        """A declared plan with the limits that are set here. Raises InvalidSettings for a limit that cannot be one."""
        changed = self.plan_limits.get(declared.id, {})
        if not changed:
            return declared
        try:
            limits = msgspec.convert({**msgspec.to_builtins(declared.limits), **changed}, Limits)
        except msgspec.ValidationError as error:
            raise InvalidSettings(f"plans.{declared.id}: {error}") from None
        return msgspec.structs.replace(declared, limits=limits)

    def in_force(self, declared: Mapping[str, Plan]) -> dict[str, Plan]:
        """The plans by their ids, with the limits that are set here. Raises InvalidSettings for plans that are none."""
        for name, where in ((self.free_plan, "free_plan"), *((name, f"plans.{name}") for name in self.plan_limits)):
            if name not in declared:
                near = _nearest(name, tuple(declared))
                listed = ", ".join(sorted(declared))
                raise InvalidSettings(f"{where}: {quote(name)} is no plan; there are {listed}{near}")
        return {name: self.plan(plan) for name, plan in declared.items()}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Settings from MESHHUB_… variables, and from the file that MESHHUB_SETTINGS names; see `load`."""
        return load(environment).settings


def cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """The cores that this process may use: a container often has fewer than its machine."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        # "200000 100000": so many microseconds in each so many; "max 100000" without a limit
        used, period = quota.read_text(encoding="ascii").split()
        count = min(count, max(1, math.ceil(int(used) / int(period))))
    return count


class Loaded(Struct, frozen=True):
    """Settings, and where each one that was set comes from; `plan_limits` as "plans.free.max_batch_files"."""

    settings: Settings
    origins: dict[str, str]

    def located(self, error: InvalidSettings) -> InvalidSettings:
        """An error that begins with the name of a setting, with the place that the setting comes from."""
        return _located(error, self.origins)


def load(environment: Mapping[str, str] | None = None) -> Loaded:
    """Settings from the environment, which beats the file that MESHHUB_SETTINGS names, which beats the defaults.

    `MESHHUB_PLAN_FREE_MAX_BATCH_FILES=5` changes a plan's limit, as `max_batch_files = 5` does under
    `[plans.free]` in the file; `none` lifts it. Lists in variables are separated by commas; an empty
    variable is as good as none. Raises InvalidSettings, naming what is wrong and where it is.
    """
    reading = _Reading()
    environment = os.environ if environment is None else environment
    path = environment.get(FILE, "").strip()
    if path:
        reading.file(Path(path))
    reading.variables(environment)
    try:
        return Loaded(Settings(**reading.values, plan_limits=reading.plans), reading.origins)
    except InvalidSettings as error:
        raise _located(error, reading.origins) from None


def _located(error: InvalidSettings, origins: Mapping[str, str]) -> InvalidSettings:
    named = error.message.partition(":")[0].partition(" ")[0]
    where = next((origin for name, origin in origins.items() if name == named or name.startswith(f"{named}.")), None)
    return InvalidSettings(f"{error.message} ({where})") if where else error


class _Reading:
    """Collects values; what comes later wins."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.plans: dict[str, dict[str, int | float | None]] = {}
        self.origins: dict[str, str] = {}

    def file(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
            told = tomllib.loads(text)
        except (OSError, ValueError) as error:
            what = error.strerror if isinstance(error, OSError) else str(error)
            raise InvalidSettings(f"the settings file {path} ({FILE}) cannot be read: {what}") from None

        def where(*names: str) -> str:
            line = _line_of(text, names)
            return f"file {path}" + (f":{line}" if line else "")

        plans = told.pop("plans", {})
        for name, value in told.items():
            if name not in NAMES:
                raise InvalidSettings(f"{quote(name)} is no setting{_nearest(name, (*NAMES, 'plans'))} ({where(name)})")
            self._take(name, value, where(name), strict=True)
        if not isinstance(plans, dict) or not all(isinstance(limits, dict) for limits in plans.values()):
            raise InvalidSettings(f"plans must be tables like [plans.free] ({where('plans')})")
        for plan, limits in plans.items():
            for limit, value in limits.items():
                self._limit(plan, limit, value, f"plans.{plan}.{limit}", where("plans", plan, limit))

    def variables(self, environment: Mapping[str, str]) -> None:
        for variable, text in environment.items():
            text = text.strip()
            if not variable.startswith(PREFIX) or not text:
                continue
            name = variable.removeprefix(PREFIX).lower()
            where = f"environment {variable}"
            if name.startswith("plan_"):
                plan, limit = _plan_and_limit(variable, name.removeprefix("plan_"))
                self._limit(plan, limit, text, variable, where)
            elif name == "trusted_proxies":
                self._take(name, [part for part in re.split(r"[,\s]+", text) if part], where, strict=False)
            elif name in NAMES:
                self._take(name, text, where, strict=False)
            elif near := _nearest(name, NAMES, spelt=lambda one: PREFIX + one.upper()):
                # what resembles nothing may be another program's
                raise InvalidSettings(f"{variable} is no setting{near} (environment)")

    def _take(self, name: str, value: Any, where: str, *, strict: bool) -> None:
        try:
            self.values[name] = msgspec.convert(value, _TYPES[name], strict=strict)
        except msgspec.ValidationError as error:
            # the value may hold a password, and this message never holds the value
            raise InvalidSettings(f"{name} cannot be used: {error} ({where})") from None
        self.origins[name] = where

    def _limit(self, plan: str, limit: str, value: Any, shown: str, where: str) -> None:
        if limit not in LIMITS:
            raise InvalidSettings(f"{shown} names no limit{_nearest(limit, LIMITS)} ({where})")
        self.plans.setdefault(plan, {})[limit] = _bound(value, shown, where)
        self.origins[f"plans.{plan}.{limit}"] = where


def _line_of(text: str, names: tuple[str, ...]) -> int | None:
    """The line of a TOML file that sets what these names lead to; None when it is written in some unusual way."""
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        said = _TOML_LINE.match(line)
        if said is None:
            continue
        words = [word.strip().strip("\"'") for word in (said["table"] or said["key"]).split(".")]
        if said["table"]:
            table, words = words, []
        # a table of its own, or whatever lies in it, tells where the table is
        if (*table, *words)[: len(names)] == names:
            return number
    return _line_of(text, names[:-1]) if len(names) > 1 else None


def _plan_and_limit(variable: str, rest: str) -> tuple[str, str]:
    for limit in LIMITS:
        if rest.endswith("_" + limit):
            return rest.removesuffix("_" + limit).replace("_", "-"), limit
    plan, _, limit = rest.partition("_")
    near = _nearest(limit, LIMITS, spelt=lambda one: f"{PREFIX}PLAN_{plan.upper()}_{one.upper()}")
    raise InvalidSettings(f"{variable} names no limit{near}; the limits are {', '.join(LIMITS)}")


def _bound(value: Any, shown: str, where: str) -> int | float | None:
    if isinstance(value, str):
        if value.strip().lower() == "none":
            return None
        with contextlib.suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _UNBOUNDED:
        raise InvalidSettings(f"{shown} must be a number above 0, or none; got {quote(str(value))} ({where})")
    return int(value) if float(value).is_integer() else value


def _nearest(name: str, names: Sequence[str], *, spelt: Callable[[str], str] = str) -> str:
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.75)
    return f"; did you mean {spelt(near[0])}?" if near else ""


NAMES = tuple(name for name in Settings.__struct_fields__ if name != "plan_limits")
"""The settings that stand for themselves; limits of plans are told by plan."""

LIMITS = Limits.__struct_fields__

_TYPES = {field.name: field.type for field in structs.fields(Settings)}
