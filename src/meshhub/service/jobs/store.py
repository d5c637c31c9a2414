"""Interface of every store of jobs. The row of a job states which worker runs it, whether it has ended, and its cost.

Every start of a job gets a fresh random token and a lease. `finish` and `release` change the row only if the job still
runs with this token. A worker that was stopped for longer than its lease, and whose job runs elsewhere, therefore has
no effect. The end of a job, its row in the usage ledger and its webhook message are written in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from meshhub.service.jobs.job import (
    Delivery,
    Depth,
    Job,
    JobProgress,
    NewJob,
    Outcome,
    Placement,
    Statistics,
    Swept,
    Usage,
    WorkerNode,
)

LEASE_S = 5.0
"""Seconds after the last heartbeat until a job of a silent worker runs again."""

BEAT_S = 1.0
"""Seconds between two heartbeats; several fit into a lease, so that one slow heartbeat does not lose a job."""

SWEEP_S = 2.0
"""Seconds between two sweeps. A worker that has missed its heartbeats for a lease waits for one lease before it sweeps,
because all leases look lost after an outage of the store or of the machine.
"""

MAX_ATTEMPTS_COUNT = 3
"""Maximum runs of a job, because a job that crashes the service must not do so forever."""

EXPIRED_ROW_S = 86_400.0
"""Seconds for which the row of an expired job is kept, so that its caller can learn the outcome; one day."""

MAX_QUEUED_S = 7 * 86_400.0
"""Seconds after which a job that never ran expires; longer than the outage of a weekend."""

DELIVERY_LEASE_S = 60.0
"""Seconds for one attempt to deliver a webhook; another process may try afterwards."""


class JobStore(Protocol):
    """Jobs, usage ledger and webhook messages; safe to call from several threads and processes.

    Every method may raise JobStoreUnavailable.
    """

    @property
    def deadline_s(self) -> float | None:
        """Seconds that a request waits for the store; None for a store on this machine, which responds or fails."""

    def migrate(self) -> None:
        """Create the tables where they are missing. Every other method does this at its first use."""

    def exists(self) -> bool:
        """Return whether the store has ever been used, because a service without jobs creates nothing."""

    def submit(self, new: NewJob, *, max_queued: int) -> tuple[Job, bool]:
        """Add a job to the queue.

        Args:
            new: Job, whose inputs are stored already.
            max_queued: Jobs of all callers that may wait.
        Returns:
            The job, and whether it is new: a job of the caller with the same idempotency key is returned instead.
        Raises:
            TooManyJobs: The caller already has the maximum number of unfinished jobs.
            ServerBusy: The queue is full.
        """

    def get(self, job_id: str) -> Job | None:
        """Return a job; None if the id is unknown."""

    def find(self, caller: str, idempotency_key: str) -> Job | None:
        """Return the job of a caller with this idempotency key; None if the caller has not used the key."""

    def list_jobs(self, key_id: str, *, limit: int, before: int | None = None) -> list[Job]:
        """Return the latest jobs of an API key, the newest first; only those with a smaller number than `before`."""

    def position(self, job: Job) -> int | None:
        """Estimate the place of a job in the queue, from 1, if callers take turns; None if it does not wait."""

    def missing_memory(self, job: Job) -> int | None:
        """Return the bytes of memory that a queued job needs if no live worker of a cluster has as much, else None."""

    def depth(self, caller: str | None = None) -> Depth:
        """Return the sizes of the queue, or of a caller's part of it."""

    def statistics(self) -> Statistics:
        """Return the state of the queue."""

    def waiting_callers(self, limit: int) -> list[str]:
        """Return the callers with queued jobs, the next one first."""

    def claim(self, worker: str, caller: str | None = None) -> Job | None:
        """Start the oldest job of a caller, with a new token and a lease; None if no job waits.

        Args:
            worker: Name of the process.
            caller: Caller whose job to start; default: the first of `waiting_callers`.
        """

    def release(self, job_id: str, token: str, *, counts: bool = False) -> bool:
        """Return a running job to the queue; False if the token is stale.

        Args:
            token: Token of the run.
            counts: Whether the run counts as an attempt.
        """

    def beat(self, worker: str, progress: Mapping[str, JobProgress]) -> set[str]:
        """Renew the leases of a worker and store the progress of its jobs.

        Args:
            worker: Name of the process.
            progress: Progress that changed since the last heartbeat, by token.
        Returns:
            Tokens of the jobs that the worker still owns. The worker stops all other jobs, because they were canceled
            or run elsewhere.
        """

    def finish(self, job_id: str, token: str, outcome: Outcome) -> bool:
        """End a running job, with its row in the ledger and its webhook message; False if the token is stale."""

    def record_canceled(self, job_id: str, token: str, cpu_seconds: float) -> bool:
        """Add the processor time of a canceled run to its row in the ledger; False if the token is stale."""

    def cancel(self, job_id: str) -> Job | None:
        """Cancel an unfinished job, or expire a finished one; return it, or None if the id is unknown.

        A running worker loses its token immediately, and stops at its next heartbeat.
        """

    def sweep(self) -> Swept:
        """Return jobs with lost leases to the queue, expire jobs, and delete old rows."""

    def select_known(self, job_ids: Iterable[str]) -> set[str]:
        """Return those of the ids whose jobs exist and are not expired; all other files are orphans."""

    def claim_deliveries(self, limit: int) -> list[Delivery]:
        """Return webhook messages that are due; no other process gets them for DELIVERY_LEASE_S."""

    def settle_delivery(self, delivery_id: str, *, retry_in_s: float | None, error: str = "") -> None:
        """Record an attempt to deliver a webhook.

        Args:
            delivery_id: Id of the message.
            retry_in_s: Seconds until the next attempt; None: the message was delivered, or given up with `error`.
            error: Reason of the failure; "" after a success.
        """

    def list_usage(self, *, since: float = 0.0, until: float | None = None, key_id: str | None = None) -> list[Usage]:
        """Return rows of the usage ledger by time of the end, the oldest first."""

    def close(self) -> None:
        """Close the connections."""


class ClusterStore(JobStore, Protocol):
    """Store whose jobs run on several machines: it chooses the worker of each job, and then delivers the job.

    A job that is placed stays `queued` until its worker claims it. After LEASE_S without a claim, a sweep takes the
    placement back.
    """

    def announce(self, node: WorkerNode) -> None:
        """Record that a worker lives, for LEASE_S."""

    def retire(self, worker: str) -> None:
        """Forget a worker, and take back the jobs that it has not claimed."""

    def place_jobs(self) -> list[Placement]:
        """Choose workers for the next jobs, in turns of their callers, as long as slots and memory are free."""

    def claim_placed(self, worker: str, job_id: str) -> Job | None:
        """Start a job with a new token and a lease; None if it is not placed on this worker any more."""
