"""Asynchronous client: the methods of the synchronous one, as coroutines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx

from meshhub.client import protocol
from meshhub.client.protocol import ModelInput, OnChange
from meshhub.errors import MeshhubError
from meshhub.model.report import Inspection
from meshhub.service.jobs.description import JobDescription
from meshhub.service.jobs.job import JobKind


class AsyncClient:
    """Client of a service. Every method may raise MeshhubError: the error of the service, or of the job.

    Args:
        url: Address of the service.
        key: API key; None for the free plan.
    """

    def __init__(self, url: str, *, key: str | None = None) -> None:
        """Open no connection before the first request."""
        self._http = httpx.AsyncClient(
            base_url=protocol.parse_url(url), headers=protocol.build_headers(key), timeout=protocol.TIMEOUT
        )

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def convert(
        self,
        source: ModelInput,
        target: str | Path,
        *,
        to: str | None = None,
        on_change: OnChange | None = None,
        **options: Any,
    ) -> JobDescription:
        """Convert one model on the service.

        Args:
            source: Path of the model, or its name and content.
            target: File to write; it appears when it is complete.
            to: Target format; default: the target's extension.
            on_change: Called with each change of the job: its place in the queue, its progress.
            options: Options by name.
        """
        job = await self.submit(source, to=protocol.choose_target(target, to), **options)
        done = await self.wait(job.id, on_change=on_change)
        await self.download(job.id, target)
        return done

    async def inspect(self, source: ModelInput, *, on_change: OnChange | None = None, **options: Any) -> Inspection:
        """Inspect one model on the service."""
        job = await self.submit(source, kind="inspect", **options)
        await self.wait(job.id, on_change=on_change)
        with self._connecting():
            response = await self._http.get(f"/jobs/{job.id}/result")
        return protocol.read_inspection(response)

    async def submit(
        self,
        source: ModelInput,
        *,
        to: str | None = None,
        kind: JobKind = "convert",
        webhook_url: str | None = None,
        **options: Any,
    ) -> JobDescription:
        """Submit a job; it is submitted once, also if the connection fails meanwhile.

        Args:
            source: Path of the model, or its name and content.
            to: Target format of a conversion.
            kind: What to do.
            webhook_url: Address that the service informs of the end.
            options: Options by name.
        """
        form = await asyncio.to_thread(protocol.build_form, kind, source, to, webhook_url, options)
        for attempt in range(1, protocol.MAX_SUBMIT_COUNT + 1):
            try:
                with self._connecting():
                    return protocol.read_job(await self._http.post("/jobs", **form.request()))
            except MeshhubError as error:
                if not protocol.can_retry(error, attempt):
                    raise
            await asyncio.sleep(attempt * protocol.RETRY_S)
        raise AssertionError

    async def get(self, job_id: str) -> JobDescription:
        """Return the state of a job."""
        with self._connecting():
            return protocol.read_job(await self._http.get(f"/jobs/{job_id}"))

    async def wait(self, job_id: str, *, on_change: OnChange | None = None) -> JobDescription:
        """Wait until a job has ended, across restarts of the service; return it, or raise its error."""
        lost = 0
        while True:
            job = None
            try:
                with self._connecting():
                    async for job in self._follow(job_id):
                        lost = 0
                        if on_change is not None:
                            on_change(job)
                protocol.check_events(job, self._http.base_url)
            except MeshhubError as error:
                if not protocol.can_follow_again(error, lost):
                    raise
            if job is not None and job.is_finished:
                protocol.raise_failure(job)
                return job
            lost += 1
            await asyncio.sleep(protocol.RETRY_S)

    async def download(self, job_id: str, target: str | Path) -> None:
        """Write the result of a job to a file, which appears when it is complete."""
        partial = Path(target).with_name(f".{Path(target).name}.partial")
        try:
            with self._connecting():
                async with self._http.stream("GET", f"/jobs/{job_id}/result") as response:
                    if not response.is_success:
                        await response.aread()
                    protocol.check(response)
                    with await asyncio.to_thread(partial.open, "wb") as file:
                        async for chunk in response.aiter_bytes(protocol.CHUNK_BYTES):
                            await asyncio.to_thread(file.write, chunk)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    async def cancel(self, job_id: str) -> JobDescription:
        """Cancel a job, or delete the result of a finished one."""
        with self._connecting():
            return protocol.read_job(await self._http.delete(f"/jobs/{job_id}"))

    async def _follow(self, job_id: str) -> AsyncIterator[JobDescription]:
        async with self._http.stream("GET", f"/jobs/{job_id}/events") as response:
            if not response.is_success:
                await response.aread()
            protocol.check(response)
            async for line in response.aiter_lines():
                job = protocol.read_event(line)
                if job is not None:
                    yield job

    @contextlib.contextmanager
    def _connecting(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise protocol.unreachable(self._http.base_url, error) from error
