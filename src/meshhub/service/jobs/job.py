"""Jobs and everything that a store keeps about them. Times are seconds since 1970, UTC."""

from __future__ import annotations

import secrets
from typing import Literal, get_args

from msgspec import Struct

from meshhub.errors import ErrorValue, TooManyJobs
from meshhub.model.progress import Progress
from meshhub.model.report import FileError

JobKind = Literal["convert", "inspect", "check", "combine"]

JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)
"""Every kind that this version runs; the store may have others, which a later version submitted."""

ReportKind = Literal["html", "pdf", "glb"]
"""Format of the report of a check; "glb" is the model in the colors of its findings."""

JobState = Literal["queued", "running", "done", "failed", "canceled", "expired"]
"""`queued` → `running` → `done`, `failed` or `canceled` → `expired` when the retention is over. A lost lease returns a
running job to `queued`."""

UploadField = Literal["file", "files", "archive"]

FINISHED: tuple[JobState, ...] = ("done", "failed", "canceled", "expired")
"""States that never return to the queue."""

_ID_BYTES = 32
"""Random bytes of a job's id: 256 bits, because the id alone gives access to results of callers without a key."""


def new_id() -> str:
    """Return the id of a new job, which cannot be guessed."""
    # at the start, a dash would make it a flag of commands
    while (identifier := secrets.token_urlsafe(_ID_BYTES)).startswith("-"):
        pass
    return identifier


class JobFile(Struct, frozen=True):
    """Uploaded file."""

    name: str
    """Label, not a path."""

    bytes: int
    """Size."""


class JobRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Checked request of a job."""

    field: UploadField = "file"
    """Field of the upload: one file, several files, or an archive of models."""

    files: tuple[JobFile, ...] = ()
    """Uploads, in order; their content is in the job's folder of inputs."""

    texts: dict[str, str] = {}
    """Text fields of the form: target, options, and options of single files."""

    language: str = ""
    """Language of the messages in the result; "" for English."""

    grants: tuple[str, ...] = ()
    """Entitlements of the caller at the time of the request."""

    can_share_worker: bool = False
    """Whether jobs of the caller may share a process, because the caller is certainly a single party. """


class NewJob(Struct, frozen=True, kw_only=True):
    """Job to submit."""

    id: str
    """See `new_id`."""

    kind: JobKind
    """What to do."""

    caller: str
    """Rate limit key of the caller, for limits and fairness."""

    plan: str
    """Id of the caller's plan."""

    request: JobRequest
    """What to run."""

    key_id: str = ""
    """Public id of the API key; "" without a key."""

    weight: int = 1
    """Share of the workers that the caller gets, relative to other callers."""

    retention_s: float | None = None
    """Seconds for which the result is kept; None: until it is deleted."""

    max_unfinished: int | None = None
    """Maximum unfinished jobs of the caller, including this one."""

    idempotency_key: str | None = None
    """Key of the caller for this job; a second request with the same key returns the same job."""

    fingerprint: str = ""
    """Hash of the request, which distinguishes another request with the same idempotency key."""

    webhook_url: str | None = None
    """Address that is informed of the end of the job."""

    memory_bytes: int | None = None
    """Memory that the job needs; None: that of a small job."""


class JobProgress(Struct, frozen=True):
    """Progress of a running job."""

    step: Progress
    """Running step of the current file."""

    file: int = 0
    """Number of the current file, from 0."""

    files: int = 1
    """Number of files."""


class JobResult(Struct, frozen=True, kw_only=True):
    """Result file of a job that is done."""

    name: str
    """Name for the caller."""

    media_type: str
    """Media type."""

    bytes: int
    """Size."""

    sha256: str
    """Hash of the content, in hexadecimal digits."""

    headers: dict[str, str] = {}
    """Further headers of the response: the report and the counts of a batch."""


class Outcome(Struct, frozen=True, kw_only=True):
    """End of a run: a result or an error."""

    result: JobResult | None = None
    """Result; None after an error."""

    error_code: str = ""
    """Stable code; "" after a success."""

    error: str = ""
    """Message for people."""

    error_values: dict[str, ErrorValue] = {}
    """Numbers and names in the message."""

    details: list[FileError] | None = None
    """One row for each file that failed, if all files of a batch failed."""

    cpu_seconds: float = 0.0
    """Processor time of the run."""


class Job(NewJob, frozen=True, kw_only=True):
    """Row of a job."""

    number: int
    """Order of submission."""

    state: JobState
    """Where the job stands."""

    created: float
    """Time of submission."""

    started: float | None = None
    """Start of the latest run."""

    finished: float | None = None
    """Time of the end."""

    expires: float | None = None
    """Time at which the result is deleted; None: not known yet, or never."""

    attempt: int = 0
    """Number of runs that have started."""

    token: str | None = None
    """Random text of the latest run: only its owner may finish the job."""

    worker: str | None = None
    """Process of the run."""

    progress: JobProgress | None = None
    """Latest progress that the store knows."""

    outcome: Outcome | None = None
    """End of the job; None before the end, and for a canceled job."""

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended."""
        return self.state in FINISHED

    @property
    def result(self) -> JobResult | None:
        """The result; None unless the job is done and not expired."""
        return self.outcome.result if self.outcome is not None and self.state == "done" else None


class Usage(Struct, frozen=True, kw_only=True):
    """Row of the usage ledger: one for each job that ran and ended."""

    job_id: str
    caller: str
    key_id: str
    plan: str
    kind: str
    state: str
    finished: float
    attempts: int
    bytes_in: int
    bytes_out: int
    cpu_seconds: float


class Delivery(Struct, frozen=True, kw_only=True):
    """Webhook message that is due."""

    id: str
    """Stable id of the message, for receivers that drop repetitions."""

    job_id: str
    key_id: str
    url: str
    payload: str
    """Body, the same in every attempt."""

    attempt: int
    """Number of this attempt, from 1."""


class Depth(Struct, frozen=True):
    """Sizes of the queue."""

    queued: int
    running: int
    bytes: int
    """Bytes of the inputs of unfinished jobs."""


class WorkerNode(Struct, frozen=True):
    """Process of a cluster that runs jobs."""

    worker: str
    """Name."""

    slots: int | None
    """Maximum parallel jobs; None: the process starts no more."""

    memory_bytes: int
    """Memory that its jobs may use together."""


class Placement(Struct, frozen=True):
    """Job that a worker of a cluster is to start."""

    job_id: str
    worker: str


class Statistics(Struct, frozen=True):
    """State of the queue, for operators."""

    queued: int
    running: int
    oldest_s: float
    """Seconds for which the oldest queued job has waited; 0 without one."""

    workers: tuple[WorkerNode, ...] = ()
    """Live workers of a cluster; empty on one machine."""

    needed_bytes: int = 0
    """Largest memory that a queued job needs; 0 without one."""

    @property
    def cluster_fault(self) -> tuple[str, str] | None:
        """Why jobs of a cluster wait that no worker will start, and what to do; None if there are none."""
        largest = max((node.memory_bytes for node in self.workers if node.slots), default=0)
        if not self.workers:
            return "no worker of the cluster runs, so jobs wait", "start one: meshhub work"
        if largest and largest < self.needed_bytes:
            return (
                f"a queued job needs {self.needed_bytes / 2**30:.1f} GiB of memory, and the largest worker has "
                f"{largest / 2**30:.1f} GiB",
                "start one with a larger worker_memory_bytes",
            )
        return None


class Swept(Struct, frozen=True):
    """Jobs that a sweep changed."""

    requeued: tuple[str, ...] = ()
    """Jobs whose lease was lost; they run again."""

    lost: tuple[str, ...] = ()
    """Jobs whose lease was lost too often; they failed."""

    expired: tuple[str, ...] = ()
    """Jobs whose files can be removed."""


def too_many_jobs(count: int, limit: int) -> TooManyJobs:
    """Return the error for a caller who has as many unfinished jobs as the plan allows."""
    return TooManyJobs(
        f"you have {count} unfinished jobs, and this plan allows {limit}; wait for one to end",
        values={"count": count, "limit": limit},
    )
