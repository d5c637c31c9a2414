"""`meshhub config`: what is in force, and where each value comes from."""

from __future__ import annotations

import contextlib
import tempfile
from typing import Any

import click
import msgspec

from meshhub.cli import show
from meshhub.errors import InvalidSettings, format_number
from meshhub.registry import Registry
from meshhub.service.redaction import redact_url
from meshhub.service.settings import LIMITS, NAMES, Settings, load

_DEFAULT = "default"


@click.command()
@click.option("--show", "shown", is_flag=True, help="Show the settings, which it does anyway.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def config(shown: bool, as_json: bool) -> None:
    """Show every setting of the service, and every limit of a plan, and where its value comes from.

    Variables beat the file that MESHHUB_SETTINGS names, and that beats the defaults. Passwords are
    left out.
    """
    del shown
    loaded = load()
    try:
        values = {name: _in_force(loaded.settings, name) for name in NAMES} | _limits(loaded.settings)
    except InvalidSettings as error:
        raise loaded.located(error) from None
    rows = [(name, _masked(value), loaded.origins.get(name, _DEFAULT)) for name, value in values.items()]
    if as_json:
        show.as_json({name: {"value": value, "origin": origin} for name, value, origin in rows})
        return
    show.table(("setting", "origin", "value"), [(name, origin, _text(value)) for name, value, origin in rows])


def _in_force(settings: Settings, name: str) -> Any:
    """The value of a setting; what is taken instead where nothing is set."""
    match name:
        case "workers":
            return settings.worker_count
        case "batch_workers":
            return settings.batch_worker_count
        case "temporary_folder" if settings.temporary_folder is None:
            with contextlib.suppress(OSError):
                return tempfile.gettempdir()
        case "database_url" if settings.database_url is None:
            with contextlib.suppress(ImportError):
                from meshhub.service.keys import default_url

                return default_url()
    return getattr(settings, name)


def _limits(settings: Settings) -> dict[str, Any]:
    """The limits in force, named as the file has them. Raises InvalidSettings."""
    plans = settings.in_force(Registry().plans)
    return {f"plans.{plan.id}.{limit}": getattr(plan.limits, limit) for plan in plans.values() for limit in LIMITS}


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return redact_url(value)
    return msgspec.to_builtins(value)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return "none" if value is None else f"{format_number(value)}" if isinstance(value, float) else str(value)
