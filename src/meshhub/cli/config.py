"""`meshhub config`: the settings in effect, and their origins."""

from __future__ import annotations

import contextlib
import tempfile
from typing import Any

import click
import msgspec

from meshhub.cli import terminal
from meshhub.cli.loading import load_registry
from meshhub.cli.verbosity import verbosity
from meshhub.errors import InvalidSettings, format_number
from meshhub.service.redaction import redact_url
from meshhub.service.settings import LIMITS, NAMES, Settings, load

_DEFAULT = "default"
"""Origin of a value that is not set."""


@click.command()
@click.option("--show", "shown", is_flag=True, help="Show the settings; this is the default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@verbosity
def config(shown: bool, as_json: bool) -> None:
    """Show the settings of the service and the limits of plans.

    Each value has its origin: environment variables override the file that MESHHUB_SETTINGS names, and the file the
    defaults. Passwords are masked.
    """
    del shown
    loaded = load()
    try:
        values = {name: _get_value(loaded.settings, name) for name in NAMES} | _list_limits(loaded.settings)
    except InvalidSettings as error:
        raise loaded.located(error) from None
    rows = [(name, _to_public(value), loaded.origins.get(name, _DEFAULT)) for name, value in values.items()]
    if as_json:
        terminal.as_json({name: {"value": value, "origin": origin} for name, value, origin in rows})
        return
    terminal.table(
        ("setting", "origin", "value"), [(name, origin, _format_value(value)) for name, value, origin in rows]
    )


def _get_value(settings: Settings, name: str) -> Any:
    """Return the value of a setting or, if it is not set, the value that the service uses."""
    match name:
        case "workers":
            return settings.worker_count
        case "batch_workers":
            return settings.batch_worker_count
        case "conversion_memory_bytes":
            return settings.memory_bytes
        case "temporary_folder" if settings.temporary_folder is None:
            with contextlib.suppress(OSError):
                return tempfile.gettempdir()
        case "database_url" if settings.database_url is None:
            with contextlib.suppress(ImportError):
                from meshhub.service.key_database import default_url

                return default_url()
    return getattr(settings, name)


def _list_limits(settings: Settings) -> dict[str, Any]:
    """Return the limits of all plans by their names in the settings file. Raise InvalidSettings."""
    plans = settings.in_force(load_registry().plans)
    return {f"plans.{plan.id}.{limit}": getattr(plan.limits, limit) for plan in plans.values() for limit in LIMITS}


def _to_public(value: Any) -> Any:
    """Return a value as JSON data, with masked passwords."""
    if isinstance(value, str):
        return redact_url(value)
    return msgspec.to_builtins(value)


def _format_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(value)
    if isinstance(value, float):
        return format_number(value)
    return "none" if value is None else str(value)
