"""API keys: made, kept as hashes in a database, checked, listed, rotated and revoked.

A key is `mh_<id>_<secret>`: the id finds the row, the secret carries 256 random bits, and only a
SHA-256 of the whole key is kept. A plain hash is enough for a secret that nobody chose.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, structs

from meshhub.errors import InvalidKey, KeyStoreUnavailable
from meshhub.service.redaction import redact_error

if find_spec("sqlalchemy") is None:
    raise ImportError(
        'API keys need sqlalchemy, which is not installed; pip install "meshhub[http]"', name="sqlalchemy"
    )

import platformdirs
import sqlalchemy as sql
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, SQLAlchemyError

_PREFIX = "mh_"
_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_ID_LENGTH = 12
_KEY = re.compile(rf"({_PREFIX}[a-z0-9]{{{_ID_LENGTH}}})_[A-Za-z0-9_-]{{22,100}}", re.ASCII)
_BUSY_SECONDS = 1.0
"""How long a lookup waits for a database that another program has locked."""

_WRITE_SECONDS = 10.0
"""How long making or changing a key waits for others who do so; requests only read."""

_READ_DEADLINE_S = 1.2
"""Seconds for a lookup in a database server. A caller with a key has 2 s in all, and Redis takes some of them."""

_WRITE_DEADLINE_S = 5.0
"""Seconds for a change in a database server, with the connection that it needs."""

_CONNECT_TIMEOUT_S = 2
"""Seconds for a connection to a database server; psycopg takes fewer for 2."""

_STATEMENT_TIMEOUT_S = 3
"""Seconds after which the database server itself, or the network's silence, ends a statement."""

_DRIVER_OPTIONS: dict[str, dict[str, Any]] = {
    "sqlite": {"timeout": _BUSY_SECONDS},
    "postgresql+psycopg": {
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "tcp_user_timeout": 1000 * _STATEMENT_TIMEOUT_S,
        "options": f"-c statement_timeout={_STATEMENT_TIMEOUT_S}s -c lock_timeout={_BUSY_SECONDS:g}s",
    },
}

_HOMELESS = Path("/var/lib/meshhub")
"""Where a service without a home folder looks for its keys."""

_METADATA = sql.MetaData()
_KEYS = sql.Table(
    "api_keys",
    _METADATA,
    sql.Column("id", sql.String(32), primary_key=True),
    sql.Column("sha256", sql.String(64), nullable=False),
    sql.Column("label", sql.String(200), nullable=False),
    sql.Column("plan", sql.String(100), nullable=False),
    # seconds since 1970: every database keeps whole numbers alike, and time zones differently
    sql.Column("created", sql.BigInteger, nullable=False),
    sql.Column("expires", sql.BigInteger),
    sql.Column("revoked", sql.BigInteger),
)

T = TypeVar("T")


class KeyRecord(Struct, frozen=True, kw_only=True):
    """What is known about a key; nothing in it is secret. Times are seconds since 1970, UTC.

    `revoked` may lie ahead: the key is good until then, because another one has taken its place.
    """

    id: str
    label: str
    plan: str
    created: int
    expires: int | None = None
    revoked: int | None = None

    def state(self, now: float) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked is not None and self.revoked <= now:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "active"


def public(key: str) -> str:
    """As much of a key, or of what should be one, as may be shown."""
    return key[: len(_PREFIX) + _ID_LENGTH]


def default_url() -> str:
    """MESHHUB_DATABASE_URL, or a SQLite file in the user's data folder, or in /var/lib for a user without a home."""
    told = os.environ.get("MESHHUB_DATABASE_URL", "").strip()
    if told:
        return told
    try:
        folder = platformdirs.user_data_path("meshhub", appauthor=False)
    except RuntimeError:
        folder = _HOMELESS
    # some versions of platformdirs leave the home that they did not find as it is written
    path = (folder if folder.is_absolute() else _HOMELESS) / "meshhub.sqlite3"
    return URL.create("sqlite", database=str(path)).render_as_string()


class KeyStore:
    """Keys in a database. Safe to use from several threads; nothing is opened before the first use."""

    def __init__(self, url: str | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """`url` is SQLAlchemy's; see `default_url`. Raises ValueError when it makes no sense."""
        try:
            shown = url or default_url()
            self._url = _with_driver(make_url(shown))
            server = {} if self._sqlite else {"pool_pre_ping": True, "pool_timeout": _CONNECT_TIMEOUT_S}
            self._engine = sql.create_engine(
                self._url, connect_args=_DRIVER_OPTIONS.get(self._url.drivername, {}), **server
            )
        except (ArgumentError, ImportError) as error:
            what = redact_error(_first_line(error), shown)
            raise ValueError(f"the database URL cannot be used: {type(error).__name__}: {what}") from None
        except ValueError:
            raise ValueError(
                "the database URL cannot be used: its port is no number; is the password escaped?"
            ) from None
        if "@" in (self._url.host or ""):
            raise ValueError("the database URL cannot be used: an @ in a password is written %40")
        self._clock = clock

    def create(self, plan: str, *, label: str = "", expires: float | None = None) -> tuple[str, KeyRecord]:
        """A new key, shown this once, and its record. `expires` is seconds since 1970."""
        self._prepare()
        return self._added(plan, label, self._clock(), expires)

    def rotate(self, key_id: str, *, grace: float = 0, expires: float | None = None) -> tuple[str, KeyRecord]:
        """A new key in the place of another, of the same plan and label, and its record.

        grace:   seconds for which the old key stays good
        expires: seconds since 1970; unless told, the new key lasts as long as the old one was made for

        Raises InvalidKey for a key that is not there, or was revoked or replaced already.
        """
        old = self._known(key_id)
        now = self._clock()
        if old.revoked is not None:
            state = "revoked" if old.revoked <= now else "replaced"
            raise InvalidKey(f"the key {old.id} is {state} already; make another with `meshhub keys create`")
        if expires is None and old.expires is not None:
            expires = int(now) + old.expires - old.created
        end = int(now + grace)
        retire = _KEYS.update().where(_KEYS.c.id == old.id, _KEYS.c.revoked.is_(None)).values(revoked=end)
        return self._added(old.plan, old.label, now, expires, after=retire)

    def check(self, key: str) -> KeyRecord:
        """The record of a key that may be used now. Raises InvalidKey, KeyStoreUnavailable."""
        shaped = _KEY.fullmatch(key)
        row = self._find(shaped[1]) if shaped else None
        known = row.sha256 if row is not None else "0" * 64
        if not hmac.compare_digest(known, _hashed(key)) or row is None:
            raise InvalidKey("the API key is unknown; check X-Api-Key, or leave the header out to use the free plan")
        record = _record(row)
        state = record.state(self._clock())
        if state != "active":
            raise InvalidKey(f"the API key {record.id} is {state}; ask for a new one")
        return record

    def list(self) -> list[KeyRecord]:
        """Every key's record, the oldest first."""
        rows = self._read(sql.select(_KEYS).order_by(_KEYS.c.created, _KEYS.c.id), lambda got: got.all())
        return [_record(row) for row in rows or ()]

    def look(self) -> None:
        """See whether the database answers. Raises KeyStoreUnavailable."""
        self._find("")

    def revoke(self, key_id: str) -> KeyRecord:
        """Take a key out of use for good; revoking twice keeps the first time. Raises InvalidKey."""
        record = self._known(key_id)
        now = int(self._clock())
        if record.revoked is not None and record.revoked <= now:
            return record
        self._write(_KEYS.update().where(_KEYS.c.id == record.id).values(revoked=now))
        return structs.replace(record, revoked=now)

    def close(self) -> None:
        """Let go of the connections."""
        self._engine.dispose()

    @property
    def _sqlite(self) -> bool:
        return self._url.get_backend_name() == "sqlite"

    @property
    def _file(self) -> Path | None:
        held = self._url.database
        return Path(held) if self._sqlite and held and held != ":memory:" else None

    def _prepare(self) -> None:
        try:
            if self._file is not None:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file.touch(mode=0o600, exist_ok=True)
            self._within(_WRITE_DEADLINE_S, lambda: self._patiently(lambda: _METADATA.create_all(self._engine)))
        except SQLAlchemyError as error:
            # another program may have made the table between our look and our making it
            if not self._within(_READ_DEADLINE_S, lambda: self._has_table(unless_told=False)):
                raise self._unavailable(error) from error
        except OSError as error:
            raise self._unavailable(error) from error

    def _added(
        self, plan: str, label: str, created: float, expires: float | None, *, after: Any = None
    ) -> tuple[str, KeyRecord]:
        """A new key and its record, kept; together with the statement `after`, or neither."""
        for _ in range(5):
            key_id = _PREFIX + "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))
            key = f"{key_id}_{secrets.token_urlsafe(32)}"
            record = KeyRecord(
                id=key_id,
                label=label[:200],
                plan=plan,
                created=int(created),
                expires=None if expires is None else int(expires),
            )
            insert = _KEYS.insert().values(sha256=_hashed(key), **structs.asdict(record))
            try:
                self._write(insert) if after is None else self._write(after, insert)
            except IntegrityError:
                continue
            return key, record
        raise KeyStoreUnavailable("no free id was found for a new key; try again")

    def _known(self, key_id: str) -> KeyRecord:
        """The record of a key by its id, or by the whole key, which is told to nobody again. Raises InvalidKey."""
        shaped = _KEY.fullmatch(key_id)
        key_id = shaped[1] if shaped else key_id
        row = self._find(key_id)
        if row is None:
            raise InvalidKey(f"there is no key {public(key_id)!r}; see `meshhub keys list`")
        return _record(row)

    def _find(self, key_id: str) -> Any:
        return self._read(sql.select(_KEYS).where(_KEYS.c.id == key_id), lambda got: got.first())

    def _read(self, statement: sql.Select[Any], take: Callable[[sql.CursorResult[Any]], T]) -> T | None:
        """What a query finds; None when no key was ever made here. Asking creates nothing."""
        if self._file is not None and not self._file.exists():
            return None

        def read() -> T | None:
            try:
                with self._engine.connect() as connection:
                    return take(connection.execute(statement))
            except SQLAlchemyError as error:
                if not self._has_table():
                    return None
                raise self._unavailable(error) from error

        return self._within(_READ_DEADLINE_S, read)

    def _has_table(self, *, unless_told: bool = True) -> bool:
        try:
            return sql.inspect(self._engine).has_table(_KEYS.name)
        except SQLAlchemyError:
            return unless_told

    def _write(self, *statements: Any) -> None:
        """Do all or nothing. An update that finds its row gone raises InvalidKey."""

        def write() -> None:
            with self._engine.begin() as connection:
                for statement in statements:
                    if connection.execute(statement).rowcount == 0:
                        raise InvalidKey("the key was changed by somebody else meanwhile; see `meshhub keys list`")

        try:
            self._within(_WRITE_DEADLINE_S, lambda: self._patiently(write))
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise self._unavailable(error) from error

    def _within(self, seconds: float, work: Callable[[], T]) -> T:
        """Do what asks a database server in a thread of its own. Raises KeyStoreUnavailable at the deadline.

        A server that is frozen keeps its connections open, and drivers wait for it without end. The thread is a
        daemon, so it does not delay the end of the program; the pool bounds how many there are. SQLite has no
        server, and a deadline of its own.
        """
        if self._sqlite:
            return work()
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="meshhub-database", daemon=True).start()
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():
                raise
            raise KeyStoreUnavailable(
                f"the database of keys ({self._url.get_backend_name()}) did not answer within {seconds:g} s"
            ) from None

    def _patiently(self, write: Callable[[], None]) -> None:
        """Write, again and again while a SQLite file is locked.

        SQLite's own patience is not enough: two that have read and now want to write are told at once.
        """
        end = time.monotonic() + _WRITE_SECONDS
        while True:
            try:
                return write()
            except OperationalError as error:
                if not self._sqlite or "locked" not in str(error.orig) or time.monotonic() > end:
                    raise
            time.sleep(0.01 + secrets.randbelow(90) / 1000)

    def _unavailable(self, error: Exception) -> KeyStoreUnavailable:
        where = str(self._file) if self._file is not None else self._url.get_backend_name()
        what = redact_error(_first_line(error), self._url.render_as_string(hide_password=False))
        return KeyStoreUnavailable(f"the database of keys ({where}) cannot be used now: {what}")


def _with_driver(url: URL) -> URL:
    """The URL with the one driver for PostgreSQL that is offered, however it was written."""
    if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        return url
    if find_spec("psycopg") is None:
        raise ImportError('PostgreSQL needs psycopg, which is not installed; pip install "meshhub[postgres]"')
    return url.set(drivername="postgresql+psycopg")


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _record(row: Any) -> KeyRecord:
    return KeyRecord(**{name: getattr(row, name) for name in KeyRecord.__struct_fields__})


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).partition("\n")[0][:200]
