"""Jobs in an SQL database, in statements that SQLite and PostgreSQL share.

A subclass opens the database and the transactions. Callers take turns by stride scheduling: each has a `pass`, a start
adds 1/weight to it, and the caller with the lowest pass is next. A caller that was idle restarts at the lowest pass of
the others, so that it neither accumulates turns nor waits because of missed ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from meshhub.errors import ServerBusy
from meshhub.service.jobs.database import JobDatabase
from meshhub.service.jobs.job import (
    Delivery,
    Depth,
    Job,
    JobProgress,
    JobState,
    NewJob,
    Outcome,
    Statistics,
    Swept,
    Usage,
    WorkerNode,
    too_many_jobs,
)
from meshhub.service.jobs.rows import encode, to_job
from meshhub.service.jobs.store import (
    DELIVERY_LEASE_S,
    EXPIRED_ROW_S,
    LEASE_S,
    MAX_ATTEMPTS_COUNT,
    MAX_QUEUED_S,
)
from meshhub.service.jobs.tables import CALLERS, DELIVERIES, JOBS, USAGE, WORKERS
from meshhub.service.jobs.transitions import (
    end_job,
    expire_jobs,
    remove_from_counters,
    requeue_job,
    select_job,
    start_job,
    take_turn,
)

_MAX_SWEPT_COUNT = 500
"""Maximum jobs that one sweep changes; bounds the duration of its transaction."""

_UNFINISHED: tuple[JobState, ...] = ("queued", "running")


class SqlJobStore(JobDatabase):
    """Jobs in an SQL database; see `store.JobStore` for the methods."""

    deadline_s: float | None = None

    def __init__(
        self, engine: sql.Engine, *, clock: Callable[[], float] | None = time.time, root_path: str = ""
    ) -> None:
        """Use a database, whose tables are created at the first use.

        Args:
            clock: Returns the time in seconds since 1970; None: the database has a clock.
            root_path: Path of the service behind a proxy, for the URLs in webhook messages.
        """
        super().__init__(engine, clock=clock)
        self._root_path = root_path

    def exists(self) -> bool:
        """Return whether the store has ever been used; True if the store has a separate database."""
        return True

    def submit(self, new: NewJob, *, max_queued: int) -> tuple[Job, bool]:
        """Add a job to the queue, or return the job with its idempotency key. Raises TooManyJobs, ServerBusy."""
        try:
            with self._writing(durable=True) as connection:
                return self._submit(connection, new, max_queued)
        except IntegrityError:
            # two requests with the same idempotency key at the same moment
            existing = self.find(new.caller, new.idempotency_key) if new.idempotency_key is not None else None
            if existing is None:
                raise
            return existing, False

    def _submit(self, connection: sql.Connection, new: NewJob, max_queued: int) -> tuple[Job, bool]:
        now = self._now(connection)
        if new.idempotency_key is not None:
            row = connection.execute(
                sql.select(JOBS).where(JOBS.c.caller == new.caller, JOBS.c.idempotency_key == new.idempotency_key)
            ).first()
            if row is not None:
                return to_job(row), False
        caller = self._lock_caller(connection, new)
        unfinished = caller.queued + caller.running
        if new.max_unfinished is not None and unfinished >= new.max_unfinished:
            raise too_many_jobs(unfinished, new.max_unfinished)
        if connection.execute(sql.select(sql.func.sum(CALLERS.c.queued))).scalar_one() >= max_queued:
            raise ServerBusy("too many jobs are waiting; try again in a moment")
        turn = caller.turn
        if not unfinished:
            lowest = connection.execute(
                sql.select(sql.func.min(CALLERS.c.turn)).where(CALLERS.c.queued + CALLERS.c.running > 0)
            ).scalar()
            turn = max(turn, lowest if lowest is not None else turn)
        size = sum(file.bytes for file in new.request.files)
        connection.execute(
            CALLERS.update()
            .where(CALLERS.c.caller == new.caller)
            .values(turn=turn, weight=new.weight, queued=CALLERS.c.queued + 1, bytes=CALLERS.c.bytes + size)
        )
        values = {name: getattr(new, name) for name in NewJob.__struct_fields__ if name != "request"}
        row = connection.execute(
            JOBS.insert()
            .values(
                **values,
                request=encode(new.request),
                bytes_in=size,
                state="queued",
                created=now,
                expires=now + MAX_QUEUED_S,
            )
            .returning(JOBS)
        ).one()
        return to_job(row), True

    def _lock_caller(self, connection: sql.Connection, new: NewJob) -> Any:
        """Return the row of the caller of a new job, which no other transaction changes until the end of this one."""
        insert = sqlite.insert if self._engine.dialect.name == "sqlite" else postgresql.insert
        statement = insert(CALLERS).values(caller=new.caller, turn=0.0, weight=new.weight, queued=0, running=0, bytes=0)
        # one statement, because a sweep could delete the row of an idle caller between two
        return connection.execute(
            statement.on_conflict_do_update(index_elements=[CALLERS.c.caller], set_={"weight": new.weight}).returning(
                CALLERS
            )
        ).one()

    def get(self, job_id: str) -> Job | None:
        """Return a job; None if the id is unknown."""
        row = self._read(lambda connection: connection.execute(sql.select(JOBS).where(JOBS.c.id == job_id)).first())
        return None if row is None else to_job(row)

    def find(self, caller: str, idempotency_key: str) -> Job | None:
        """Return the job of a caller with this idempotency key; None if the caller has not used the key."""
        query = sql.select(JOBS).where(JOBS.c.caller == caller, JOBS.c.idempotency_key == idempotency_key)
        row = self._read(lambda connection: connection.execute(query).first())
        return None if row is None else to_job(row)

    def list_jobs(self, key_id: str, *, limit: int, before: int | None = None) -> list[Job]:
        """Return the latest jobs of an API key, the newest first."""
        query = sql.select(JOBS).where(JOBS.c.key_id == key_id).order_by(JOBS.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(JOBS.c.number < before)
        return [to_job(row) for row in self._read(lambda connection: connection.execute(query).all())]

    def position(self, job: Job) -> int | None:
        """Estimate the place of a job in the queue, from 1, if callers take turns; None if it does not wait."""
        if job.state != "queued":
            return None

        def estimate(connection: sql.Connection) -> int:
            own: int = connection.execute(
                sql.select(sql.func.count()).where(
                    JOBS.c.caller == job.caller, JOBS.c.state == "queued", JOBS.c.number <= job.number
                )
            ).scalar_one()
            others = connection.execute(
                sql.select(CALLERS.c.queued, CALLERS.c.weight).where(
                    CALLERS.c.queued > 0, CALLERS.c.caller != job.caller
                )
            ).all()
            return max(1, own) + sum(int(min(queued, own * weight // job.weight)) for queued, weight in others)

        return self._read(estimate)

    def missing_memory(self, job: Job) -> int | None:
        """Return the bytes of memory that a queued job needs if no live worker of a cluster has as much, else None."""
        if job.state != "queued" or job.memory_bytes is None:
            return None
        largest = self._read(
            lambda connection: connection.execute(
                sql.select(sql.func.max(WORKERS.c.memory_bytes)).where(
                    WORKERS.c.lease_until >= self._now(connection), WORKERS.c.slots.is_not(None)
                )
            ).scalar()
        )
        return job.memory_bytes if largest is not None and largest < job.memory_bytes else None

    def depth(self, caller: str | None = None) -> Depth:
        """Return the sizes of the queue, or of a caller's part of it."""
        query = _sum_counters()
        if caller is not None:
            query = query.where(CALLERS.c.caller == caller)
        row = self._read(lambda connection: connection.execute(query).one())
        return Depth(*row)

    def statistics(self) -> Statistics:
        """Return the state of the queue."""

        def measure(connection: sql.Connection) -> Statistics:
            queued, running, _ = connection.execute(_sum_counters()).one()
            oldest, needed = connection.execute(
                sql.select(sql.func.min(JOBS.c.created), sql.func.max(JOBS.c.memory_bytes)).where(
                    JOBS.c.state == "queued"
                )
            ).one()
            now = self._now(connection)
            nodes = connection.execute(
                sql.select(WORKERS.c.worker, WORKERS.c.slots, WORKERS.c.memory_bytes)
                .where(WORKERS.c.lease_until >= now)
                .order_by(WORKERS.c.worker)
            ).all()
            age_s = max(0.0, now - oldest) if oldest is not None else 0.0
            return Statistics(queued, running, age_s, tuple(WorkerNode(*node) for node in nodes), needed or 0)

        return self._read(measure)

    def waiting_callers(self, limit: int) -> list[str]:
        """Return the callers with queued jobs, the next one first."""
        return self._read(lambda connection: list(connection.execute(_next_callers(limit)).scalars()))

    def claim(self, worker: str, caller: str | None = None) -> Job | None:
        """Start the oldest job of a caller, with a new token and a lease; None if no job waits."""
        with self._writing() as connection:
            if caller is None:
                caller = connection.execute(_next_callers(1).with_for_update()).scalar()
            number = connection.execute(
                sql.select(JOBS.c.number)
                .where(JOBS.c.caller == caller, JOBS.c.state == "queued", JOBS.c.placed.is_(None))
                .order_by(JOBS.c.number)
                .limit(1)
                .with_for_update(skip_locked=True)
            ).scalar()
            if caller is None or number is None:
                return None
            take_turn(connection, caller)
            return start_job(connection, number, caller, worker, self._clock_value())

    def release(self, job_id: str, token: str, *, counts: bool = False) -> bool:
        """Return a running job to the queue; False if the token is stale."""
        with self._writing() as connection:
            row = self._lock_run(connection, job_id, token)
            if row is not None:
                requeue_job(connection, row, attempt=row.attempt if counts else row.attempt - 1)
            return row is not None

    def beat(self, worker: str, progress: Mapping[str, JobProgress]) -> set[str]:
        """Renew the leases of a worker, store the progress of its jobs, and return the tokens that it still owns."""
        with self._writing() as connection:
            mine = sql.and_(JOBS.c.worker == worker, JOBS.c.state == "running")
            connection.execute(JOBS.update().where(mine).values(lease_until=self._now(connection) + LEASE_S))
            for token, value in progress.items():
                connection.execute(JOBS.update().where(mine, JOBS.c.token == token).values(progress=encode(value)))
            return set(connection.execute(sql.select(JOBS.c.token).where(mine)).scalars())

    def finish(self, job_id: str, token: str, outcome: Outcome) -> bool:
        """End a running job, with its row in the ledger and its webhook message; False if the token is stale."""
        with self._writing() as connection:
            row = self._lock_run(connection, job_id, token)
            if row is not None:
                self._end(connection, row, "done" if not outcome.error_code else "failed", outcome)
            return row is not None

    def record_canceled(self, job_id: str, token: str, cpu_seconds: float) -> bool:
        """Add the processor time of a canceled run to its row in the ledger; False if the token is stale."""
        run = sql.exists().where(JOBS.c.id == job_id, JOBS.c.token == token, JOBS.c.state == "canceled")
        with self._writing() as connection:
            changed = connection.execute(
                USAGE.update().where(USAGE.c.job_id == job_id, run).values(cpu_seconds=cpu_seconds)
            )
            return changed.rowcount > 0

    def cancel(self, job_id: str) -> Job | None:
        """Cancel an unfinished job, or expire a finished one; return it, or None if the id is unknown."""
        with self._writing() as connection:
            row = connection.execute(sql.select(JOBS).where(JOBS.c.id == job_id).with_for_update()).first()
            if row is None:
                return None
            if row.state in _UNFINISHED:
                self._end(connection, row, "canceled", None)
            elif row.state != "expired":
                expire_jobs(connection, [row.number], self._now(connection))
            return select_job(connection, row.number)

    def sweep(self) -> Swept:
        """Return jobs with lost leases to the queue, expire jobs, and delete old rows."""
        requeued, lost = [], []
        with self._writing() as connection:
            now = self._now(connection)
            silent = sql.and_(JOBS.c.state == "running", JOBS.c.lease_until < now)
            for row in connection.execute(_some(silent)).all():
                if row.attempt < MAX_ATTEMPTS_COUNT:
                    requeue_job(connection, row, attempt=row.attempt)
                    requeued.append(row.id)
                else:
                    self._end(connection, row, "failed", _worker_lost(row.attempt))
                    lost.append(row.id)
            old = connection.execute(_some(sql.and_(JOBS.c.expires < now, JOBS.c.state != "expired"))).all()
            for row in old:
                if row.state == "queued":
                    remove_from_counters(connection, row)
            expire_jobs(connection, [row.number for row in old], now)
            connection.execute(JOBS.delete().where(JOBS.c.state == "expired", JOBS.c.expires < now - EXPIRED_ROW_S))
            connection.execute(
                DELIVERIES.delete().where(DELIVERIES.c.due.is_(None), DELIVERIES.c.created < now - EXPIRED_ROW_S)
            )
            # idle callers need no row, because they restart at the lowest pass of the others
            connection.execute(CALLERS.delete().where(CALLERS.c.queued == 0, CALLERS.c.running == 0))
        return Swept(tuple(requeued), tuple(lost), tuple(row.id for row in old))

    def select_known(self, job_ids: Iterable[str]) -> set[str]:
        """Return those of the ids whose jobs exist and are not expired."""
        query = sql.select(JOBS.c.id).where(JOBS.c.id.in_(list(job_ids)), JOBS.c.state != "expired")
        return self._read(lambda connection: set(connection.execute(query).scalars()))

    def claim_deliveries(self, limit: int) -> list[Delivery]:
        """Return webhook messages that are due; no other process gets them for DELIVERY_LEASE_S."""
        with self._writing() as connection:
            now = self._now(connection)
            rows = connection.execute(
                sql.select(DELIVERIES)
                .where(DELIVERIES.c.due <= now)
                .order_by(DELIVERIES.c.due)
                .limit(limit)
                .with_for_update(skip_locked=True)
            ).all()
            connection.execute(
                DELIVERIES.update()
                .where(DELIVERIES.c.id.in_([row.id for row in rows]))
                .values(due=now + DELIVERY_LEASE_S, attempts=DELIVERIES.c.attempts + 1)
            )
        return [
            Delivery(
                id=row.id,
                job_id=row.job_id,
                key_id=row.key_id,
                url=row.url,
                payload=row.payload,
                attempt=row.attempts + 1,
            )
            for row in rows
        ]

    def settle_delivery(self, delivery_id: str, *, retry_in_s: float | None, error: str = "") -> None:
        """Record an attempt to deliver a webhook."""
        with self._writing() as connection:
            due = None if retry_in_s is None else self._now(connection) + retry_in_s
            connection.execute(DELIVERIES.update().where(DELIVERIES.c.id == delivery_id).values(due=due, error=error))

    def list_usage(self, *, since: float = 0.0, until: float | None = None, key_id: str | None = None) -> list[Usage]:
        """Return rows of the usage ledger by time of the end, the oldest first."""
        query = sql.select(USAGE).where(USAGE.c.finished >= since).order_by(USAGE.c.finished, USAGE.c.job_id)
        if until is not None:
            query = query.where(USAGE.c.finished < until)
        if key_id is not None:
            query = query.where(USAGE.c.key_id == key_id)
        rows = self._read(lambda connection: connection.execute(query).mappings().all())
        return [Usage(**row) for row in rows]

    def _lock_run(self, connection: sql.Connection, job_id: str, token: str) -> Any:
        """Return the row of a job that is still running with a token, None otherwise."""
        return connection.execute(
            sql.select(JOBS)
            .where(JOBS.c.id == job_id, JOBS.c.token == token, JOBS.c.state == "running")
            .with_for_update()
        ).first()

    def _end(self, connection: sql.Connection, row: Any, state: JobState, outcome: Outcome | None) -> None:
        end_job(connection, row, state, outcome, now=self._now(connection), root_path=self._root_path)


def _sum_counters() -> sql.Select[*tuple[Any, ...]]:
    """Return the query of the sizes of the queue."""
    columns: list[sql.ColumnElement[int]] = [CALLERS.c.queued, CALLERS.c.running, CALLERS.c.bytes]
    sums = [sql.cast(sql.func.coalesce(sql.func.sum(column), 0), sql.BigInteger) for column in columns]
    return sql.select(*sums)


def _next_callers(limit: int) -> sql.Select[Any]:
    """Return the query of `waiting_callers`: the lowest pass first, then the largest weight."""
    return (
        sql.select(CALLERS.c.caller)
        .where(CALLERS.c.queued > 0)
        .order_by(CALLERS.c.turn, CALLERS.c.weight.desc(), CALLERS.c.caller)
        .limit(limit)
    )


def _some(condition: sql.ColumnElement[bool]) -> sql.Select[Any]:
    """Return the query of some jobs to sweep, without those that another transaction is changing."""
    return (
        sql.select(JOBS)
        .where(condition)
        .order_by(JOBS.c.number)
        .limit(_MAX_SWEPT_COUNT)
        .with_for_update(skip_locked=True)
    )


def _worker_lost(attempts: int) -> Outcome:
    return Outcome(
        error_code="worker_lost",
        error=f"the service ended {attempts} times while it ran this job, perhaps for other reasons; submit it again",
    )
