"""Delivery of placed jobs to the workers of a cluster, by Procrastinate in the database of jobs.

Each worker has its own queue, and starts a job as soon as it arrives. The row of the job decides whether it starts: a
delivery that arrives twice, late or at the wrong worker has no effect, so its loss only costs time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Any

import procrastinate
import psycopg
import sqlalchemy as sql
from procrastinate.exceptions import ProcrastinateException
from procrastinate.schema import SchemaManager
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.engine import URL

from meshhub.errors import JobStoreUnavailable
from meshhub.service.jobs.job import Placement
from meshhub.service.key_database import parse_url

_TASK = "meshhub.start_job"
"""Name of the task that starts a job."""

_HEARTBEAT_S = 1.0
"""Seconds between two heartbeats of a worker."""

_STALLED_S = 4.0
"""Seconds without a heartbeat after which a delivery is repeated. By default, Procrastinate finds lost ones after 30 s
or never."""

_POLL_S = 0.25
"""Seconds between polls for deliveries. Procrastinate loses a notification that arrives during a poll, which happens
between short jobs, so the worker waits for the next poll. A poll costs 2 ms of processor time.
"""

_POOL_TIMEOUT_S = 1.0
"""Seconds to wait for a connection; with the default, a process waits for 30 s in each outage."""

_CALL_TIMEOUT_S = 2.0
"""Seconds for a call, because a frozen server does not end a call itself."""

_MAX_CONNECTIONS_COUNT = 4
"""Connections of one process, without that of LISTEN."""

_CONNECTION_OPTIONS = {
    "connect_timeout": 2,
    "client_encoding": "utf8",
    "tcp_user_timeout": 5000,
    # a connection that waits for notifications also notices that the server is gone
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


def create_tables(connection: sql.Connection) -> None:
    """Create the tables of Procrastinate, unless they exist; the caller excludes other processes."""
    if not sql.inspect(connection).has_table("procrastinate_jobs"):
        # a percent sign in the schema is not a parameter
        connection.execution_options(no_parameters=True).exec_driver_sql(SchemaManager.get_schema())


def check_open(connection: psycopg.BaseConnection[Any]) -> None:
    """Raise psycopg.Error if the server has closed an idle connection.

    It reads only data that has arrived, because a statement for each use of a connection would cost a third of a
    millisecond.
    """
    for _ in range(2):
        # the first read may return only the last message of the server, and the second one the end of the connection
        connection.pgconn.consume_input()


async def _check_open(connection: psycopg.AsyncConnection[Any]) -> None:
    check_open(connection)


class JobDelivery:
    """Queues of all workers, for use in one event loop. The first call connects. Methods raise JobStoreUnavailable."""

    def __init__(self, url: str) -> None:
        """Use a database.

        Args:
            url: SQLAlchemy URL of a database of jobs, which has created the tables.
        """
        self._pool = AsyncConnectionPool(
            _to_conninfo(parse_url(url)),
            min_size=1,
            max_size=_MAX_CONNECTIONS_COUNT,
            timeout=_POOL_TIMEOUT_S,
            kwargs=_CONNECTION_OPTIONS,
            check=_check_open,
            open=False,
        )
        self._app = procrastinate.App(connector=procrastinate.PsycopgConnector())
        self._app.task(name=_TASK)(self._start)
        self._start_job: Callable[[str], Awaitable[None]] | None = None
        # the process logs outages itself, in one line each
        for name in ("procrastinate", "psycopg.pool"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    async def _open(self) -> None:
        """Start to connect, unless it has started."""
        if self._pool.closed:
            await self._pool.open(wait=False)
            await self._app.open_async(self._pool)

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def send(self, placements: Sequence[Placement]) -> None:
        """Deliver jobs to their workers, in one statement."""
        if not placements:
            return
        await self._open()
        jobs = [
            self._app.configure_task(_TASK, queue=placement.worker).make_new_job(job_id=placement.job_id)
            for placement in placements
        ]
        async with _reporting():
            await self._app.job_manager.batch_defer_jobs_async(jobs)

    async def receive(self, worker: str, slots: int, start: Callable[[str], Awaitable[None]]) -> None:
        """Call a function with the id of each job that is delivered to a worker, until an error or a cancellation."""
        self._start_job = start
        await self._open()
        try:
            await self._app.run_worker_async(
                queues=[worker],
                name=worker,
                concurrency=slots,
                fetch_job_polling_interval=_POLL_S,
                update_heartbeat_interval=_HEARTBEAT_S,
                stalled_worker_timeout=_STALLED_S,
                delete_jobs="always",
                install_signal_handlers=False,
            )
        except (ProcrastinateException, psycopg.Error, OSError) as error:
            raise _unavailable(error) from error
        raise JobStoreUnavailable("the database of jobs (postgresql) closed the connection that delivers jobs")

    async def _start(self, job_id: str) -> None:
        if self._start_job is not None:
            await self._start_job(job_id)

    async def repeat_stalled(self, workers: Collection[str]) -> None:
        """Repeat the deliveries to workers that stopped meanwhile, and remove those to workers that no longer exist."""
        await self._open()
        async with _reporting():
            manager = self._app.job_manager
            for job in await manager.get_stalled_jobs(seconds_since_heartbeat=_STALLED_S):
                await manager.retry_job(job)
            for job in await manager.list_jobs_async(status="todo"):
                if job.queue not in workers and job.id is not None:
                    await manager.cancel_job_by_id_async(job.id, delete_job=True)


@contextlib.asynccontextmanager
async def _reporting() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            yield
    except (ProcrastinateException, psycopg.Error, OSError) as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> JobStoreUnavailable:
    reason = str(error.__cause__ or error).partition("\n")[0] or type(error).__name__
    return JobStoreUnavailable(f"the database of jobs (postgresql) does not deliver: {reason}")


def _to_conninfo(url: URL) -> str:
    """Return the connection string of a SQLAlchemy URL."""
    values = url.translate_connect_args(username="user", database="dbname")
    return psycopg.conninfo.make_conninfo(**{**url.query, **values})
