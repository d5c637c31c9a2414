"""JSON object of a job for its caller: in responses, events and webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, structs

from meshhub.errors import ErrorValue
from meshhub.model.notes import Figure, Note
from meshhub.model.progress import Progress
from meshhub.model.report import FileError, FileReport, Loss, Report, StepReport
from meshhub.service.jobs.job import FINISHED, Job, JobFile, JobKind, JobProgress, JobState


class ProgressDescription(Progress, frozen=True, kw_only=True):
    """Progress of a running job: of its current file, and the number of this file."""

    file: int
    """Number of the current file, from 0."""

    files: int
    """Number of files."""

    fraction: float | None
    """Finished share of the step, from 0 to 1; null until the step reports one."""


class ResultDescription(Struct, frozen=True, kw_only=True):
    """Result of a job that is done."""

    url: str
    """Path of the result on the host of the service."""

    name: str
    """Name of the file."""

    media_type: str
    """Media type of the file."""

    bytes: int
    """Size of the file."""

    sha256: str
    """SHA-256 of the file, in hexadecimal digits."""


class JobDescription(Struct, frozen=True, kw_only=True):
    """Job. Times are seconds since 1970, UTC."""

    id: str
    """Id of the job; without an API key, it is the secret that gives access to the job."""

    kind: JobKind
    """Kind of the job."""

    state: JobState
    """State: queued, running, done, failed, canceled, or expired."""

    created: float
    """Time of submission."""

    started: float | None
    """Start of the latest run."""

    finished: float | None
    """Time of the end."""

    expires: float | None
    """Time at which the result is deleted."""

    position: int | None
    """Estimated place in the queue, from 1; null if the job does not wait."""

    missing_memory_bytes: int | None
    """Memory that the job waits for, because no running worker of the cluster has as much; null if one has."""

    progress: ProgressDescription | None
    """Progress; null if the job does not run."""

    attempt: int
    """Number of runs that have started; a run that a failure of the service ended is repeated."""

    target: str | None
    """Target format; null for an inspection or a check."""

    files: tuple[JobFile, ...]
    """Uploads."""

    result: ResultDescription | None
    """Result; null unless the job is done."""

    report: dict[str, Any] | None
    """Report of the conversion, as in the header X-Meshhub-Report; null for an inspection or a check."""

    error: str | None
    """Reason of a failure, for people."""

    error_code: str | None
    """Reason of a failure, for programs."""

    error_values: dict[str, ErrorValue] = {}
    """Numbers and names in `error`, for sentences in other languages."""

    details: list[FileError] | None
    """One row for each file that failed, if all files of a batch failed."""

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended."""
        return self.state in FINISHED


class JobList(Struct, frozen=True):
    """Some jobs of a key, the newest first."""

    jobs: list[JobDescription]
    """The jobs."""

    next: str | None
    """Id to send as `before` for the jobs that follow; null if there are none."""


def describe_job(
    job: Job, position: int | None = None, *, missing_memory_bytes: int | None = None, root_path: str = ""
) -> JobDescription:
    """Describe a job.

    Args:
        job: Row of the job.
        position: Place in the queue, from 1; None if it does not wait.
        missing_memory_bytes: Memory that no worker has; None if one has it, or without a cluster.
        root_path: Path of the service behind a proxy; "" without one.
    """
    outcome = job.outcome
    return JobDescription(
        id=job.id,
        kind=job.kind,
        state=job.state,
        created=round(job.created, 3),
        started=_round(job.started),
        finished=_round(job.finished),
        expires=_round(job.expires),
        position=position,
        missing_memory_bytes=missing_memory_bytes,
        progress=None if job.progress is None or job.state != "running" else _describe_progress(job.progress),
        attempt=job.attempt,
        target=job.request.texts.get("target"),
        files=job.request.files,
        result=_describe_result(job, root_path),
        report=_read_report(job),
        error=outcome.error or None if outcome is not None else None,
        error_code=outcome.error_code or None if outcome is not None else None,
        error_values=outcome.error_values if outcome is not None else {},
        details=outcome.details if outcome is not None else None,
    )


def summarize_report(report: Report, notes: Sequence[Note]) -> dict[str, Any]:
    """Return the report of one converted file, with these notes, as responses and jobs contain it."""
    return {
        "source": report.source.format,
        "target": report.target.format,
        "faces_in": report.source.faces,
        "faces_out": report.target.faces,
        "bytes_in": report.source.bytes,
        "bytes_out": report.target.bytes,
        "size_mm_in": report.source.size_mm,
        "size_mm_out": report.target.size_mm,
        "seconds": report.seconds,
        "figures": {step.step: step.figures for step in report.steps if step.kind != "read" and step.figures},
        "losses": [{"feature": loss.feature, "step": loss.step} for loss in report.losses],
        "notes": [_note_fields(note) for note in notes],
    }


def read_summary(summary: Mapping[str, Any]) -> Report:
    """Return what the summary of a report holds; the kind of a step with figures is "operation".

    Raises:
        msgspec.ValidationError: The summary has other fields, such as that of a batch.
    """
    notes = summary.get("notes", [])
    if isinstance(notes, list):
        # a long report has only the codes
        notes = [{"message": "", **note} for note in notes]
    fields = msgspec.convert({**summary, "notes": notes}, _Summary)
    return Report(
        source=FileReport(
            format=fields.source, bytes=fields.bytes_in, faces=fields.faces_in, size_mm=fields.size_mm_in
        ),
        target=FileReport(
            format=fields.target, bytes=fields.bytes_out, faces=fields.faces_out, size_mm=fields.size_mm_out
        ),
        steps=tuple(
            StepReport(step, "write" if step == fields.target else "operation", 0.0, figures)
            for step, figures in fields.figures.items()
        ),
        losses=fields.losses,
        notes=fields.notes,
        seconds=fields.seconds,
    )


class _Summary(Struct, frozen=True, kw_only=True):
    """Summary of a report, as `summarize_report` makes it; a truncated one lacks figures."""

    source: str
    target: str
    faces_in: int
    faces_out: int
    bytes_in: int = 0
    bytes_out: int = 0
    size_mm_in: tuple[float, float, float] | None = None
    size_mm_out: tuple[float, float, float] | None = None
    seconds: float = 0.0
    figures: dict[str, dict[str, Figure]] = {}
    losses: tuple[Loss, ...] = ()
    notes: tuple[Note, ...] = ()


def _note_fields(note: Note) -> dict[str, Any]:
    fields = (
        ("code", note.code),
        ("message", note.message),
        ("step", note.step),
        ("options", list(note.options)),
        ("values", note.values),
    )
    return {key: value for key, value in fields if value}


def _describe_progress(progress: JobProgress) -> ProgressDescription:
    return ProgressDescription(file=progress.file, files=progress.files, **structs.asdict(progress.step))


def _describe_result(job: Job, root_path: str) -> ResultDescription | None:
    result = job.result
    if result is None:
        return None
    return ResultDescription(
        url=f"{root_path}/jobs/{job.id}/result",
        name=result.name,
        media_type=result.media_type,
        bytes=result.bytes,
        sha256=result.sha256,
    )


def _read_report(job: Job) -> dict[str, Any] | None:
    text = job.result.headers.get("X-Meshhub-Report") if job.result is not None else None
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


def _round(seconds: float | None) -> float | None:
    """Round a time to milliseconds."""
    return None if seconds is None else round(seconds, 3)
