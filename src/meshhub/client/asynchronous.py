"""Asynchronous client; the synchronous one is generated from it."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import httpx

from meshhub.client import protocol
from meshhub.client.companions import ModelInput, ModelInputs
from meshhub.client.protocol import Call, OnChange, T
from meshhub.errors import MeshhubError
from meshhub.model.quote import Quote
from meshhub.model.report import Inspection
from meshhub.model.verdict import Verdict
from meshhub.pipeline.existing_files import Overwrite, Replacing
from meshhub.pipeline.outputs import check_output
from meshhub.service.jobs.description import JobDescription, JobList
from meshhub.service.jobs.job import JobKind, ReportKind
from meshhub.service.plan_answer import PlanAnswer

if TYPE_CHECKING:
    from typing import Unpack

    from meshhub.client.protocol import JobOptions, OrderOptions
    from meshhub.model.convert_options import ConvertOptions
    from meshhub.supported import Supported


class AsyncClient:
    """Client of a service. Every method may raise MeshhubError: the error of the service, or of the job.

    Args:
        url: Address of the service.
        key: API key; None for the free plan.
    """

    def __init__(self, url: str, *, key: str | None = None) -> None:
        """Open no connection before the first request."""
        self._http = httpx.AsyncClient(**protocol.build_arguments(url, key))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def plan(self) -> PlanAnswer:
        """Return the plan of the key: its limits, what it grants, and the requests that are left."""
        return await self._send(protocol.show_plan())

    async def supported(self, *, language: str | None = None) -> Supported:
        """Return the formats, operations, checks and options of the service for this key.

        Args:
            language: Language of labels and descriptions, such as "de"; default: English.
        """
        return await self._send(protocol.list_supported(language))

    async def convert(
        self,
        source: ModelInputs,
        output: str | Path,
        *,
        target: str | None = None,
        overwrite: Overwrite = None,
        on_change: OnChange | None = None,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[ConvertOptions],
    ) -> JobDescription:
        """Convert one model on the service, or several into one file. Companions of a path are sent, and those of the
        result of one model are written beside it.

        The job is canceled if an exception ends the wait, such as KeyboardInterrupt or the cancellation of a task.

        Args:
            source: Path of the model, or its name and content; a list of these becomes one scene.
            output: File to write; it appears when it is complete.
            target: Target format; default: the extension of the output.
            overwrite: Which existing output to replace: any (True), none (False), or only a result of meshhub or an
                empty file (None). An input is never replaced.
            on_change: Called with each change of the job: its place in the queue, its progress.
            options: Options by name, for options of the service's plug-ins and for names that a program computes.
            keywords: Built-in options, typed for type checkers.
        """
        target = protocol.choose_target(output, target)
        replacing = protocol.choose_replacing(overwrite, source)
        await asyncio.to_thread(check_output, Path(output), replacing)
        call, is_archive = await asyncio.to_thread(protocol.submit_conversion, source, target, {**options, **keywords})
        submitted = await self._submit(call)
        job = await self._wait_or_cancel(submitted.id, on_change)
        if not is_archive:
            protocol.check_one_file(job)
            await self._download(job.id, output, replacing)
            return job
        with tempfile.TemporaryDirectory(prefix="meshhub-result-") as folder:
            archive = Path(folder, "result.zip")
            await self.download(job.id, archive)
            return await asyncio.to_thread(protocol.unpack_archive, archive, output, job, replacing)

    async def inspect(
        self,
        source: ModelInput,
        *,
        on_change: OnChange | None = None,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[ConvertOptions],
    ) -> Inspection:
        """Inspect one model on the service. Takes the options of `convert`."""
        job = await self.submit(source, kind="inspect", options=options, **keywords)
        await self._wait_or_cancel(job.id, on_change)
        return await self._send(protocol.show_inspection(job.id))

    async def check(
        self,
        source: ModelInput,
        *,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[JobOptions],
    ) -> Verdict:
        """Check on the service whether one model prints. Takes the options of `convert`, and those of checks.

        It waits in one request; submit a job of the kind "check" for a model that takes minutes.
        """
        return await self._send(await asyncio.to_thread(protocol.check_model, source, {**options, **keywords}))

    async def quote(
        self,
        source: ModelInput,
        *,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[OrderOptions],
    ) -> Quote:
        """Estimate on the service the print of one model, and its price by the rate card of the service.

        Takes the options of `convert`, and those of quotes.
        """
        return await self._send(await asyncio.to_thread(protocol.quote_model, source, {**options, **keywords}))

    async def submit(
        self,
        source: ModelInputs,
        *,
        target: str | None = None,
        kind: JobKind = "convert",
        webhook_url: str | None = None,
        report: ReportKind | None = None,
        language: str | None = None,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[JobOptions],
    ) -> JobDescription:
        """Submit a job, exactly once even if the connection fails meanwhile.

        Args:
            source: Path of the model, or its name and content; a list of these for several models.
            target: Target format of a conversion.
            kind: What to do. The result of "check" is the verdict as JSON, or a report. "combine" converts a list to
                one file, and "convert" each of its models, in one ZIP.
            webhook_url: Address that the service informs of the end.
            report: Format of the report of a check.
            language: Language of the report, such as "de".
            options: As for `convert`.
            keywords: As for `convert`; also the options of checks.
        """
        fields = {**options, **keywords}
        call = await asyncio.to_thread(protocol.submit_job, kind, source, target, webhook_url, report, language, fields)
        return await self._submit(call)

    async def _submit(self, call: Call[JobDescription]) -> JobDescription:
        attempt = 1
        while True:
            try:
                return await self._send(call)
            except MeshhubError as error:
                pause_s = protocol.choose_pause(error, attempt)
            await asyncio.sleep(pause_s)
            attempt += 1

    async def get(self, job_id: str) -> JobDescription:
        """Return the state of a job."""
        return await self._send(protocol.show_job(job_id))

    async def list_jobs(self, *, limit: int = 100, before: str | None = None) -> JobList:
        """Return jobs of the key, the newest first; its `next` is the `before` of the jobs that follow.

        Args:
            limit: Maximum number of jobs, up to 100.
            before: Id of a job; only older ones are listed.
        """
        return await self._send(protocol.list_jobs(limit, before))

    async def wait(self, job_id: str, *, on_change: OnChange | None = None) -> JobDescription:
        """Wait until a job has ended, across restarts of the service; return it, or raise its error."""
        following = protocol.Following(self._http.base_url, on_change)
        while True:
            failure = None
            try:
                async with self._stream(job_id, "events") as response:
                    async for line in response.aiter_lines():
                        following.handle(line)
            except MeshhubError as error:
                failure = error
            job = following.end(failure)
            if job is not None:
                return job
            await asyncio.sleep(protocol.RETRY_S)

    async def _wait_or_cancel(self, job_id: str, on_change: OnChange | None) -> JobDescription:
        try:
            return await self.wait(job_id, on_change=on_change)
        except MeshhubError:
            raise
        except BaseException:
            with contextlib.suppress(MeshhubError):
                await self.cancel(job_id)
            raise

    async def download(self, job_id: str, output: str | Path, *, overwrite: Overwrite = None) -> None:
        """Write the result of a job to a file, which appears when it is complete; `overwrite` is as for `convert`."""
        await self._download(job_id, output, protocol.choose_replacing(overwrite))

    async def _download(self, job_id: str, output: str | Path, replacing: Replacing) -> None:
        with protocol.writing(output, replacing) as file:
            async with self._stream(job_id, "result") as response:
                protocol.check_file(response)
                async for chunk in response.aiter_bytes(protocol.CHUNK_BYTES):
                    await asyncio.to_thread(file.write, chunk)

    async def cancel(self, job_id: str) -> JobDescription:
        """Cancel a job, or delete the result of a finished one."""
        return await self._send(protocol.cancel_job(job_id))

    async def _send(self, call: Call[T]) -> T:
        with protocol.connecting(self._http.base_url):
            return call.read(await self._http.request(call.method, call.path, **call.arguments))

    @contextlib.asynccontextmanager
    async def _stream(self, job_id: str, name: str) -> AsyncIterator[httpx.Response]:
        """Yield a response of a job whose body is read in parts."""
        path = protocol.job_path(job_id, name)
        with protocol.connecting(self._http.base_url):
            async with self._http.stream("GET", path) as response:
                if not response.is_success:
                    await response.aread()
                protocol.check(response)
                yield response
