"""Jobs in a SQLite file: for one machine, with nothing to install."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import URL

from meshhub.errors import JobStoreUnavailable
from meshhub.service.jobs.job import Job, NewJob
from meshhub.service.jobs.sql import SqlJobStore

_LOCK_TIMEOUT_S = 30.0
"""Seconds that a transaction waits for others. Each takes a millisecond, but without a queue, some wait long. """

_RESERVE_BYTES = 256 << 10
"""Bytes for the change of a row on a full disk, which takes a dozen pages of 4 kB."""

_PRAGMAS = (
    # readers do not wait for the writer, and the next process recovers the file that a killed process leaves
    "PRAGMA journal_mode = WAL",
    # a commit survives the end of the process; only `durable` commits survive a power failure, in 6 ms instead of 0.03
    # ms
    "PRAGMA synchronous = NORMAL",
)


class SqliteJobStore(SqlJobStore):
    """Jobs in a SQLite file, which several processes of this machine may use."""

    def __init__(self, file: Path, *, clock: Callable[[], float] = time.time, root_path: str = "") -> None:
        """Use a file, which is created at the first use.

        Args:
            clock: Returns the time in seconds since 1970.
            root_path: Path of the service behind a proxy, for the URLs in webhook messages.
        """
        engine = sql.create_engine(
            URL.create("sqlite", database=str(file)),
            connect_args={"timeout": _LOCK_TIMEOUT_S},
            # `_begin` sends BEGIN itself, because a transaction that reads first and writes later could fail as locked
            isolation_level="AUTOCOMMIT",
        )
        super().__init__(engine, clock=clock, root_path=root_path)
        self._file = file
        self._reserve = file.with_suffix(".reserve")
        # threads of this process take turns instead of polling the lock of the file
        self._writer = threading.Lock()
        sql.event.listen(engine, "connect", _set_pragmas)

    def submit(self, new: NewJob, *, max_queued: int) -> tuple[Job, bool]:
        """Add a job to the queue, as every store does, and keep space in reserve for its end."""
        self._keep_reserve()
        return super().submit(new, max_queued=max_queued)

    def cancel(self, job_id: str) -> Job | None:
        """Cancel or expire a job, as every store does, also on a full disk."""
        try:
            return super().cancel(job_id)
        except JobStoreUnavailable:
            if not self._reserve.exists():
                raise
            self._reserve.unlink(missing_ok=True)
            return super().cancel(job_id)

    def _keep_reserve(self) -> None:
        """Occupy space that `cancel` frees if the disk is full."""
        if not self._reserve.exists():
            with contextlib.suppress(OSError):
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._reserve.write_bytes(bytes(_RESERVE_BYTES))

    def exists(self) -> bool:
        """Return whether the file exists."""
        return self._file.is_file()

    def _create(self) -> None:
        # the ids in the file give access to results
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file.touch(mode=0o600, exist_ok=True)
        super()._create()

    @contextlib.contextmanager
    def _begin(self, *, durable: bool) -> Iterator[sql.Connection]:
        with self._writer, self._engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")


def _set_pragmas(connection: Any, _: object) -> None:
    for pragma in _PRAGMAS:
        connection.execute(pragma)
