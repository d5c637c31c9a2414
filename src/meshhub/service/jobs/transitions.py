"""Changes of a job's state inside a transaction: its row, the counters of its caller, ledger and webhook message."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
import sqlalchemy as sql

from meshhub.service.jobs.description import describe_job
from meshhub.service.jobs.job import Job, JobRequest, JobState, Outcome, Usage
from meshhub.service.jobs.rows import encode, format_time, to_job
from meshhub.service.jobs.store import LEASE_S, MAX_QUEUED_S
from meshhub.service.jobs.tables import CALLERS, DELIVERIES, JOBS, USAGE

_TOKEN_BYTES = 16
"""Random bytes of the token of a run."""


def select_job(connection: sql.Connection, number: int) -> Job:
    """Return a job that exists."""
    return to_job(connection.execute(sql.select(JOBS).where(JOBS.c.number == number)).one())


def start_job(connection: sql.Connection, number: int, caller: str, worker: str, now: sql.ColumnElement[float]) -> Job:
    """Start a queued job with a new token and a lease."""
    row = connection.execute(
        JOBS.update()
        .where(JOBS.c.number == number)
        .values(
            state="running",
            started=now,
            attempt=JOBS.c.attempt + 1,
            token=secrets.token_hex(_TOKEN_BYTES),
            worker=worker,
            lease_until=now + LEASE_S,
            expires=None,
            progress=None,
            placed=None,
        )
        .returning(JOBS)
    ).one()
    connection.execute(
        CALLERS.update()
        .where(CALLERS.c.caller == caller)
        .values(queued=CALLERS.c.queued - 1, running=CALLERS.c.running + 1)
    )
    return to_job(row)


def take_turn(connection: sql.Connection, caller: str) -> None:
    """Move a caller back in the order of turns, by one job of its weight."""
    connection.execute(
        CALLERS.update().where(CALLERS.c.caller == caller).values(turn=CALLERS.c.turn + 1.0 / CALLERS.c.weight)
    )


def requeue_job(connection: sql.Connection, row: Any, *, attempt: int) -> None:
    """Return a running job to the queue."""
    connection.execute(
        JOBS.update()
        .where(JOBS.c.number == row.number)
        .values(
            state="queued",
            attempt=attempt,
            token=None,
            worker=None,
            lease_until=None,
            progress=None,
            expires=row.created + MAX_QUEUED_S,
        )
    )
    connection.execute(
        CALLERS.update()
        .where(CALLERS.c.caller == row.caller)
        .values(queued=CALLERS.c.queued + 1, running=CALLERS.c.running - 1)
    )


def end_job(
    connection: sql.Connection, row: Any, state: JobState, outcome: Outcome | None, *, now: float, root_path: str
) -> None:
    """End a job: its row, the counters of its caller, the ledger if it ran, and the webhook message."""
    connection.execute(
        JOBS.update()
        .where(JOBS.c.number == row.number)
        .values(
            state=state,
            finished=now,
            expires=None if row.retention_s is None else now + row.retention_s,
            # the token stays, because it names the folder of the result
            lease_until=None,
            progress=None,
            outcome=None if outcome is None else encode(outcome),
        )
    )
    remove_from_counters(connection, row)
    if row.state == "running":
        _add_usage(connection, row, state, outcome, now)
    if row.webhook_url is not None:
        _add_delivery(connection, select_job(connection, row.number), now, root_path)


def remove_from_counters(connection: sql.Connection, row: Any) -> None:
    """Remove an unfinished job from the counters of its caller."""
    column = CALLERS.c.running if row.state == "running" else CALLERS.c.queued
    connection.execute(
        CALLERS.update()
        .where(CALLERS.c.caller == row.caller)
        .values({column: column - 1, CALLERS.c.bytes: CALLERS.c.bytes - row.bytes_in})
    )


def expire_jobs(connection: sql.Connection, numbers: list[int], now: float) -> None:
    """Expire jobs, and forget the names and options that their callers sent."""
    connection.execute(
        JOBS.update()
        .where(JOBS.c.number.in_(numbers))
        .values(
            state="expired",
            expires=now,
            request=encode(JobRequest()),
            outcome=None,
            webhook_url=None,
            idempotency_key=None,
        )
    )


def _add_usage(connection: sql.Connection, row: Any, state: JobState, outcome: Outcome | None, now: float) -> None:
    result = outcome.result if outcome is not None else None
    usage = Usage(
        job_id=row.id,
        caller=row.caller,
        key_id=row.key_id,
        plan=row.plan,
        kind=row.kind,
        state=state,
        finished=now,
        attempts=row.attempt,
        bytes_in=row.bytes_in,
        bytes_out=result.bytes if result is not None else 0,
        cpu_seconds=outcome.cpu_seconds if outcome is not None else 0.0,
    )
    connection.execute(USAGE.insert().values(**msgspec.structs.asdict(usage)))


def _add_delivery(connection: sql.Connection, job: Job, now: float, root_path: str) -> None:
    description = describe_job(job, root_path=root_path)
    payload = {"type": f"job.{job.state}", "timestamp": format_time(now), "data": description}
    connection.execute(
        DELIVERIES.insert().values(
            id=f"msg_{secrets.token_hex(_TOKEN_BYTES)}",
            job_id=job.id,
            key_id=job.key_id,
            url=job.webhook_url,
            payload=msgspec.json.encode(payload).decode(),
            created=now,
            attempts=0,
            due=now,
            error="",
        )
    )
