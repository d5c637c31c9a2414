"""Jobs that this process runs or watches: their latest progress, and signals for event streams."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import structs

from meshhub.engine.contract import Cancel
from meshhub.service.jobs.job import Job, JobProgress


@dataclass(eq=False)
class LiveRun:
    """Run of a job in this process.

    Attributes:
        job: Row of the job at the start.
        cancel: Stops the run.
        progress: Latest progress.
        has_news: Whether the store does not have the progress yet.
    """

    job: Job
    cancel: Cancel = field(default_factory=Cancel)
    progress: JobProgress | None = None
    has_news: bool = False


class LiveJobs:
    """Runs and watchers of this process; for one event loop."""

    def __init__(self) -> None:
        """Begin without runs."""
        self.runs: dict[str, LiveRun] = {}
        self._watchers: dict[str, set[asyncio.Event]] = {}

    def update(self, run: LiveRun, progress: JobProgress) -> None:
        """Record the progress of a run."""
        run.progress, run.has_news = progress, True
        self.notify(run.job.id)

    def take_news(self) -> dict[str, JobProgress]:
        """Return the progress that changed since the last call, by token."""
        news = {}
        for token, run in self.runs.items():
            if run.has_news and run.progress is not None:
                news[token], run.has_news = run.progress, False
        return news

    def stop(self, job_id: str) -> None:
        """Stop the run of a job if it is here, and inform its watchers."""
        for run in self.runs.values():
            if run.job.id == job_id:
                run.cancel()
        self.notify(job_id)

    def refresh(self, job: Job) -> Job:
        """Return a row with the latest progress that this process knows."""
        run = self.runs.get(job.token or "")
        return job if run is None or run.progress is None else structs.replace(job, progress=run.progress)

    def notify(self, job_id: str) -> None:
        """Wake the event streams of a job."""
        for event in self._watchers.get(job_id, ()):
            event.set()

    @contextlib.contextmanager
    def watch(self, job_id: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set when a job may have changed."""
        event = asyncio.Event()
        self._watchers.setdefault(job_id, set()).add(event)
        try:
            yield event
        finally:
            self._watchers[job_id].discard(event)
            if not self._watchers[job_id]:
                del self._watchers[job_id]
