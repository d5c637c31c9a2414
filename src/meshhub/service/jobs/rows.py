"""Conversion between rows of the database and jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from meshhub.service.jobs.job import Job, JobProgress, JobRequest, Outcome

# made at import: msgspec can crash if two threads decode a type for the first time
_REQUESTS = msgspec.json.Decoder(JobRequest)
_PROGRESS = msgspec.json.Decoder(JobProgress)
_OUTCOMES = msgspec.json.Decoder(Outcome)


def to_job(row: Any) -> Job:
    """Return the job of a row."""
    values = {name: getattr(row, name) for name in Job.__struct_fields__}
    return Job(
        **{
            **values,
            "request": _REQUESTS.decode(row.request),
            "progress": None if row.progress is None else _PROGRESS.decode(row.progress),
            "outcome": None if row.outcome is None else _OUTCOMES.decode(row.outcome),
        }
    )


def encode(value: msgspec.Struct) -> str:
    """Return the JSON text of a column."""
    return msgspec.json.encode(value).decode()


def format_time(seconds: float) -> str:
    """Return a time for people and programs (RFC 3339)."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
