"""`meshhub keys`: the API keys of the HTTP service."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from meshhub.cli import show
from meshhub.errors import InvalidOption, InvalidSettings, MissingDependency, quote
from meshhub.registry import Registry
from meshhub.service.settings import load

if TYPE_CHECKING:
    from meshhub.service.keys import KeyRecord, KeyStore

_HOUR = 3600
_DAY = 86_400


@click.group()
def keys() -> None:
    """Make, list, rotate and revoke API keys.

    They are kept, as hashes only, in the database that the setting database_url names, or in a file
    in your data folder.
    """


@keys.command()
@click.option("--plan", required=True, metavar="PLAN", help="The plan that the key stands for, such as pro.")
@click.option("--label", default="", help="Who it is for; shown by list.")
@click.option("--expires-days", type=click.IntRange(1, 36_500), metavar="DAYS", help="How long it is good for.")
def create(plan: str, label: str, expires_days: int | None) -> None:
    """Make a key and print it, this once, on standard output."""
    plans = Registry().plans
    if plan not in plans:
        raise InvalidOption(f"there is no plan {quote(plan)}; choose from {', '.join(sorted(plans))}")
    key, record = _store().create(plan, label=label, expires=_from_now(expires_days))
    click.echo(key)
    click.echo(f"key {record.id} for the plan {plan} was made; it is not shown again", err=True)


@keys.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def list_keys(as_json: bool) -> None:
    """List the keys; the secret half of a key is kept nowhere."""
    records = _store().list()
    if as_json:
        show.as_json([{**msgspec.to_builtins(record), "state": record.state(time.time())} for record in records])
        return
    show.table(("id", "plan", "label", "state", "created", "expires", "revoked"), [_row(record) for record in records])


@keys.command()
@click.argument("key_id", metavar="ID")
@click.option("--grace-hours", type=click.FloatRange(0, 8760), default=0, help="How long the old key stays good.")
@click.option(
    "--expires-days",
    type=click.IntRange(1, 36_500),
    metavar="DAYS",
    help="How long the new key is good for; as long as the old one was made for unless told.",
)
def rotate(key_id: str, grace_hours: float, expires_days: int | None) -> None:
    """Make a key in the place of another, with its plan and label, and print it, this once, on standard output.

    The old key is revoked at once, or after --grace-hours, so that it can be exchanged without haste.
    """
    store = _store()
    from meshhub.service.keys import public

    key, record = store.rotate(key_id, grace=grace_hours * _HOUR, expires=_from_now(expires_days))
    click.echo(key)
    until = f"is good for {grace_hours:g} more hours" if grace_hours else "is revoked"
    click.echo(f"key {record.id} was made; it is not shown again. {public(key_id)} {until}", err=True)


@keys.command()
@click.argument("key_id", metavar="ID")
def revoke(key_id: str) -> None:
    """Take a key out of use at once and for good; ID is the part that `list` shows."""
    record = _store().revoke(key_id)
    click.echo(f"key {record.id} is revoked", err=True)


def _from_now(days: int | None) -> float | None:
    return None if days is None else time.time() + days * _DAY


def _row(record: KeyRecord) -> tuple[str, ...]:
    times = (
        "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
        for at in (record.created, record.expires, record.revoked)
    )
    return (record.id, record.plan, record.label, record.state(time.time()), *times)


def _store() -> KeyStore:
    try:
        from meshhub.service.keys import KeyStore
    except ImportError as error:
        raise MissingDependency(str(error)) from error
    loaded = load()
    try:
        return KeyStore(loaded.settings.database_url)
    except ValueError as error:
        raise loaded.located(InvalidSettings(f"database_url: {error}")) from error
