"""One run of a job: from its stored request to its result file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from meshhub.engine.contract import Cancel
from meshhub.errors import RequestRefused, ServerBusy
from meshhub.http.admission.resources import Resources
from meshhub.http.admission.slots import Ticket
from meshhub.http.conversions.check_reports import parse_report
from meshhub.http.conversions.runner import Conversions, Execution
from meshhub.http.intake.archives import open_archive, select_entries, unpack
from meshhub.http.intake.combined_files import combine_files
from meshhub.http.intake.conversion_requests import ConversionRequest, FileResult, InputFile, parse_form
from meshhub.http.intake.names import label, stem
from meshhub.http.intake.uploads import Form, UploadedFile
from meshhub.http.responses.results import batch_headers, pack_batch, prepare_model
from meshhub.http.translating import encode_json
from meshhub.model.plans import Caller, Limits, Plan
from meshhub.model.progress import Progress
from meshhub.model.report import Report
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry
from meshhub.service.jobs.files import JobFiles, hash_file
from meshhub.service.jobs.job import JOB_KINDS, Job, JobProgress, JobResult

OnProgress = Callable[[JobProgress], None]


@dataclass(frozen=True)
class Run:
    """One run of a job.

    Attributes:
        job: Row of the job.
        folder: Folder for temporary files.
        ticket: Ticket of the slot that the run holds.
        cancel: Stops the run.
        on_progress: Called with the progress, in another thread.
    """

    job: Job
    folder: Path
    ticket: Ticket
    cancel: Cancel
    on_progress: OnProgress


@dataclass(frozen=True)
class ResultFile:
    """Result of a run that is not stored yet."""

    path: Path
    name: str
    media_type: str
    headers: Mapping[str, str]

    def describe(self) -> JobResult:
        """Return the description to store; reads the whole file."""
        return JobResult(
            name=self.name,
            media_type=self.media_type,
            bytes=self.path.stat().st_size,
            sha256=hash_file(self.path),
            headers=dict(self.headers),
        )


class JobConversions:
    """Conversions, inspections and checks of jobs, on the slots and the engine of the other requests."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        conversions: Conversions,
        files: JobFiles,
        plans: Mapping[str, Plan],
    ) -> None:
        """Run jobs of callers with these plans."""
        self._registry = registry
        self._resources = resources
        self._conversions = conversions
        self._files = files
        self._plans = plans

    async def run(self, run: Run) -> ResultFile:
        """Run a job in the slot that its runner holds. Raises MeshhubError."""
        job, caller = run.job, self._caller_of(run.job)
        if job.kind not in JOB_KINDS:
            # a later version submitted the job, which runs again, possibly on a worker of this version
            raise ServerBusy(
                f"a worker of the service is too old for jobs of the kind {job.kind!r}; submit the job again later"
            )
        paths = await self._resources.threads.run_job_storage(
            self._files.fetch_inputs, job.id, len(job.request.files), run.folder
        )
        form = Form(
            main=job.request.field,
            texts=dict(job.request.texts),
            files=[
                UploadedFile(file.name, path, file.bytes) for file, path in zip(job.request.files, paths, strict=True)
            ],
        )
        purpose = PURPOSES[job.kind]
        conversion = parse_form(form, caller, self._registry, purpose)
        files = await self._list_inputs(run, conversion, form)
        execution = self._execution(run, conversion, files)
        if form.main != "file" and not purpose.combines:
            return await self._convert_batch(run, execution, files, form)
        return await self._run_file(run, execution, files[0], form)

    def _caller_of(self, job: Job) -> Caller:
        """Return the caller at the time of the request, with the timeout of a job."""
        plan = self._plans.get(job.plan)
        if plan is None:
            raise RequestRefused(f"this service does not offer the plan {job.plan!r} any more; submit the job again")
        limits = structs.replace(plan.limits, conversion_timeout_seconds=plan.limits.job_timeout_seconds)
        plan = structs.replace(plan, grants=frozenset(job.request.grants), limits=limits)
        return Caller(plan=plan, id=job.key_id, entitled=True)

    def _execution(self, run: Run, conversion: ConversionRequest, files: Sequence[InputFile]) -> Execution:
        timeout_s = conversion.caller.plan.limits.job_timeout_seconds
        deadline = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        numbers = {id(file): number for number, file in enumerate(files)}

        def relay(file: InputFile, progress: Progress) -> None:
            run.on_progress(JobProgress(progress, numbers[id(file)], len(files)))

        return Execution(conversion, run.ticket, deadline, run.cancel, holds_slot=True, on_progress=relay)

    async def _list_inputs(self, run: Run, conversion: ConversionRequest, form: Form) -> Sequence[InputFile]:
        if conversion.request.purpose.combines:
            return [await self._resources.threads.run_archive(combine_files, form.files, self._registry)]
        if form.main == "archive":
            unpacked = await self._unpack(form.files[0].path, run.folder / "unpacked", conversion.caller.plan.limits)
            sent = {file.name: file for file in unpacked}
        else:
            sent = {
                str(number): InputFile(name=file.name, folder="", stem=stem(label(file.name)), path=file.path)
                for number, file in enumerate(form.files)
            }
        return conversion.assign_options(sent, self._registry)

    async def _unpack(self, path: Path, folder: Path, limits: Limits) -> list[InputFile]:
        archive = await self._resources.threads.run_archive(open_archive, path)
        try:
            entries = select_entries(archive, limits)
            free = self._files.free_bytes()
            if free is not None and free < 2 * sum(entry.size for entry in entries):
                raise ServerBusy("the service has too little disk space for this job now")
            folder.mkdir()
            return await self._resources.threads.run_archive(unpack, archive, entries, folder, self._registry, limits)
        finally:
            archive.close()

    async def _run_file(self, run: Run, execution: Execution, file: InputFile, form: Form) -> ResultFile:
        report = None
        if execution.conversion.request.purpose.report_field == "format":
            report = parse_report(form.texts, run.job.request.language)
        folder = run.folder / "out"
        result, target = await self._conversions.run(execution, file, folder, report)
        if isinstance(result, Report):
            converted = FileResult(file, result, target)
            return ResultFile(*await prepare_model(self._resources.threads, converted, self._registry))
        if report is not None:
            return ResultFile(folder / report.file_name, report.name_for(file), report.media_type, report.headers)
        path = run.folder / "result.json"
        path.write_bytes(encode_json(result, self._registry.texts(run.job.request.language)))
        return ResultFile(path, f"{file.stem}.json", "application/json", {})

    async def _convert_batch(
        self, run: Run, execution: Execution, files: Sequence[InputFile], form: Form
    ) -> ResultFile:
        results = await self._conversions.convert_batch(execution, files, run.folder)
        texts = self._registry.texts(run.job.request.language)
        path = await pack_batch(self._resources.threads, run.folder, results, execution.conversion, texts)
        name = f"{stem(form.files[0].name)}-converted.zip" if form.main == "archive" else "converted.zip"
        return ResultFile(path, name, "application/zip", batch_headers(results))
