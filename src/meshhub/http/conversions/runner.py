"""Conversions of a request: one file or a batch in parallel, each file within its deadline."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import cast

from meshhub.engine.contract import Cancel
from meshhub.errors import Canceled, ConversionTimeout, MeshhubError, ServerBusy
from meshhub.http.admission.resources import Resources
from meshhub.http.admission.slots import Ticket
from meshhub.http.conversions.check_reports import CheckReport
from meshhub.http.conversions.result_cache import ResultCache
from meshhub.http.errors import no_room
from meshhub.http.intake.archives import naming_archive_endpoint
from meshhub.http.intake.conversion_requests import MODEL_NAME, ConversionRequest, FileResult, InputFile
from meshhub.http.metrics import Measurement, Metrics
from meshhub.model.chain import Chain, Write
from meshhub.model.notes import describe_reduction
from meshhub.model.progress import Listener, Progress
from meshhub.model.report import Report
from meshhub.model.source import Target, name_bed
from meshhub.model.verdict import Result, Verdict
from meshhub.pipeline.resolve import CheckedRequest, find_reduction
from meshhub.registry import Registry
from meshhub.service.jobs.job import JobFile
from meshhub.service.jobs.weights import estimate_memory

log = logging.getLogger("meshhub.http")

_MIN_TIMEOUT_S = 0.05
"""Seconds; the engine needs a positive timeout, even if the deadline of the request has just passed."""


@dataclass(frozen=True)
class Execution:
    """State that all files of a request share.

    Attributes:
        conversion: Target, options and caller.
        ticket: Place of the request in the slot queue.
        deadline: When the whole request must end, in the event loop's clock; None: no deadline.
        cancel: Stops the conversions when the client leaves.
        holds_slot: Whether the caller of `Conversions` holds a slot; all files then use it one after the other.
        on_progress: Called with the progress of each file, in the thread of its conversion.
        hits: For each file that was looked up in the cache, whether it was there.
    """

    conversion: ConversionRequest
    ticket: Ticket
    deadline: float | None
    cancel: Cancel
    holds_slot: bool = False
    on_progress: Callable[[InputFile, Progress], None] | None = None
    hits: list[bool] = field(default_factory=list)

    def listener(self, file: InputFile) -> Listener | None:
        """Return the callback for the progress of a file."""
        return None if self.on_progress is None else partial(self.on_progress, file)

    def request_of(self, file: InputFile) -> CheckedRequest:
        """Return the request of a file: its own, or that of all files."""
        return file.request or self.conversion.request

    def remaining_s(self) -> float | None:
        """Return the seconds that a conversion may take: the plan's timeout, or less if the deadline is nearer."""
        timeout = self.conversion.caller.plan.limits.conversion_timeout_seconds
        if self.deadline is None:
            return timeout
        remaining = max(_MIN_TIMEOUT_S, self.deadline - asyncio.get_running_loop().time())
        return remaining if timeout is None else min(timeout, remaining)

    def is_late(self) -> bool:
        """Return whether the deadline has passed."""
        return self.deadline is not None and asyncio.get_running_loop().time() >= self.deadline


class Conversions:
    """Runner of conversions on a registry."""

    def __init__(
        self,
        registry: Registry,
        resources: Resources,
        metrics: Metrics,
        batch_size: int,
        cache: ResultCache | None = None,
    ) -> None:
        """Convert up to `batch_size` files of one batch in parallel; find repeated requests in a cache."""
        self._registry = registry
        self._resources = resources
        self._metrics = metrics
        self._batch_size = batch_size
        self._cache = cache

    async def run(
        self, execution: Execution, file: InputFile, folder: Path, report: CheckReport | None = None
    ) -> tuple[Result, Target | None]:
        """Run the chain of one file. Raises MeshhubError.

        Args:
            execution: State of the request.
            file: The file.
            folder: Folder for the file that is written; it does not exist.
            report: Report for people to write.
        Returns:
            The result, and the file; None if none is written.
        """
        output = execution.request_of(file).output
        with self._metrics.measure(None if output is None else output.id) as measurement:
            async with self._slot(execution, file):
                measurement.start()
                return await self._resources.threads.run(
                    self._run, execution, file, folder, report, execution.remaining_s(), measurement
                )

    async def convert(self, execution: Execution, file: InputFile, folder: Path) -> tuple[Report, Target]:
        """Convert one file into the folder. Raises MeshhubError."""
        return cast(tuple[Report, Target], await self.run(execution, file, folder))

    async def convert_batch(self, execution: Execution, files: Sequence[InputFile], folder: Path) -> list[FileResult]:
        """Convert every file; return the results in the same order. A failure does not affect the other files.

        When the deadline of the request passes, the remaining files fail with `conversion_timeout`.
        """
        semaphore = asyncio.Semaphore(1 if execution.holds_slot else self._batch_size)

        async def convert_next(number: int, file: InputFile) -> FileResult:
            async with semaphore:
                return await self._convert_in_batch(execution, file, folder / f"out-{number}")

        results = await asyncio.gather(
            *(convert_next(number, file) for number, file in enumerate(files)),
            # otherwise the first exception would return, and remove the folder while other files are still converted
            return_exceptions=True,
        )
        file_results = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            file_results.append(result)
        return file_results

    def _slot(self, execution: Execution, file: InputFile) -> AbstractAsyncContextManager[None]:
        if execution.holds_slot:
            return nullcontext()
        memory_bytes = estimate_memory(
            [JobFile(file.name, file.path.stat().st_size)],
            self._registry.declarations,
            memory=execution.request_of(file).memory,
            max_memory_bytes=self._resources.conversion_memory_bytes,
        )
        return self._resources.slot(execution.ticket, execution.deadline, memory_bytes)

    async def _convert_in_batch(self, execution: Execution, file: InputFile, folder: Path) -> FileResult:
        try:
            if file.rejection is not None:
                raise file.rejection
            if execution.is_late():
                raise self._deadline_passed(execution, file)
            report, target = await self.convert(execution, file, folder)
        except Canceled:
            raise
        except MeshhubError as raised:
            # the deadline of the request interrupted the conversion, or passed while it waited for a slot
            is_interrupted = isinstance(raised, ConversionTimeout | ServerBusy) and execution.is_late()
            error = self._deadline_passed(execution, file) if is_interrupted else raised
            return FileResult(file, error_code=error.error_code, error=error.message, values=error.values)
        except Exception as error:
            busy = no_room(error)
            if busy is not None:
                return FileResult(file, error_code=busy.error_code, error=busy.message)
            log.error("unexpected error in a batch", exc_info=error)
            return FileResult(file, error_code="internal_error", error="an unexpected error occurred in the service")
        return FileResult(file, report, target)

    def _run(
        self,
        execution: Execution,
        file: InputFile,
        folder: Path,
        report: CheckReport | None,
        timeout_s: float | None,
        measurement: Measurement,
    ) -> tuple[Result, Target | None]:
        source, conversion, cancel = file.source(), execution.conversion, execution.cancel
        request = execution.request_of(file) if report is None else report.request_of(self._registry, conversion)
        with naming_archive_endpoint(source):
            chain = self._registry.resolve(request, source, conversion.caller)
        measurement.source = chain.source_format
        name = _name_output(request, chain) if report is None else report.file_name
        target = None if name is None else Target(name, folder=folder)
        if target is not None:
            folder.mkdir()

        def run() -> Result:
            started = time.monotonic()
            result = self._registry.run(
                chain,
                source,
                target,
                overwrite=True,
                timeout=timeout_s,
                cancel=cancel,
                progress=execution.listener(file),
            )
            if report is not None and not report.is_model:
                left_s = None if timeout_s is None else max(_MIN_TIMEOUT_S, timeout_s - (time.monotonic() - started))
                report.draw(
                    self._registry, conversion, file, cast(Verdict, result), cast(Target, target), left_s, cancel
                )
            return result

        variant = () if report is None else (report.kind, report.language, date.today().isoformat())
        return self._find_or_run(execution, file, chain, target, measurement, run, variant), target

    def _find_or_run(
        self,
        execution: Execution,
        file: InputFile,
        chain: Chain,
        target: Target | None,
        measurement: Measurement,
        run: Callable[[], Result],
        variant: Sequence[str] = (),
    ) -> Result:
        """Return the result of the cache, or run the chain and store its result.

        `variant` distinguishes results of the same chain.

        Entitlements and reviews have been checked, because the chain is resolved. Listeners receive both results.
        """
        key = None if self._cache is None else self._cache.identify(chain, file, variant)
        if self._cache is None or key is None:
            return run()
        cached: Result | None = self._cache.find(key, chain, target)
        measurement.is_cached = cached is not None
        execution.hits.append(measurement.is_cached)
        self._metrics.count_lookup(is_hit=measurement.is_cached)
        if cached is None:
            result = run()
            self._cache.store(key, result, target)
            return result
        if isinstance(cached, Report) and chain.ending.informs:
            self._registry.hooks.inform(cached)
        return cached

    def _deadline_passed(self, execution: Execution, file: InputFile) -> ConversionTimeout:
        request, caller = execution.request_of(file), execution.conversion.caller
        option = find_reduction(self._registry.declarations, request, caller)
        advice, options = describe_reduction(option)
        return ConversionTimeout(
            f"the deadline of the request passed before this file was converted; send fewer files at once, or {advice}",
            options=options,
        )


def _name_output(request: CheckedRequest, chain: Chain) -> str | None:
    """Return the name of the file that a chain writes; None if it writes none."""
    if request.output is None:
        return None
    name = MODEL_NAME + request.output.extensions[0]
    return name_bed(name, 1) if isinstance(chain.ending, Write) and chain.ending.each_bed else name
