"""`meshhub webhooks`: create, list, rotate and revoke the secrets that sign webhooks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from meshhub.cli import terminal
from meshhub.cli.keys import HOUR_S, MAX_GRACE_HOURS, format_time, open_store
from meshhub.cli.texts import show_number, tr
from meshhub.cli.verbosity import verbosity
from meshhub.errors import InvalidOption

if TYPE_CHECKING:
    from meshhub.service.webhook_secrets import WebhookSecrets


@click.group()
def webhooks() -> None:
    """Create, list, rotate and revoke secrets that sign webhooks.

    Each API key has its own secret. The database of the keys stores them.
    """


@webhooks.command()
@click.argument("key_id", metavar="KEY_ID")
@verbosity
def create(key_id: str) -> None:
    """Create the secret of a key, and print it on standard output. It cannot be shown again."""
    secrets = _open_secrets(key_id)
    if secrets.active(key_id):
        raise InvalidOption(f"the key {key_id} has a secret; replace it with `meshhub webhooks rotate`")
    click.echo(secrets.create(key_id))
    terminal.inform(tr("created the webhook secret of {id}; it cannot be shown again").format(id=key_id))


@webhooks.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@verbosity
def list_secrets(as_json: bool) -> None:
    """List the keys that have a secret."""
    records = _open_secrets().list()
    if as_json:
        terminal.as_json(records)
        return
    terminal.table(
        ("key", "created", "revoked"),
        [(record.key_id, format_time(record.created), format_time(record.revoked)) for record in records],
    )


@webhooks.command()
@click.argument("key_id", metavar="KEY_ID")
@click.option(
    "--grace-hours",
    type=click.FloatRange(0, MAX_GRACE_HOURS),
    default=24,
    show_default=True,
    help="Hours for which webhooks have the signatures of both secrets.",
)
@verbosity
def rotate(key_id: str, grace_hours: float) -> None:
    """Replace the secret of a key. The new one is printed on standard output."""
    secrets = _open_secrets(key_id)
    if not secrets.active(key_id):
        raise InvalidOption(f"the key {key_id} has no secret; create one with `meshhub webhooks create`")
    click.echo(secrets.create(key_id, grace=grace_hours * HOUR_S))
    text = tr("the old secret of {id} signs for {hours} more hours")
    terminal.inform(text.format(id=key_id, hours=show_number(grace_hours)))


@webhooks.command()
@click.argument("key_id", metavar="KEY_ID")
@verbosity
def revoke(key_id: str) -> None:
    """Revoke the secrets of a key at once."""
    _open_secrets().revoke(key_id)
    terminal.inform(tr("revoked the webhook secrets of {id}").format(id=key_id))


def _open_secrets(key_id: str | None = None) -> WebhookSecrets:
    """Open the secrets. Raise InvalidOption if `key_id` is not an active key."""
    store = open_store()
    from meshhub.service.webhook_secrets import WebhookSecrets

    if key_id is not None:
        active = [record.id for record in store.list() if record.state(time.time()) == "active"]
        if key_id not in active:
            raise InvalidOption(f"the key {key_id!r} does not exist or is not active; see `meshhub keys list`")
    return WebhookSecrets(store)
