"""Jobs in a PostgreSQL database: for several machines."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sql

from meshhub.service.jobs import delivery
from meshhub.service.jobs.delivery import check_open
from meshhub.service.jobs.job import Job, Placement, Swept, WorkerNode
from meshhub.service.jobs.placement import announce, place_jobs, retire, withdraw_placements
from meshhub.service.jobs.schema import create_tables
from meshhub.service.jobs.sql import SqlJobStore
from meshhub.service.jobs.tables import JOBS
from meshhub.service.jobs.transitions import start_job
from meshhub.service.key_database import parse_url

_CONNECT_TIMEOUT_S = 2
"""Seconds for a connection; the minimum that psycopg accepts."""

_WAIT_TIMEOUT_S = 2.0
"""Seconds for a statement, measured by this side, because a frozen server does not end its statements, and the kernel
of its machine still acknowledges packets.
"""

_STATEMENT_TIMEOUT_S = 5
"""Seconds after which the server ends a statement whose client has given up, and the kernel ends a silent connection.
"""

_POOL_TIMEOUT_S = 1.0
"""Seconds to wait for a free connection; short, because there are hardly more threads for jobs than connections."""

_POOL_SIZE = 8
"""Connections of one process: one for each thread that uses the store."""

_CREATION_LOCK = 0x6D657368
"""Key of the advisory lock for the creation of tables: "mesh"."""

_PLACEMENT_LOCK = _CREATION_LOCK + 1
"""Key of the advisory lock of placements."""

T = TypeVar("T")


class PostgresJobStore(SqlJobStore):
    """Jobs in a PostgreSQL database, which processes of several machines may use."""

    deadline_s = 0.8
    """Seconds; with the rest of a request, a caller gets a response within a second."""

    def __init__(self, url: str, *, clock: Callable[[], float] | None = None, root_path: str = "") -> None:
        """Use a database, to which the first use connects.

        Args:
            url: SQLAlchemy URL.
            clock: Returns the time in seconds since 1970; default: that of the database, because clocks of machines
                differ.
            root_path: Path of the service behind a proxy, for the URLs in webhook messages.
        Raises:
            ValueError: The URL is malformed, or a package is missing; passwords are masked.
        """
        parsed = parse_url(url)
        options = parsed.query.get("options", "")
        engine = sql.create_engine(
            parsed,
            connect_args={
                "connect_timeout": _CONNECT_TIMEOUT_S,
                # a database in SQL_ASCII returns bytes otherwise
                "client_encoding": "utf8",
                "tcp_user_timeout": 1000 * _STATEMENT_TIMEOUT_S,
                "options": f"{options} -c statement_timeout={_STATEMENT_TIMEOUT_S}s".strip(),
            },
            pool_size=_POOL_SIZE,
            pool_timeout=_POOL_TIMEOUT_S,
        )
        super().__init__(engine, clock=clock, root_path=root_path)
        sql.event.listen(engine, "do_connect", _connect)
        sql.event.listen(engine, "checkout", _check)

    def _create(self) -> None:
        with self._begin(durable=True) as connection:
            connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_CREATION_LOCK)))
            create_tables(connection)
            delivery.create_tables(connection)

    def announce(self, node: WorkerNode) -> None:
        """Record that a worker lives, for LEASE_S."""
        with self._writing() as connection:
            announce(connection, node, self._now(connection))

    def retire(self, worker: str) -> None:
        """Forget a worker, and take back the jobs that it has not claimed."""
        with self._writing() as connection:
            retire(connection, worker)

    def place_jobs(self) -> list[Placement]:
        """Choose workers for the next jobs, in turns of their callers, as long as slots and memory are free."""
        with self._writing() as connection:
            # one placement at a time, so that each counts the slots that the last one has taken
            lock = sql.func.pg_advisory_xact_lock(_PLACEMENT_LOCK)
            now = connection.execute(sql.select(lock, self._clock_value())).one()[1]
            return place_jobs(connection, now)

    def claim_placed(self, worker: str, job_id: str) -> Job | None:
        """Start a job with a new token and a lease; None if the job is no longer placed on this worker."""
        with self._writing() as connection:
            row = connection.execute(
                sql.select(JOBS.c.number, JOBS.c.caller)
                .where(JOBS.c.id == job_id, JOBS.c.worker == worker, JOBS.c.state == "queued")
                .with_for_update()
            ).first()
            return None if row is None else start_job(connection, *row, worker, self._clock_value())

    def sweep(self) -> Swept:
        """Sweep, as on one machine, and take back placements that no worker has claimed."""
        with self._writing() as connection:
            withdraw_placements(connection, self._now(connection))
        return super().sweep()

    @contextlib.contextmanager
    def _begin(self, *, durable: bool) -> Iterator[sql.Connection]:  # noqa: ARG002 - every commit is durable
        # with synchronous_commit = off for claims, 1 or 2 jobs ran twice in an outage
        with self._engine.begin() as connection:
            yield connection


class _Connection(psycopg.Connection[Any]):
    """Connection whose statements have a deadline on this side."""

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **keywords: Any) -> T:
        """Run a statement; close the connection at the deadline."""
        return super().wait(self._limit(gen), *arguments, **keywords)

    def _limit(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        deadline = time.monotonic() + _WAIT_TIMEOUT_S
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready and time.monotonic() > deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"the server did not respond within {_WAIT_TIMEOUT_S:g} s")
                state = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result


def _connect(_dialect: object, _record: object, arguments: list[Any], keywords: dict[str, Any]) -> _Connection:
    return _Connection.connect(*arguments, **keywords)


def _check(connection: psycopg.Connection[Any], _record: object, _proxy: object) -> None:
    """Replace the connections of the pool if the server has closed this one."""
    try:
        check_open(connection)
    except psycopg.Error as error:
        raise sql.exc.InvalidatePoolError from error
