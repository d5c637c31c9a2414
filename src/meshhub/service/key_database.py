"""Database of API keys and of the secrets of webhooks: a SQLite file, or a database server."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from meshhub.errors import InvalidKey, KeyStoreUnavailable, describe_missing
from meshhub.model.installing import describe_install
from meshhub.service.redaction import redact_error

if find_spec("sqlalchemy") is None:
    raise ImportError(
        describe_missing("the store of API keys", ["sqlalchemy"], describe_install("meshhub[http]")), name="sqlalchemy"
    )

import platformdirs
import sqlalchemy as sql
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, SQLAlchemyError

_MAX_REASON_CHARS = 200
"""Maximum characters of the text of a database error in a message."""

_LOCK_TIMEOUT_S = 1.0
"""Seconds that a lookup waits for a database that another process has locked."""

_WRITE_TIMEOUT_S = 10.0
"""Seconds that a change waits for other changes of a SQLite file; requests only read."""

_READ_DEADLINE_S = 1.2
"""Seconds for a lookup in a database server. A request with a key has 2 s for all stores, including Redis. """

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

__all__ = ["METADATA", "KeyDatabase", "data_folder", "default_url", "parse_url", "sql"]

METADATA = sql.MetaData()

T = TypeVar("T")


def default_url() -> str:
    """Return MESHHUB_DATABASE_URL, or the URL of a SQLite file.

    The file is in the user's data folder, or in /var/lib/meshhub for a user without a home folder.
    """
    url = os.environ.get("MESHHUB_DATABASE_URL", "").strip()
    if url:
        return url
    return URL.create("sqlite", database=str(data_folder() / "meshhub.sqlite3")).render_as_string()


def data_folder() -> Path:
    """Return the user's data folder, or /var/lib/meshhub for a user without a home folder."""
    try:
        folder = platformdirs.user_data_path("meshhub", appauthor=False)
    except RuntimeError:
        folder = _SYSTEM_FOLDER
    # some versions of platformdirs return "~/…" for a user without a home folder
    return folder if folder.is_absolute() else _SYSTEM_FOLDER


class KeyDatabase:
    """Connections to the database, with deadlines.

    It may be used by several threads, and opens the database at the first use. Every method may raise
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
        self._url = parse_url(url or default_url())
        pool = {} if self._is_sqlite else {"pool_pre_ping": True, "pool_timeout": _CONNECT_TIMEOUT_S}
        with _describe_url_errors(self._url.render_as_string(hide_password=False)):
            self._engine = sql.create_engine(self._url, connect_args=_choose_driver_options(self._url), **pool)
        self.clock = clock

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

    def create_tables(self) -> None:
        """Create the tables that do not exist."""
        try:
            if self._file is not None:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file.touch(mode=0o600, exist_ok=True)
        except OSError as error:
            raise self._unavailable(error) from error
        # another process may create a table after create_all has looked for it; at most once for each table
        attempts = len(METADATA.sorted_tables) + 1
        for attempt in range(1, attempts + 1):
            try:
                self._within(_WRITE_DEADLINE_S, lambda: self._retry_locked(lambda: METADATA.create_all(self._engine)))
            except SQLAlchemyError as error:
                exist = self._within(_READ_DEADLINE_S, self._list_existing)
                if all(exist):
                    return
                if not any(exist) or attempt == attempts:
                    raise self._unavailable(error) from error
            else:
                return

    def _list_existing(self) -> list[bool]:
        """Return for each table whether it exists; False if the database does not respond."""
        return [self._has_table(table.name, default=False) for table in METADATA.sorted_tables]

    def read(self, statement: sql.Select[Any], fetch: Callable[[sql.CursorResult[Any]], T]) -> T | None:
        """Return the result of a query; None without a table, which a query does not create."""
        if self._file is not None and not self._file.exists():
            return None

        name = getattr(statement.get_final_froms()[0], "name", "")

        def read() -> T | None:
            try:
                with self._engine.connect() as connection:
                    return fetch(connection.execute(statement))
            except SQLAlchemyError as error:
                if not self._has_table(name, default=True):
                    return None
                raise self._unavailable(error) from error

        return self._within(_READ_DEADLINE_S, read)

    def _has_table(self, name: str, *, default: bool) -> bool:
        """Return whether the table exists; `default` if the database does not respond."""
        try:
            return sql.inspect(self._engine).has_table(name)
        except SQLAlchemyError:
            return default

    def write(self, *statements: sql.Executable) -> None:
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
        """Run database work in a separate thread. Raise KeyStoreUnavailable at the deadline.

        A server that is frozen keeps its connections open, and drivers wait for it without limit. The thread is a
        daemon, so it does not delay the end of the program; the connection pool bounds the number of threads. SQLite
        runs in this thread, because it has no server and has its own timeout.
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


def parse_url(text: str) -> URL:
    """Return a database URL, with psycopg as the driver of PostgreSQL.

    Raises:
        ValueError: The URL is malformed, or needs a driver that is not installed; passwords are masked.
    """
    with _describe_url_errors(text):
        url = _add_driver(make_url(text))
    if "@" in (url.host or ""):
        raise ValueError("the database URL cannot be used: write an @ in a password as %40")
    return url


@contextlib.contextmanager
def _describe_url_errors(url: str) -> Iterator[None]:
    try:
        yield
    except (ArgumentError, ImportError) as error:
        reason = redact_error(_first_line(error), url)
        raise ValueError(f"the database URL cannot be used: {type(error).__name__}: {reason}") from None
    except ValueError:
        raise ValueError(
            "the database URL cannot be used: its port is not a number; escape special characters of the password"
        ) from None


def _add_driver(url: URL) -> URL:
    """Return a PostgreSQL URL with psycopg as its driver, and other URLs unchanged. Raise ImportError."""
    if url.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        return url
    if find_spec("psycopg") is None:
        raise ImportError(describe_missing("PostgreSQL", ["psycopg"], describe_install("meshhub[postgres]")))
    return url.set(drivername="postgresql+psycopg")


def _choose_driver_options(url: URL) -> dict[str, Any]:
    """Return the arguments of a connection; `options` of the URL, such as a search path, come before ours."""
    chosen = dict(_DRIVER_OPTIONS.get(url.drivername, {}))
    if "options" in chosen and "options" in url.query:
        chosen["options"] = f"{url.query['options']} {chosen['options']}"
    return chosen


def _first_line(error: Exception) -> str:
    """Return the first line of an error of SQLAlchemy or of its driver; the next lines repeat the statement."""
    return str(getattr(error, "orig", None) or error).partition("\n")[0][:_MAX_REASON_CHARS]
