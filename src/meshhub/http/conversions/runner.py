"""Carrying out orders: one file, or many side by side, each within its deadline."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from meshhub.engine.contract import Cancel
from meshhub.errors import Cancelled, ConversionTimeout, MeshhubError, ServerBusy
from meshhub.http.admission.resources import Jobs
from meshhub.http.admission.slots import Ticket
from meshhub.http.errors import no_room
from meshhub.http.intake.conversion_requests import Item, Order, Outcome
from meshhub.http.metrics import Conversion, Metrics
from meshhub.model.report import Inspection, Report
from meshhub.model.source import Target
from meshhub.registry import Registry

log = logging.getLogger("meshhub.http")


class Conversions:
    """Runs orders on a registry. A ticket stands for the request; deadlines are of the loop's clock; None is none."""

    def __init__(self, registry: Registry, jobs: Jobs, metrics: Metrics, at_once: int) -> None:
        """`at_once` is how many files of one batch run side by side."""
        self._registry = registry
        self._jobs = jobs
        self._metrics = metrics
        self._at_once = at_once

    async def one(
        self, order: Order, item: Item, folder: Path, ticket: Ticket, deadline: float | None, cancel: Cancel
    ) -> tuple[Report, Target]:
        """Convert one file into the folder. Raises MeshhubError."""
        written = self._registry.declarations.format_of(order.request.target or "")
        with self._metrics.conversion(written.id if written else "") as counted:
            async with self._jobs.turn(ticket, deadline):
                counted.begin()
                return await self._jobs.call(
                    self._convert, order, item, folder, _left(order, deadline), cancel, counted
                )

    async def inspected(
        self, order: Order, item: Item, ticket: Ticket, deadline: float | None, cancel: Cancel
    ) -> Inspection:
        """Look at one file. Raises MeshhubError."""
        with self._metrics.conversion(None) as counted:
            async with self._jobs.turn(ticket, deadline):
                counted.begin()
                found = await self._jobs.call(self._inspect, order, item, _left(order, deadline), cancel)
                counted.source = found.source.format
                return found

    async def many(
        self, order: Order, items: list[Item], folder: Path, ticket: Ticket, deadline: float | None, cancel: Cancel
    ) -> list[Outcome]:
        """Convert every file, in the order they came. A file that fails hurts no other.

        When the deadline of the whole request passes, the files not yet done are `conversion_timeout`.
        """
        at_once = asyncio.Semaphore(self._at_once)

        async def outcome(number: int, item: Item) -> Outcome:
            async with at_once:
                return await self._outcome(order, item, folder / f"out-{number}", ticket, deadline, cancel)

        done = await asyncio.gather(
            *(outcome(number, item) for number, item in enumerate(items)),
            # else it would be over with the first that is stopped, and the folder gone under those still running
            return_exceptions=True,
        )
        outcomes = []
        for one in done:
            if isinstance(one, BaseException):
                raise one
            outcomes.append(one)
        return outcomes

    async def _outcome(
        self, order: Order, item: Item, folder: Path, ticket: Ticket, deadline: float | None, cancel: Cancel
    ) -> Outcome:
        try:
            if item.refused is not None:
                raise item.refused
            if deadline is not None and asyncio.get_running_loop().time() >= deadline:
                raise _out_of_time()
            folder.mkdir()
            report, target = await self.one(order, item, folder, ticket, deadline, cancel)
        except Cancelled:
            raise
        except MeshhubError as raised:
            # a file that was cut short, or never had its turn, because the whole request had no time left
            late = deadline is not None and asyncio.get_running_loop().time() >= deadline
            error = _out_of_time() if late and isinstance(raised, ConversionTimeout | ServerBusy) else raised
            return Outcome(item, error_code=error.code, error=error.message)
        except Exception as error:
            busy = no_room(error)
            if busy is not None:
                return Outcome(item, error_code=busy.code, error=busy.message)
            log.error("unexpected error in a batch", exc_info=error)
            return Outcome(item, error_code="internal_error", error="something went wrong in the service")
        return Outcome(item, report, target)

    def _convert(
        self, order: Order, item: Item, folder: Path, timeout: float | None, cancel: Cancel, counted: Conversion
    ) -> tuple[Report, Target]:
        source = item.source()
        chain = self._registry.resolve(order.request, source, order.caller)
        counted.source = chain.source_format
        extension = self._registry.declarations.formats[chain.target_format].extensions[0]
        target = Target("model" + extension, folder=folder)
        return self._registry.run(chain, source, target, timeout=timeout, cancel=cancel), target

    def _inspect(self, order: Order, item: Item, timeout: float | None, cancel: Cancel) -> Inspection:
        options = dict(order.request.options)
        return self._registry.inspect(item.source(), caller=order.caller, timeout=timeout, cancel=cancel, **options)


def _left(order: Order, deadline: float | None) -> float | None:
    """The seconds that one conversion may take: the plan's, or what is left of the whole request."""
    own = order.caller.plan.limits.conversion_timeout_seconds
    if deadline is None:
        return own
    left = max(0.05, deadline - asyncio.get_running_loop().time())
    return left if own is None else min(own, left)


def _out_of_time() -> ConversionTimeout:
    return ConversionTimeout(
        "the time for the whole request was up before this file was done; send fewer files at once, "
        "or reduce them with {optimize_target_faces}",
        options=("optimize_target_faces",),
    )
