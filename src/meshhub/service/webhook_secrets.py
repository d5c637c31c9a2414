"""Secrets that sign the webhooks of an API key: create, list, rotate and revoke.

A secret is `whsec_` and 256 random bits in Base64, as Standard Webhooks writes it. A signature needs the secret itself,
so the database stores the secret instead of a hash.
"""

from __future__ import annotations

import base64
import secrets

from msgspec import Struct

from meshhub.errors import InvalidKey
from meshhub.service.key_database import METADATA, KeyDatabase, sql

_PREFIX = "whsec_"

_SECRET_BYTES = 32
"""Random bytes of a secret."""

_SECRETS = sql.Table(
    "webhook_secrets",
    METADATA,
    sql.Column("secret", sql.String(100), primary_key=True),
    sql.Column("key_id", sql.String(32), nullable=False, index=True),
    sql.Column("created", sql.BigInteger, nullable=False),
    sql.Column("revoked", sql.BigInteger),
)


class SecretRecord(Struct, frozen=True, kw_only=True):
    """Public facts about a secret. Times are seconds since 1970, UTC."""

    key_id: str
    """Public id of the API key."""

    created: int
    """Time of creation."""

    revoked: int | None = None
    """Time from which the secret no longer signs; may be in the future."""


class WebhookSecrets:
    """Secrets in the database of the keys. Every method may raise KeyStoreUnavailable."""

    def __init__(self, database: KeyDatabase) -> None:
        """Use the database of a store of keys."""
        self._database = database

    def create(self, key_id: str, *, grace: float = 0) -> str:
        """Create the secret of a key, and revoke those that it has.

        Args:
            key_id: Public id of the key.
            grace: Seconds for which the old secrets also sign.
        Returns:
            The secret, which cannot be retrieved again.
        """
        self._database.create_tables()
        now = int(self._database.clock())
        if self.active(key_id):
            self._revoke(key_id, now + int(grace))
        secret = _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        self._database.write(_SECRETS.insert().values(secret=secret, key_id=key_id, created=now))
        return secret

    def active(self, key_id: str) -> list[str]:
        """Return the secrets that sign the webhooks of a key, the newest first."""
        now = self._database.clock()
        query = (
            sql.select(_SECRETS)
            .where(_SECRETS.c.key_id == key_id, sql.or_(_SECRETS.c.revoked.is_(None), _SECRETS.c.revoked > now))
            .order_by(_SECRETS.c.revoked.is_not(None), _SECRETS.c.created.desc())
        )
        return [row.secret for row in self._database.read(query, lambda result: result.all()) or ()]

    def list(self) -> list[SecretRecord]:
        """Return the records of all secrets, the oldest first."""
        query = sql.select(_SECRETS).order_by(_SECRETS.c.created, _SECRETS.c.key_id)
        rows = self._database.read(query, lambda result: result.all()) or ()
        return [SecretRecord(key_id=row.key_id, created=row.created, revoked=row.revoked) for row in rows]

    def revoke(self, key_id: str) -> None:
        """Revoke the secrets of a key at once. Raises InvalidKey if it has none."""
        if not self.active(key_id):
            raise InvalidKey(f"the key {key_id!r} has no webhook secret; see `meshhub webhooks list`")
        self._revoke(key_id, int(self._database.clock()))

    def _revoke(self, key_id: str, end: int) -> None:
        self._database.write(
            _SECRETS.update()
            .where(_SECRETS.c.key_id == key_id, sql.or_(_SECRETS.c.revoked.is_(None), _SECRETS.c.revoked > end))
            .values(revoked=end)
        )


def secret_bytes(secret: str) -> bytes:
    """Return the bytes with which a secret signs."""
    return base64.b64decode(secret.removeprefix(_PREFIX))
