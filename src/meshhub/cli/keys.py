"""`meshhub keys`: create, list, rotate and revoke the API keys of the HTTP service."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from meshhub.cli import terminal
from meshhub.cli.completing import complete_plans
from meshhub.cli.loading import load_registry
from meshhub.cli.texts import show_number, tr
from meshhub.cli.verbosity import verbosity
from meshhub.errors import InvalidOption, InvalidSettings, MissingDependency, quote
from meshhub.service.settings import load

if TYPE_CHECKING:
    from meshhub.service.keys import KeyRecord, KeyStore, Publishable

HOUR_S = 3600
"""Seconds of an hour."""

_DAY_S = 86_400
"""Seconds of a day."""

_MAX_EXPIRES_DAYS = 36_500
"""Maximum days until a key expires; 100 years stand for any longer time."""

MAX_GRACE_HOURS = 8760
"""Maximum hours for which a replaced key stays valid; one year."""

_MAX_QUOTA = 1_000_000
"""Maximum requests of a publishable key; more would not protect the service."""

_EXPIRES_DAYS = click.IntRange(1, _MAX_EXPIRES_DAYS)


@click.group()
def keys() -> None:
    """Create, list, rotate and revoke API keys.

    The database of the setting database_url (default: a file in your data folder) stores hashes of the keys, not the
    keys.
    """


@keys.command()
@click.option(
    "--plan",
    required=True,
    metavar="PLAN",
    shell_complete=complete_plans,
    help="Plan of the key, such as pro.",
)
@click.option("--label", default="", help="Text that `list` shows, such as the name of a customer.")
@click.option("--expires-days", type=_EXPIRES_DAYS, metavar="DAYS", help="Days until the key expires; default: never.")
@click.option("--publishable", is_flag=True, help="Create a key for pages, which everybody can read; needs --origin.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Origin whose pages may use the publishable key, such as https://shop.example; repeatable.",
)
@click.option(
    "--requests-per-minute",
    type=click.IntRange(1, _MAX_QUOTA),
    metavar="COUNT",
    help="Requests of one address in a minute with the publishable key; default: 30.",
)
@click.option(
    "--requests-per-day",
    type=click.IntRange(1, _MAX_QUOTA),
    metavar="COUNT",
    help="Conversions and other uploads of all addresses in a day with the publishable key; default: 1000.",
)
@verbosity
def create(
    plan: str,
    label: str,
    expires_days: int | None,
    publishable: bool,
    origins: tuple[str, ...],
    requests_per_minute: int | None,
    requests_per_day: int | None,
) -> None:
    """Create a key, and print it on standard output. It cannot be shown again.

    A publishable key may be part of a page: the service accepts it only from pages of its origins, within its quotas,
    and not for lists of jobs or webhooks.
    """
    quotas = {"requests_per_minute": requests_per_minute, "requests_per_day": requests_per_day}
    bounds = {name: quota for name, quota in quotas.items() if quota is not None}
    if publishable != bool(origins):
        raise InvalidOption("a publishable key needs an origin: use --publishable and --origin together")
    if bounds and not publishable:
        raise InvalidOption("only publishable keys have separate quotas; add --publishable and --origin")
    plans = load_registry().plans
    if plan not in plans:
        raise InvalidOption(f"unknown plan {quote(plan)}; known are {', '.join(sorted(plans))}")
    store = open_store()
    from meshhub.service.keys import Publishable

    key, record = store.create(
        plan,
        label=label,
        expires=_from_now(expires_days),
        publishable=Publishable(origins=origins, **bounds) if publishable else None,
    )
    click.echo(key)
    text = tr("created key {id} for the plan {plan}; it cannot be shown again")
    terminal.inform(text.format(id=record.id, plan=plan))


@keys.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@verbosity
def list_keys(as_json: bool) -> None:
    """List the keys without their secrets, which are not stored."""
    records = open_store().list()
    if as_json:
        terminal.as_json([{**msgspec.to_builtins(record), "state": record.state(time.time())} for record in records])
        return
    titles = ("id", "plan", "label", "state", "created", "expires", "revoked", "publishable")
    rows = [_row(record) for record in records]
    # empty columns would take the width that ids need
    columns = [place for place in range(len(titles)) if place == 0 or any(row[place] for row in rows)]
    terminal.table([titles[place] for place in columns], [[row[place] for place in columns] for row in rows])


@keys.command()
@click.argument("key_id", metavar="ID")
@click.option(
    "--grace-hours",
    type=click.FloatRange(0, MAX_GRACE_HOURS),
    default=0,
    help="Hours for which the old key stays valid.",
)
@click.option(
    "--expires-days",
    type=_EXPIRES_DAYS,
    metavar="DAYS",
    help="Days until the new key expires; default: as many as the old key had.",
)
@verbosity
def rotate(key_id: str, grace_hours: float, expires_days: int | None) -> None:
    """Replace a key by a new one with the same plan and label. The new key is printed on standard output.

    The old key is revoked at once, or after --grace-hours, which leaves time to distribute the new one.
    """
    store = open_store()
    from meshhub.service.keys import public

    key, record = store.rotate(key_id, grace=grace_hours * HOUR_S, expires=_from_now(expires_days))
    click.echo(key)
    state = "{old} stays valid for {hours} more hours" if grace_hours else "{old} is revoked"
    text = tr("created key {id}; it cannot be shown again. ") + tr(state)
    terminal.inform(text.format(id=record.id, old=public(key_id), hours=show_number(grace_hours)))


@keys.command()
@click.argument("key_id", metavar="ID")
@verbosity
def revoke(key_id: str) -> None:
    """Revoke a key immediately and permanently. ID is the part that `list` shows."""
    record = open_store().revoke(key_id)
    terminal.inform(tr("revoked key {id}").format(id=record.id))


def _from_now(days: int | None) -> float | None:
    """Return the time in seconds since 1970 that is a number of days ahead."""
    return None if days is None else time.time() + days * _DAY_S


def _row(record: KeyRecord) -> tuple[str, ...]:
    times = map(format_time, (record.created, record.expires, record.revoked))
    return (record.id, record.plan, record.label, record.state(time.time()), *times, _describe(record.publishable))


def format_time(seconds: int | None) -> str:
    """Return a time for people; "" for None."""
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def _describe(bounds: Publishable | None) -> str:
    if bounds is None:
        return ""
    return f"{' '.join(bounds.origins)} ({bounds.requests_per_minute} a minute, {bounds.requests_per_day} a day)"


def open_store() -> KeyStore:
    """Open the store of the settings. Raise MissingDependency, InvalidSettings."""
    try:
        from meshhub.service.keys import KeyStore
    except ImportError as error:
        raise MissingDependency(str(error)) from error
    loaded = load()
    try:
        return KeyStore(loaded.settings.database_url)
    except ValueError as error:
        raise loaded.located(InvalidSettings(f"database_url: {error}")) from error
