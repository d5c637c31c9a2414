"""Settings of the service, from environment variables and from a TOML file.

The variable of a setting is `MESHHUB_` and the name of the field in capitals.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs

from meshhub.errors import InvalidSettings, quote
from meshhub.model.plans import Limits, Plan
from meshhub.service.machine import cores, memory
from meshhub.service.origins import is_origin
from meshhub.service.setting_texts import add_origin, parse_limit, parse_switch, suggest
from meshhub.service.sharing import SlotLimits
from meshhub.toolkit.toml_lines import find_line

PREFIX = "MESHHUB_"
"""Prefix of the variables."""

FILE = "MESHHUB_SETTINGS"
"""Variable that names the settings file."""

_HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+", re.ASCII)

_PATTERNS = {
    "root_path": (re.compile(r"(/[A-Za-z0-9._~-]+)*", re.ASCII), "a path like /meshhub, without / at the end"),
    "base_url": (re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?", re.ASCII), "an address like https://api.example"),
    "jobs_storage_url": (
        re.compile(r"s3://[a-z0-9.-]+(/[A-Za-z0-9._/-]*)?", re.ASCII),
        "an address like s3://bucket/prefix",
    ),
    "worker_address": (
        re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-f:]+\]):\d{1,5}", re.ASCII),
        "an address like 0.0.0.0:9000",
    ),
}
"""Patterns of settings that are text, and descriptions of valid values."""

MAX_WORKERS_COUNT = 1000
"""Maximum worker processes; more is certainly a typing error."""

MAX_CONVERSIONS_PER_WORKER_COUNT = 1000
"""Maximum conversions of one process; with this many, its start is less than a hundredth of their cost."""

MIN_MEMORY_BYTES = 64 << 20
"""Minimum bytes of memory of a conversion; with less, a worker cannot load its libraries."""

_MIN_DEFAULT_MEMORY_BYTES, _MAX_DEFAULT_MEMORY_BYTES = 512 << 20, 6 << 30
"""Bytes of memory of a conversion by default: enough for a mesh of a million triangles, and for all real files."""

_CONVERSION_MEMORY_RATIO = 0.75
"""Share of the memory that conversions may use together by default; the rest is for the service and the system."""

PlanLimits = Mapping[str, Mapping[str, int | float | None]]
"""Limits by plan and by name; None lifts a limit."""


class Settings(Struct, frozen=True, kw_only=True):
    """Settings of the service.

    Raises:
        InvalidSettings: A value is out of bounds.
    """

    database_url: str | None = None
    """SQLAlchemy URL of the database of API keys; default: a SQLite file in the user's data folder."""

    rate_limit_url: str = "memory://"
    """Store of the rate limits: memory://, or redis://host:port to share it between servers."""

    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose X-Forwarded-For header is trusted; "unix" for callers on a Unix socket."""

    disabled_plugins: tuple[str, ...] = ()
    """Names of plug-ins that are not loaded, in addition to those of `meshhub plugins disable`."""

    free_plan: str = "free"
    """Plan of callers without a key."""

    plan_limits: PlanLimits = {}
    """Limits that replace those of a plan: {"free": {"max_batch_files": 5}}."""

    rates_file: str | None = None
    """Rate card (TOML) by which /quote computes prices; default: none, so quotes have no price."""

    inventories_folder: str | None = None
    """Folder of the lists that `@inventory` stands for, such as KEY_ID.csv and default.csv; default: none."""

    workers: int | None = None
    """Parallel conversions; default: number of CPU cores."""

    batch_workers: int | None = None
    """Parallel conversions of one request; default: half of `workers`."""

    conversions_per_worker: int = 50
    """Small conversions of one caller that a process may run, one after the other; 1: a process for each."""

    conversion_memory_bytes: int | None = None
    """Memory of a conversion beyond that of an idle worker; default: a share of the machine's, up to 6 GiB."""

    worker_sharing: Literal["caller", "all"] = "caller"
    """Whose small conversions a process may run: those of one caller ("caller"), or of everyone ("all")."""

    queue: int = 64
    """Requests that may wait for a worker; more get `server_busy`."""

    connections_per_address: int = 256
    """Open connections from one address that is not a trusted proxy."""

    temporary_folder: str | None = None
    """Folder of uploads and results during a request; default: that of the system."""

    keep_free_bytes: int = 512 << 20
    """Disk space that uploads must leave free."""

    cache_bytes: int = 0
    """Size of the cache of results, by which a repeated request is answered without a conversion; 0: no cache."""

    cache_seconds: float = 3600.0
    """Age at which results leave the cache; 0: no cache."""

    cache_folder: str | None = None
    """Folder of the cache, only for it, which processes may share; default: in `temporary_folder`, until the end."""

    jobs_folder: str | None = None
    """Folder of jobs: their database, inputs and results; default: `jobs` in the user's data folder."""

    jobs_database_url: str | None = None
    """SQLAlchemy URL of a PostgreSQL database of jobs, for several machines; default: SQLite in `jobs_folder`."""

    jobs_storage_url: str | None = None
    """Address s3://bucket/prefix of an S3-compatible store of inputs and results; default: `jobs_folder`."""

    worker_memory_bytes: int | None = None
    """Memory of all conversions of a service, or all jobs of a worker; default: a share of the machine's."""

    worker_address: str | None = None
    """Address host:port at which a worker serves /health/live, /health/ready and /metrics; default: none."""

    job_queue: int = 10_000
    """Jobs that may wait for a worker; more get `server_busy`."""

    webhook_hosts: tuple[str, ...] = ()
    """Hosts, addresses and networks to which webhooks are sent; default: all public addresses, with https only."""

    shutdown_seconds: float = 30.0
    """Time that running requests have after the signal to stop."""

    metrics: Literal["loopback", "everyone", "off"] = "loopback"
    """Who can read /metrics: callers on this machine ("loopback"), "everyone", or no one ("off")."""

    log: Literal["text", "json"] = "text"
    """Format of the log: "text", or "json" with one object per line."""

    page: Literal["on", "off"] = "on"
    """Whether `/` serves the page for people."""

    frame_ancestors: tuple[str, ...] = ()
    """Origins whose pages may embed the page, such as https://shop.example; default: none."""

    model_origins: tuple[str, ...] = ()
    """Origins from which the page opens models that links name, such as https://models.example; default: none."""

    allowed_hosts: tuple[str, ...] = ()
    """Names that the header Host may have; default: any; on loopback, names of this machine and names without a dot."""

    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the service, such as https://shop.example, or * for all, then without API keys."""

    root_path: str = ""
    """Path below which a proxy serves the service, such as /meshhub."""

    base_url: str | None = None
    """Public address of the service in the OpenAPI document; default: that of the document."""

    drain_bytes: int = 256 << 20
    """Bytes of a rejected upload that are read, so that the response reaches the sender."""

    drain_seconds: float = 5.0
    """Time for the same."""

    def __post_init__(self) -> None:
        """Check the values."""
        self._check_proxies()
        self._check_addresses()
        self._check_numbers()
        for plan, limits in self.plan_limits.items():
            for name in limits:
                if name not in LIMITS:
                    raise InvalidSettings(
                        f"plan_limits: unknown limit {quote(name)} of {quote(plan)}; known are {', '.join(LIMITS)}"
                    )

    def _check_proxies(self) -> None:
        for proxy in self.trusted_proxies:
            if proxy == "unix":
                continue
            try:
                network = ipaddress.ip_network(proxy, strict=False)
            except ValueError:
                raise InvalidSettings(
                    f"trusted_proxies: {quote(proxy)} is not an address or a network like 10.0.0.0/8"
                ) from None
            if network.prefixlen == 0:
                raise InvalidSettings(
                    f"trusted_proxies: {proxy!r} trusts every caller, who could then use any address as its own; "
                    "list your proxies"
                )

    def _check_addresses(self) -> None:
        for name in ("cors_origins", "frame_ancestors", "model_origins"):
            for origin in getattr(self, name):
                if not (is_origin(origin) or (origin == "*" and name == "cors_origins")):
                    raise InvalidSettings(f"{name}: {quote(origin)} is not an origin like https://shop.example")
        if "*" in self.cors_origins and len(self.cors_origins) > 1:
            raise InvalidSettings("cors_origins: * allows every origin, and API keys of none; list origins, or only *")
        for host in self.allowed_hosts:
            if not _HOST.fullmatch(host):
                raise InvalidSettings(
                    f"allowed_hosts: {quote(host)} is not a host name; write it without scheme and port"
                )
        for name, (pattern, description) in _PATTERNS.items():
            value = getattr(self, name)
            if value is not None and not pattern.fullmatch(value):
                raise InvalidSettings(f"{name}: {quote(value)} is not {description}")

    def _check_numbers(self) -> None:
        bounds: dict[str, tuple[float, float]] = {
            "conversion_memory_bytes": (MIN_MEMORY_BYTES, math.inf),
            "worker_memory_bytes": (MIN_MEMORY_BYTES, math.inf),
            "connections_per_address": (1, math.inf),
            "workers": (1, MAX_WORKERS_COUNT),
            "batch_workers": (1, MAX_WORKERS_COUNT),
            "conversions_per_worker": (1, MAX_CONVERSIONS_PER_WORKER_COUNT),
        }
        for name in NAMES:
            value = getattr(self, name)
            minimum, maximum = bounds.get(name, (0, math.inf))
            if isinstance(value, int | float) and not (minimum <= value <= maximum and math.isfinite(value)):
                upper = f" and at most {maximum}" if maximum < math.inf else ""
                raise InvalidSettings(f"{name} must be a number of at least {minimum}{upper}, got {quote(value)}")

    @property
    def is_cluster(self) -> bool:
        """Whether jobs run on the workers of a cluster, and not in the service."""
        return self.jobs_database_url is not None

    @property
    def worker_count(self) -> int:
        """The number of worker processes."""
        return self.workers or cores()

    @property
    def slot_limits(self) -> SlotLimits:
        """How many conversions run in parallel, and for whom."""
        return SlotLimits.of_workers(self.worker_count)

    @property
    def most_at_once(self) -> int:
        """The maximum number of parallel conversions."""
        return self.slot_limits.total

    @property
    def memory_bytes(self) -> int:
        """The memory of a conversion; default: its share of the memory of this machine or container."""
        if self.conversion_memory_bytes is not None:
            return self.conversion_memory_bytes
        total = memory()
        if total is None:
            return _MAX_DEFAULT_MEMORY_BYTES
        share = int(total * _CONVERSION_MEMORY_RATIO) // self.most_at_once
        return max(_MIN_DEFAULT_MEMORY_BYTES, min(_MAX_DEFAULT_MEMORY_BYTES, share))

    @property
    def job_memory_bytes(self) -> int:
        """The memory that the jobs of a worker may need together; default: a share of this machine's or container's."""
        if self.worker_memory_bytes is not None:
            return self.worker_memory_bytes
        total = memory()
        return self.memory_bytes if total is None else int(total * _CONVERSION_MEMORY_RATIO)

    @property
    def batch_worker_count(self) -> int:
        """The number of parallel conversions of one request; default: half of the workers, so that others get some."""
        return min(self.batch_workers or max(1, self.worker_count // 2), self.worker_count)

    def plan(self, declared: Plan) -> Plan:
        """Return a plan with the limits of these settings.

        Raises:
            InvalidSettings: A limit has the wrong type.
        """
        limits = self.plan_limits.get(declared.id, {})
        if not limits:
            return declared
        try:
            merged = msgspec.convert({**msgspec.to_builtins(declared.limits), **limits}, Limits)
        except msgspec.ValidationError as error:
            raise InvalidSettings(f"plans.{declared.id}: {error}") from None
        return structs.replace(declared, limits=merged)

    def in_force(self, declared: Mapping[str, Plan]) -> dict[str, Plan]:
        """Return the plans with the limits of these settings.

        Args:
            declared: Plans by id.
        Raises:
            InvalidSettings: A setting names an unknown plan, or a limit has the wrong type.
        """
        for name, setting in ((self.free_plan, "free_plan"), *((name, f"plans.{name}") for name in self.plan_limits)):
            if name not in declared:
                hint = suggest(name, tuple(declared))
                raise InvalidSettings(
                    f"{setting}: unknown plan {quote(name)}; known are {', '.join(sorted(declared))}{hint}"
                )
        return {name: self.plan(plan) for name, plan in declared.items()}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Return the settings of the environment and of the settings file; see `load`."""
        return load(environment).settings


class Loaded(Struct, frozen=True):
    """Settings and their origins."""

    settings: Settings
    """The settings."""

    origins: dict[str, str]
    """Origin of each setting that is not a default; a limit is named "plans.free.max_batch_files"."""

    def located(self, error: InvalidSettings) -> InvalidSettings:
        """Return an error with the origin of the setting with which its message begins."""
        return add_origin(error, self.origins)


def load(environment: Mapping[str, str] | None = None) -> Loaded:
    """Load the settings. Variables override the file that MESHHUB_SETTINGS names; the file overrides the defaults.

    `MESHHUB_PLAN_FREE_MAX_BATCH_FILES=5` sets a limit of a plan, like `max_batch_files = 5` below `[plans.free]` in
    the file; `none` lifts it. Commas separate the items of a list in a variable. An empty variable is ignored.

    Args:
        environment: Variables; default: those of this process.
    Raises:
        InvalidSettings: A name is unknown, or a value is malformed or out of bounds; the message has the origin.
    """
    reader = _Reader()
    environment = os.environ if environment is None else environment
    path = environment.get(FILE, "").strip()
    if path:
        reader.read_file(Path(path))
    reader.read_variables(environment)
    try:
        return Loaded(Settings(**reader.values, plan_limits=reader.plans), reader.origins)
    except InvalidSettings as error:
        raise add_origin(error, reader.origins) from None


class _Reader:
    """Collector of values; a later source overrides an earlier one."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.plans: dict[str, dict[str, int | float | None]] = {}
        self.origins: dict[str, str] = {}

    def read_file(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
            document = tomllib.loads(text)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise InvalidSettings(f"the settings file {path} ({FILE}) cannot be read: {reason}") from None

        def locate(*names: str) -> str:
            line = find_line(text, names)
            return f"file {path}" + (f":{line}" if line else "")

        plans = document.pop("plans", {})
        for name, value in document.items():
            if name not in NAMES:
                hint = suggest(name, (*NAMES, "plans"))
                raise InvalidSettings(f"unknown setting {quote(name)}{hint} ({locate(name)})")
            self._set_value(name, value, locate(name), strict=True)
        if not isinstance(plans, dict) or not all(isinstance(limits, dict) for limits in plans.values()):
            raise InvalidSettings(f"plans must be tables like [plans.free] ({locate('plans')})")
        for plan, limits in plans.items():
            for limit, value in limits.items():
                self._set_limit(plan, limit, value, f"plans.{plan}.{limit}", locate("plans", plan, limit))

    def read_variables(self, environment: Mapping[str, str]) -> None:
        for variable, untrimmed in environment.items():
            text = untrimmed.strip()
            if not variable.startswith(PREFIX) or not text:
                continue
            name = variable.removeprefix(PREFIX).lower()
            origin = f"environment {variable}"
            if name.startswith("plan_"):
                plan, limit = _split_plan_variable(variable, name.removeprefix("plan_"))
                self._set_limit(plan, limit, text, variable, origin)
            elif name in _LISTS:
                self._set_value(name, [part for part in re.split(r"[,\s]+", text) if part], origin, strict=False)
            elif name in NAMES:
                self._set_value(name, text, origin, strict=False)
            elif hint := suggest(name, NAMES, spelling=lambda setting: PREFIX + setting.upper()):
                # a variable that does not resemble a setting may belong to another program
                raise InvalidSettings(f"unknown setting {variable}{hint} (environment)")

    def _set_value(self, name: str, value: Any, origin: str, *, strict: bool) -> None:
        try:
            self.values[name] = msgspec.convert(value, _TYPES[name], strict=strict)
        except msgspec.ValidationError as error:
            # the message of msgspec does not quote the value, which may be a password
            raise InvalidSettings(f"{name} cannot be used: {error} ({origin})") from None
        self.origins[name] = origin

    def _set_limit(self, plan: str, limit: str, value: Any, name: str, origin: str) -> None:
        if limit not in LIMITS:
            raise InvalidSettings(f"unknown limit {name}{suggest(limit, LIMITS)} ({origin})")
        parse = parse_switch if limit in _SWITCHES else parse_limit
        self.plans.setdefault(plan, {})[limit] = parse(value, name, origin)
        self.origins[f"plans.{plan}.{limit}"] = origin


def _split_plan_variable(variable: str, name: str) -> tuple[str, str]:
    """Return the plan and the limit of a variable, whose name lacks the prefix here. Raise InvalidSettings."""
    # the longest first: job_requests_per_minute ends with requests_per_minute
    for limit in sorted(LIMITS, key=len, reverse=True):
        if name.endswith("_" + limit):
            return name.removesuffix("_" + limit).replace("_", "-"), limit
    plan, _, limit = name.partition("_")
    hint = suggest(limit, LIMITS, spelling=lambda known: f"{PREFIX}PLAN_{plan.upper()}_{known.upper()}")
    raise InvalidSettings(f"unknown limit {variable}{hint}; known are {', '.join(LIMITS)}")


NAMES = tuple(name for name in Settings.__struct_fields__ if name != "plan_limits")
"""Settings that each have one variable and one key; limits of plans have one for each plan."""

LIMITS = Limits.__struct_fields__
"""Names of the limits of a plan."""

_SWITCHES = frozenset(field.name for field in structs.fields(Limits) if field.type == bool | None)
"""Limits that are true or false."""

_LISTS = frozenset(field.name for field in structs.fields(Settings) if field.type == tuple[str, ...])
"""Settings that are lists; commas separate the items in a variable."""

_TYPES = {field.name: field.type for field in structs.fields(Settings)}
