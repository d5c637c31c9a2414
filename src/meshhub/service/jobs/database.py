"""Connections to a database of jobs, and their errors."""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from meshhub.errors import JobStoreUnavailable
from meshhub.service.jobs.schema import create_tables

_MAX_REASON_CHARS = 200
"""Maximum characters of a database error's text in a message."""

T = TypeVar("T")


class JobDatabase(ABC):
    """Database with the tables of jobs. A subclass opens the transactions."""

    def __init__(self, engine: sql.Engine, *, clock: Callable[[], float] | None = time.time) -> None:
        """Use a database, whose tables are created at the first use.

        Args:
            clock: Returns the time in seconds since 1970; None: use the clock of the database.
        """
        self._engine = engine
        # without a transaction, a query is one message to the server instead of three
        self._reader = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._clock = clock
        self._creating = threading.Lock()
        self._is_created = False

    @abstractmethod
    def _begin(self, *, durable: bool) -> contextlib.AbstractContextManager[sql.Connection]:
        """Return a transaction that writes; it waits for others that write the same rows.

        Args:
            durable: Whether the commit must survive a power failure. Without the other commits, a job runs again.
        """

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def migrate(self) -> None:
        """Create the tables where they are missing."""
        with self._writing():
            # the first transaction opens the database
            pass

    def _open(self) -> None:
        """Create the tables before the first use."""
        if not self._is_created:
            with self._creating:
                if not self._is_created:
                    self._create()
                    self._is_created = True

    def _create(self) -> None:
        """Create the tables, while no other process does."""
        with self._begin(durable=True) as connection:
            create_tables(connection)

    def _now(self, connection: sql.Connection) -> float:
        """Return the time of a transaction, in seconds since 1970."""
        if self._clock is not None:
            return self._clock()
        return float(connection.execute(sql.select(self._clock_value())).scalar_one())

    def _clock_value(self) -> sql.ColumnElement[float]:
        """Return the time as an SQL expression for a statement, which saves a separate statement."""
        if self._clock is not None:
            return sql.literal(self._clock(), sql.Double)
        return sql.cast(sql.extract("epoch", sql.func.clock_timestamp()), sql.Double)

    @contextlib.contextmanager
    def _writing(self, *, durable: bool = False) -> Iterator[sql.Connection]:
        try:
            self._open()
            with self._begin(durable=durable) as connection:
                yield connection
        except IntegrityError:
            raise
        except (SQLAlchemyError, OSError) as error:
            raise self._unavailable(error) from error

    def _read(self, work: Callable[[sql.Connection], T]) -> T:
        try:
            self._open()
            with self._reader.connect() as connection:
                return work(connection)
        except (SQLAlchemyError, OSError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> JobStoreUnavailable:
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0][:_MAX_REASON_CHARS]
        return JobStoreUnavailable(f"the database of jobs ({self._engine.dialect.name}) cannot be used: {reason}")
