"""API keys in a database: create, check, list, rotate and revoke.

A key is `mh_<id>_<secret>`. The id finds the row; the secret has 256 random bits. The database stores only a SHA-256
hash of the whole key. A slow password hash is unnecessary, because a random secret cannot be guessed.
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

from meshhub.errors import InvalidKey, KeyStoreUnavailable, describe_missing
from meshhub.service.redaction import redact_error

if find_spec("sqlalchemy") is None:
    raise ImportError(
        describe_missing("the store of API keys", ["sqlalchemy"], 'pip install "meshhub[http]"'), name="sqlalchemy"
    )

import platformdirs
import sqlalchemy as sql
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, SQLAlchemyError

_PREFIX = "mh_"

_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"

_ID_CHARS = 12
"""Characters of an id after the prefix: 36^12 ids, so that collisions are rare."""

_KEY_ID = re.compile(rf"{_PREFIX}[a-z0-9]{{{_ID_CHARS}}}(?![A-Za-z0-9-])", re.ASCII)
_KEY = re.compile(rf"({_PREFIX}[a-z0-9]{{{_ID_CHARS}}})_[A-Za-z0-9_-]{{22,100}}", re.ASCII)
"""Key with its id as the first group."""

_SECRET_BYTES = 32
"""Random bytes of a secret."""

_MAX_LABEL_CHARS = 200
"""Characters of a label in the database; longer labels are cut."""

_MAX_REASON_CHARS = 200
"""Characters of the text of a database error in a message."""

_MAX_ID_ATTEMPTS = 5
"""Random ids that are tried for a new key; a second is almost never needed."""

_LOCK_TIMEOUT_S = 1.0
"""Seconds that a lookup waits for a database that another process has locked."""

_WRITE_TIMEOUT_S = 10.0
"""Seconds that a change waits for other changes of a SQLite file; requests only read."""

_READ_DEADLINE_S = 1.2
"""Seconds for a lookup in a database server. A request with a key has 2 s for all stores, and Redis needs a part."""

_WRITE_DEADLINE_S = 5.0
"""Seconds for a change in a database server, including the connection."""

_CONNECT_TIMEOUT_S = 2
"""Seconds for a connection to a database server; the minimum that psycopg accepts."""

_STATEMENT_TIMEOUT_S = 3
"""Seconds after which the database server ends a statement, and the kernel a silent connection."""

_DRIVER_OPTIONS: dict[str, dict[str, Any]] = {
    "sqlite": {"timeout": _LOCK_TIMEOUT_S},
    "postgresql+psycopg": {
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "tcp_user_timeout": 1000 * _STATEMENT_TIMEOUT_S,
        "options": f"-c statement_timeout={_STATEMENT_TIMEOUT_S}s -c lock_timeout={_LOCK_TIMEOUT_S:g}s",
    },
}

_SYSTEM_FOLDER = Path("/var/lib/meshhub")
"""Folder of the database of a user without a home folder."""

_METADATA = sql.MetaData()
_KEYS = sql.Table(
    "api_keys",
    _METADATA,
    sql.Column("id", sql.String(32), primary_key=True),
    sql.Column("sha256", sql.String(64), nullable=False),
    sql.Column("label", sql.String(_MAX_LABEL_CHARS), nullable=False),
    sql.Column("plan", sql.String(100), nullable=False),
    # seconds since 1970, because databases differ in how they store time zones
    sql.Column("created", sql.BigInteger, nullable=False),
    sql.Column("expires", sql.BigInteger),
    sql.Column("revoked", sql.BigInteger),
)

T = TypeVar("T")


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
    """Time from which the key is invalid because it was revoked or replaced; may lie in the future."""

    def state(self, now: float) -> str:
        """Return "active", "expired" or "revoked" for a time."""
        if self.revoked is not None and self.revoked <= now:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "active"


def public(key: str) -> str:
    """Return the id part of a key, or of an invalid key; the rest is secret."""
    return key[: len(_PREFIX) + _ID_CHARS]


def default_url() -> str:
    """Return MESHHUB_DATABASE_URL, or the URL of a SQLite file.

    The file is in the user's data folder, or in /var/lib/meshhub for a user without a home folder.
    """
    url = os.environ.get("MESHHUB_DATABASE_URL", "").strip()
    if url:
        return url
    try:
        folder = platformdirs.user_data_path("meshhub", appauthor=False)
    except RuntimeError:
        folder = _SYSTEM_FOLDER
    # some versions of platformdirs return "~/…" for a user without a home folder
    path = (folder if folder.is_absolute() else _SYSTEM_FOLDER) / "meshhub.sqlite3"
    return URL.create("sqlite", database=str(path)).render_as_string()


def id_of(key: str) -> str:
    """Return the id with which a key begins, which is not a secret; "" if the text does not begin with an id."""
    match = _KEY_ID.match(key)
    return match[0] if match else ""


class KeyStore:
    """API keys in a database.

    A store may be used by several threads. It opens the database at the first use. Every method may raise
    KeyStoreUnavailable.
    """

    def __init__(self, url: str | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """Create a store.

        Args:
            url: SQLAlchemy URL; default: see `default_url`.
            clock: Returns the time in seconds since 1970.
        Raises:
            ValueError: The URL is malformed, or needs a driver that is not installed; passwords are masked.
        """
        try:
            requested = url or default_url()
            self._url = _add_driver(make_url(requested))
            pool = {} if self._is_sqlite else {"pool_pre_ping": True, "pool_timeout": _CONNECT_TIMEOUT_S}
            self._engine = sql.create_engine(
                self._url, connect_args=_DRIVER_OPTIONS.get(self._url.drivername, {}), **pool
            )
        except (ArgumentError, ImportError) as error:
            reason = redact_error(_first_line(error), requested)
            raise ValueError(f"the database URL cannot be used: {type(error).__name__}: {reason}") from None
        except ValueError:
            raise ValueError(
                "the database URL cannot be used: its port is not a number; escape special characters of the password"
            ) from None
        if "@" in (self._url.host or ""):
            raise ValueError("the database URL cannot be used: write an @ in a password as %40")
        self._clock = clock

    def create(self, plan: str, *, label: str = "", expires: float | None = None) -> tuple[str, KeyRecord]:
        """Create a key.

        Args:
            plan: Id of the plan.
            label: Text for listings.
            expires: Seconds since 1970; None: never.
        Returns:
            The key, which cannot be retrieved again, and its record.
        """
        self._create_table()
        return self._insert_key(plan, label, self._clock(), expires)

    def rotate(self, key_id: str, *, grace: float = 0, expires: float | None = None) -> tuple[str, KeyRecord]:
        """Replace a key by a new one with the same plan and label.

        Args:
            key_id: Id of the old key, or the whole key.
            grace: Seconds for which the old key stays valid.
            expires: Seconds since 1970; default: the new key is valid for as long as the old one was at its creation.
        Returns:
            The new key, which cannot be retrieved again, and its record.
        Raises:
            InvalidKey: The key does not exist, or is revoked or replaced.
        """
        old = self._get(key_id)
        now = self._clock()
        if old.revoked is not None:
            state = "revoked" if old.revoked <= now else "replaced"
            raise InvalidKey(f"the key {old.id} is {state} already; create a new one with `meshhub keys create`")
        if expires is None and old.expires is not None:
            expires = int(now) + old.expires - old.created
        end = int(now + grace)
        retire = _KEYS.update().where(_KEYS.c.id == old.id, _KEYS.c.revoked.is_(None)).values(revoked=end)
        return self._insert_key(old.plan, old.label, now, expires, before=retire)

    def check(self, key: str) -> KeyRecord:
        """Return the record of an active key.

        Raises:
            InvalidKey: The key is unknown, expired or revoked.
        """
        match = _KEY.fullmatch(key)
        row = self._find_row(match[1]) if match else None
        stored_hash = row.sha256 if row is not None else "0" * 64
        if not hmac.compare_digest(stored_hash, _hash_key(key)) or row is None:
            raise InvalidKey("the API key is unknown; check X-Api-Key, or omit the header to use the free plan")
        record = _to_record(row)
        state = record.state(self._clock())
        if state != "active":
            raise InvalidKey(f"the API key {record.id} is {state}; ask for a new one")
        return record

    def list(self) -> list[KeyRecord]:
        """Return the records of all keys, the oldest first."""
        rows = self._read(sql.select(_KEYS).order_by(_KEYS.c.created, _KEYS.c.id), lambda result: result.all())
        return [_to_record(row) for row in rows or ()]

    def look(self) -> None:
        """Query the database. Raise KeyStoreUnavailable if it does not respond."""
        self._find_row("")

    def revoke(self, key_id: str) -> KeyRecord:
        """Revoke a key for good; a second call keeps the time of the first.

        Args:
            key_id: Id of the key, or the whole key.
        Raises:
            InvalidKey: The key does not exist.
        """
        record = self._get(key_id)
        now = int(self._clock())
        if record.revoked is not None and record.revoked <= now:
            return record
        self._write(_KEYS.update().where(_KEYS.c.id == record.id).values(revoked=now))
        return structs.replace(record, revoked=now)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @property
    def _is_sqlite(self) -> bool:
        return self._url.get_backend_name() == "sqlite"

    @property
    def _file(self) -> Path | None:
        database = self._url.database
        return Path(database) if self._is_sqlite and database and database != ":memory:" else None

    def _create_table(self) -> None:
        try:
            if self._file is not None:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file.touch(mode=0o600, exist_ok=True)
            self._within(_WRITE_DEADLINE_S, lambda: self._retry_locked(lambda: _METADATA.create_all(self._engine)))
        except SQLAlchemyError as error:
            # another process may have created the table after create_all looked for it
            if not self._within(_READ_DEADLINE_S, lambda: self._has_table(default=False)):
                raise self._unavailable(error) from error
        except OSError as error:
            raise self._unavailable(error) from error

    def _insert_key(
        self, plan: str, label: str, created: float, expires: float | None, *, before: sql.Update | None = None
    ) -> tuple[str, KeyRecord]:
        """Insert a new key, in one transaction after the statement `before`. Return the key and its record."""
        for _ in range(_MAX_ID_ATTEMPTS):
            key_id = _PREFIX + "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_CHARS))
            key = f"{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
            record = KeyRecord(
                id=key_id,
                label=label[:_MAX_LABEL_CHARS],
                plan=plan,
                created=int(created),
                expires=None if expires is None else int(expires),
            )
            insert = _KEYS.insert().values(sha256=_hash_key(key), **structs.asdict(record))
            try:
                self._write(*([] if before is None else [before]), insert)
            except IntegrityError:
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
        return _to_record(row)

    def _find_row(self, key_id: str) -> Any:
        return self._read(sql.select(_KEYS).where(_KEYS.c.id == key_id), lambda result: result.first())

    def _read(self, statement: sql.Select[Any], fetch: Callable[[sql.CursorResult[Any]], T]) -> T | None:
        """Return the result of a query; None without a table, which a query does not create."""
        if self._file is not None and not self._file.exists():
            return None

        def read() -> T | None:
            try:
                with self._engine.connect() as connection:
                    return fetch(connection.execute(statement))
            except SQLAlchemyError as error:
                if not self._has_table(default=True):
                    return None
                raise self._unavailable(error) from error

        return self._within(_READ_DEADLINE_S, read)

    def _has_table(self, *, default: bool) -> bool:
        """Return whether the table exists; `default` if the database does not respond."""
        try:
            return sql.inspect(self._engine).has_table(_KEYS.name)
        except SQLAlchemyError:
            return default

    def _write(self, *statements: sql.Executable) -> None:
        """Execute statements in one transaction. Raise InvalidKey if one of them changes no row."""

        def write() -> None:
            with self._engine.begin() as connection:
                for statement in statements:
                    if connection.execute(statement).rowcount == 0:
                        raise InvalidKey("the key was changed meanwhile; see `meshhub keys list`")

        try:
            self._within(_WRITE_DEADLINE_S, lambda: self._retry_locked(write))
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise self._unavailable(error) from error

    def _within(self, seconds: float, work: Callable[[], T]) -> T:
        """Run database work in a thread of its own. Raise KeyStoreUnavailable at the deadline.

        A server that is frozen keeps its connections open, and drivers wait for it without limit. The thread is a
        daemon, so it does not delay the end of the program; the connection pool bounds the number of threads. SQLite
        has no server, and a timeout of its own.
        """
        if self._is_sqlite:
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
                f"the database of keys ({self._url.get_backend_name()}) did not respond within {seconds:g} s"
            ) from None

    def _retry_locked(self, write: Callable[[], None]) -> None:
        """Write, and repeat while a SQLite file is locked, for up to _WRITE_TIMEOUT_S.

        The timeout of SQLite is not enough: SQLite fails at once if two connections that have read try to write.
        """
        end = time.monotonic() + _WRITE_TIMEOUT_S
        while True:
            try:
                return write()
            except OperationalError as error:
                if not self._is_sqlite or "locked" not in str(error.orig) or time.monotonic() > end:
                    raise
            # a random pause, so that two writers do not meet again
            time.sleep(0.01 + secrets.randbelow(90) / 1000)

    def _unavailable(self, error: Exception) -> KeyStoreUnavailable:
        database = str(self._file) if self._file is not None else self._url.get_backend_name()
        reason = redact_error(_first_line(error), self._url.render_as_string(hide_password=False))
        return KeyStoreUnavailable(f"the database of keys ({database}) cannot be used: {reason}")


def _add_driver(url: URL) -> URL:
    """Return a PostgreSQL URL with psycopg as its driver, and other URLs unchanged. Raise ImportError."""
    if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        return url
    if find_spec("psycopg") is None:
        raise ImportError(describe_missing("PostgreSQL", ["psycopg"], 'pip install "meshhub[postgres]"'))
    return url.set(drivername="postgresql+psycopg")


def _hash_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _to_record(row: Any) -> KeyRecord:
    return KeyRecord(**{name: getattr(row, name) for name in KeyRecord.__struct_fields__})


def _first_line(error: Exception) -> str:
    """Return the first line of an error of SQLAlchemy or of its driver; the next lines repeat the statement."""
    return str(getattr(error, "orig", None) or error).partition("\n")[0][:_MAX_REASON_CHARS]
