"""API keys in a database: create, check, list, rotate and revoke.

A key is `mh_<id>_<secret>`. The id finds the row; the secret has 256 random bits. The database stores only a SHA-256
hash of the whole key. A slow password hash is unnecessary, because a random secret cannot be guessed.

A publishable key is `mhp_<id>_<secret>`. Pages contain it, so everybody can read it. Therefore, it is bound to origins
and quotas, which have a separate table.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from typing import Any

from msgspec import Struct, structs

from meshhub.errors import InvalidKey, KeyStoreUnavailable, quote
from meshhub.service.key_database import METADATA, KeyDatabase, default_url, sql
from meshhub.service.origins import is_origin

__all__ = ["KeyRecord", "KeyStore", "Publishable", "default_url", "is_publishable", "public"]

_PREFIX = "mh_"

_PUBLISHABLE_PREFIX = "mhp_"

_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"

_ID_CHARS = 12
"""Characters of an id after the prefix: 36^12 ids, so collisions are rare."""

_KEY_ID = re.compile(rf"mhp?_[a-z0-9]{{{_ID_CHARS}}}(?![A-Za-z0-9-])", re.ASCII)
_KEY = re.compile(rf"(mhp?_[a-z0-9]{{{_ID_CHARS}}})_[A-Za-z0-9_-]{{22,100}}", re.ASCII)
"""Key with its id as the first group."""

_SECRET_BYTES = 32
"""Random bytes of a secret."""

_MAX_LABEL_CHARS = 200
"""Maximum characters of a label in the database; longer labels are cut."""

_MAX_ID_ATTEMPTS = 5
"""Maximum random ids to try for a new key; a second one is almost never needed."""

_KEYS = sql.Table(
    "api_keys",
    METADATA,
    sql.Column("id", sql.String(32), primary_key=True),
    sql.Column("sha256", sql.String(64), nullable=False),
    sql.Column("label", sql.String(_MAX_LABEL_CHARS), nullable=False),
    sql.Column("plan", sql.String(100), nullable=False),
    # seconds since 1970, because databases differ in how they store time zones
    sql.Column("created", sql.BigInteger, nullable=False),
    sql.Column("expires", sql.BigInteger),
    sql.Column("revoked", sql.BigInteger),
)

_PUBLISHABLE_KEYS = sql.Table(
    "publishable_keys",
    METADATA,
    sql.Column("id", sql.String(32), primary_key=True),
    # JSON
    sql.Column("origins", sql.Text, nullable=False),
    sql.Column("requests_per_minute", sql.Integer, nullable=False),
    sql.Column("requests_per_day", sql.Integer, nullable=False),
)


class Publishable(Struct, frozen=True, kw_only=True):
    """Bounds of a publishable key."""

    origins: tuple[str, ...]
    """Origins whose pages may use the key, such as "https://shop.example"."""

    requests_per_minute: int = 30
    """Requests of one address in a minute."""

    requests_per_day: int = 1000
    """Conversions, inspections, previews, pictures and jobs of all addresses in a day."""


class KeyRecord(Struct, frozen=True, kw_only=True):
    """Public facts about a key. Times are seconds since 1970, UTC."""

    id: str
    """First part of the key, such as "mh_0123456789ab"."""

    label: str
    """Text of the operator, such as the name of a customer."""

    plan: str
    """Id of the plan."""

    created: int
    """Time of creation."""

    expires: int | None = None
    """Time from which the key is invalid; None: never."""

    revoked: int | None = None
    """Time from which the key is invalid because it was revoked or replaced; may be in the future."""

    publishable: Publishable | None = None
    """Bounds of a publishable key; None: the key is secret."""

    def state(self, now: float) -> str:
        """Return "active", "expired" or "revoked" for a time."""
        if self.revoked is not None and self.revoked <= now:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "active"


def public(key: str) -> str:
    """Return the id part of a key, or of an invalid key; the rest is secret."""
    return key[: len(_PUBLISHABLE_PREFIX if is_publishable(key) else _PREFIX) + _ID_CHARS]


def is_publishable(key: str) -> bool:
    """Return whether a key, or its id, begins like those of publishable keys."""
    return key.startswith(_PUBLISHABLE_PREFIX)


def id_of(key: str) -> str:
    """Return the id with which a key begins, which is not a secret; "" if the text does not begin with an id."""
    match = _KEY_ID.match(key)
    return match[0] if match else ""


class KeyStore(KeyDatabase):
    """API keys in a database.

    A store may be used by several threads. It opens the database at the first use. Every method may raise
    KeyStoreUnavailable.
    """

    def create(
        self, plan: str, *, label: str = "", expires: float | None = None, publishable: Publishable | None = None
    ) -> tuple[str, KeyRecord]:
        """Create a key.

        Args:
            plan: Id of the plan.
            label: Text for listings.
            expires: Seconds since 1970; None: never.
            publishable: Bounds of a key for pages; None: the key is secret.
        Returns:
            The key, which cannot be retrieved again, and its record.
        Raises:
            InvalidKey: A publishable key has no origin, or a malformed one, or a quota below 1.
        """
        if publishable is not None:
            _check_bounds(publishable)
        self.create_tables()
        return self._insert_key(plan, label, self.clock(), expires, publishable)

    def rotate(self, key_id: str, *, grace: float = 0, expires: float | None = None) -> tuple[str, KeyRecord]:
        """Replace a key by a new one with the same plan, label and bounds.

        Args:
            key_id: Id of the old key, or the whole key.
            grace: Seconds for which the old key stays valid.
            expires: Seconds since 1970; default: the new key has the same period of validity as the old one had at its
                creation.
        Returns:
            The new key, which cannot be retrieved again, and its record.
        Raises:
            InvalidKey: The key does not exist, or is revoked or replaced.
        """
        old = self._get(key_id)
        now = self.clock()
        if old.revoked is not None:
            state = "revoked" if old.revoked <= now else "replaced"
            raise InvalidKey(f"the key {old.id} is {state} already; create a new one with `meshhub keys create`")
        if expires is None and old.expires is not None:
            expires = int(now) + old.expires - old.created
        end = int(now + grace)
        retire = _KEYS.update().where(_KEYS.c.id == old.id, _KEYS.c.revoked.is_(None)).values(revoked=end)
        return self._insert_key(old.plan, old.label, now, expires, old.publishable, before=retire)

    def check(self, key: str) -> KeyRecord:
        """Return the record of an active key.

        Raises:
            InvalidKey: The key is empty, unknown, expired or revoked.
        """
        if not key:
            raise InvalidKey("X-Api-Key is empty; send a key, or omit the header to use the free plan")
        match = _KEY.fullmatch(key)
        row = self._find_row(match[1]) if match else None
        stored_hash = row.sha256 if row is not None else "0" * 64
        if not hmac.compare_digest(stored_hash, _hash_key(key)) or row is None:
            raise InvalidKey("the API key is unknown; check X-Api-Key, or omit the header to use the free plan")
        record = self._to_record(row)
        state = record.state(self.clock())
        if state != "active":
            raise InvalidKey(f"the API key {record.id} is {state}; ask for a new one")
        return record

    def list(self) -> list[KeyRecord]:
        """Return the records of all keys, the oldest first."""
        rows = self.read(sql.select(_KEYS).order_by(_KEYS.c.created, _KEYS.c.id), lambda result: result.all())
        bounds = self._read_bounds()
        return [_to_record(row, bounds.get(row.id)) for row in rows or ()]

    def published_origins(self) -> frozenset[str]:
        """Return the origins of all active publishable keys."""
        if not self._read_bounds():
            return frozenset()
        now = self.clock()
        return frozenset(
            origin
            for record in self.list()
            if record.publishable is not None and record.state(now) == "active"
            for origin in record.publishable.origins
        )

    def look(self) -> None:
        """Query the database. Raise KeyStoreUnavailable if it does not respond."""
        self._find_row("")

    def revoke(self, key_id: str) -> KeyRecord:
        """Revoke a key permanently; a second call keeps the time of the first.

        Raises:
            InvalidKey: The key does not exist.
        """
        record = self._get(key_id)
        now = int(self.clock())
        if record.revoked is not None and record.revoked <= now:
            return record
        self.write(_KEYS.update().where(_KEYS.c.id == record.id).values(revoked=now))
        return structs.replace(record, revoked=now)

    def _insert_key(
        self,
        plan: str,
        label: str,
        created: float,
        expires: float | None,
        publishable: Publishable | None,
        *,
        before: sql.Update | None = None,
    ) -> tuple[str, KeyRecord]:
        """Insert a new key, in one transaction after the statement `before`. Return the key and its record."""
        for _ in range(_MAX_ID_ATTEMPTS):
            prefix = _PREFIX if publishable is None else _PUBLISHABLE_PREFIX
            key_id = prefix + "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_CHARS))
            key = f"{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
            record = KeyRecord(
                id=key_id,
                label=label[:_MAX_LABEL_CHARS],
                plan=plan,
                created=int(created),
                expires=None if expires is None else int(expires),
                publishable=publishable,
            )
            try:
                self.write(*([] if before is None else [before]), *_insert_statements(record, _hash_key(key)))
            except sql.exc.IntegrityError:
                continue
            return key, record
        raise KeyStoreUnavailable("no free id was found for a new key; try again")

    def _get(self, key_id: str) -> KeyRecord:
        """Return the record of an id or a whole key. Raise InvalidKey, which does not quote the secret."""
        match = _KEY.fullmatch(key_id)
        key_id = match[1] if match else key_id
        row = self._find_row(key_id)
        if row is None:
            raise InvalidKey(f"there is no key {public(key_id)!r}; see `meshhub keys list`")
        return self._to_record(row)

    def _find_row(self, key_id: str) -> Any:
        return self.read(sql.select(_KEYS).where(_KEYS.c.id == key_id), lambda result: result.first())

    def _to_record(self, row: Any) -> KeyRecord:
        """Return the record of a row. Raise InvalidKey for a publishable key without bounds."""
        if not is_publishable(row.id):
            return _to_record(row, None)
        bounds = self._read_bounds(row.id).get(row.id)
        if bounds is None:
            raise InvalidKey(f"the API key {row.id} has lost its origins; create a new one with `meshhub keys create`")
        return _to_record(row, bounds)

    def _read_bounds(self, key_id: str | None = None) -> dict[str, Publishable]:
        """Return the bounds of one publishable key, or of all."""
        query = sql.select(_PUBLISHABLE_KEYS)
        if key_id is not None:
            query = query.where(_PUBLISHABLE_KEYS.c.id == key_id)
        rows = self.read(query, lambda result: result.all())
        return {row.id: _to_bounds(row) for row in rows or ()}


def _hash_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _check_bounds(publishable: Publishable) -> None:
    """Raise InvalidKey for bounds that a publishable key cannot have."""
    if not publishable.origins:
        raise InvalidKey("a publishable key needs an origin, such as https://shop.example")
    for origin in publishable.origins:
        if not is_origin(origin):
            raise InvalidKey(f"{quote(origin)} is not an origin like https://shop.example")
    if min(publishable.requests_per_minute, publishable.requests_per_day) < 1:
        raise InvalidKey("the quotas of a publishable key must be at least 1")


def _insert_statements(record: KeyRecord, key_hash: str) -> list[sql.Insert]:
    columns = structs.asdict(record)
    bounds = columns.pop("publishable")
    statements = [_KEYS.insert().values(sha256=key_hash, **columns)]
    if bounds is not None:
        values = {**structs.asdict(bounds), "origins": json.dumps(bounds.origins)}
        statements.append(_PUBLISHABLE_KEYS.insert().values(id=record.id, **values))
    return statements


def _to_record(row: Any, publishable: Publishable | None) -> KeyRecord:
    names = (name for name in KeyRecord.__struct_fields__ if name != "publishable")
    return KeyRecord(publishable=publishable, **{name: getattr(row, name) for name in names})


def _to_bounds(row: Any) -> Publishable:
    return Publishable(
        origins=tuple(json.loads(row.origins)),
        requests_per_minute=row.requests_per_minute,
        requests_per_day=row.requests_per_day,
    )
