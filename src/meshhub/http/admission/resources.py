"""Resources that requests share: conversion slots, threads, disk, and the state of the shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from meshhub.engine.scratch import Scratch, sweep
from meshhub.errors import (
    Canceled,
    InvalidSettings,
    JobStoreUnavailable,
    KeyStoreUnavailable,
    ServerBusy,
    ShuttingDown,
    WorkerCrashed,
)
from meshhub.http.admission.disk import Disk
from meshhub.http.admission.slots import SlotQueue, Ticket, shutting_down
from meshhub.http.context import Context
from meshhub.service.settings import Settings
from meshhub.service.sharing import SlotLimits

T = TypeVar("T")

_RESPONSE_THREAD_COUNT = 8
"""Threads for reading results, in addition to those that wait for conversions."""

_ENTITLEMENT_SLOT_COUNT = 8
"""Separate slots for plug-ins that grant entitlements; slow ones do not block conversions."""

_ARCHIVE_THREAD_COUNT = 4
"""Separate threads for packing and unpacking, which take seconds; many batches do not block other requests."""

_LOOKUP_THREAD_COUNT = 4
"""Separate threads for the key database; if it hangs, callers without a key are still served."""

_JOB_THREAD_COUNT = 4
"""Separate threads for the database and the files of jobs, which conversions must not delay."""

_QUERY_THREAD_COUNT = 4
"""Separate threads for requests to a server with jobs, which uploads to a store of files must not delay."""

_LOOKUP_TIMEOUT_S = 1.4
"""Seconds for a lookup, including the wait for a thread; slightly longer than the database's own timeout."""


class Resources:
    """Slots, threads and disk of the service."""

    def __init__(self, settings: Settings, slots: SlotLimits | None = None) -> None:
        """Create no thread and no folder before the first request. Raises InvalidSettings.

        Args:
            settings: Settings of the service.
            slots: Conversions at once; default: those of the settings.
        """
        try:
            folder = settings.temporary_folder or tempfile.gettempdir()
        except OSError as error:
            raise InvalidSettings("temporary_folder: the system has no writable one; set this setting") from error
        if not (Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            raise InvalidSettings(f"temporary_folder: {folder!r} is not a writable folder; create it first")
        self._settings = settings
        self._conversion_threads = ThreadPoolExecutor(
            settings.most_at_once + _RESPONSE_THREAD_COUNT, thread_name_prefix="meshhub"
        )
        self._lookup_threads = ThreadPoolExecutor(_LOOKUP_THREAD_COUNT, thread_name_prefix="meshhub-keys")
        # the queue has one extra slot
        self._entitlement_threads = ThreadPoolExecutor(_ENTITLEMENT_SLOT_COUNT + 1, thread_name_prefix="meshhub-grants")
        self._entitlement_slots = SlotQueue(SlotLimits(shared=_ENTITLEMENT_SLOT_COUNT), math.inf)
        self._archive_threads = ThreadPoolExecutor(_ARCHIVE_THREAD_COUNT, thread_name_prefix="meshhub-archives")
        self._job_threads = ThreadPoolExecutor(_JOB_THREAD_COUNT, thread_name_prefix="meshhub-jobs")
        self._query_threads = ThreadPoolExecutor(_QUERY_THREAD_COUNT, thread_name_prefix="meshhub-queries")
        self._slots = SlotQueue(slots or settings.slot_limits, settings.queue)
        self._scratch: Scratch | None = None
        self.disk = Disk(self._scratch_folder, settings.keep_free_bytes)
        self._receiving: set[asyncio.Timeout] = set()
        self.is_closing = False

    @property
    def are_all_workers_busy(self) -> bool:
        """Whether no worker is free."""
        return self._slots.running >= self.workers

    @property
    def waiting(self) -> int:
        """Number of conversions that wait for a worker."""
        return self._slots.waiting

    @property
    def running(self) -> int:
        """Number of conversions that have a worker."""
        return self._slots.running

    @property
    def workers(self) -> int:
        """Maximum number of parallel conversions."""
        return self._settings.worker_count

    async def admit(self, context: Context, length: int | None, *, is_job: bool) -> None:
        """Wait for disk space for a request before its body is received. Raises ServerBusy, ShuttingDown.

        This promises no space yet: an announced body that never arrives blocks no other request. A job needs no place
        in the queue of requests.
        """
        if self.is_closing:
            raise shutting_down()
        if not is_job:
            self._slots.check(context.identity)
        await self.disk.reserve(context, 0, required=2 * (length or 0))

    async def reserve_received(self, context: Context, size: int) -> None:
        """Promise a request the space for the output of `size` bytes that are about to be stored. Raises ServerBusy."""
        # the stored bytes themselves soon reduce the free space; the output is about as large
        await self.disk.reserve(context, size, required=2 * size)

    async def reserve(self, context: Context, size: int) -> None:
        """Promise a request disk space until it ends. Raises ServerBusy."""
        await self.disk.reserve(context, size, required=size)

    def check_disk(self) -> None:
        """Check that there would be space for uploads once the current requests end. Raises ServerBusy.

        Requests that fill the disk for a while mean that the service is busy, not that it is unhealthy.
        """
        if self.disk.free_bytes() + self.disk.promised < 0:
            raise ServerBusy("the service has too little disk space for uploads now")

    @contextlib.asynccontextmanager
    async def receiving(self, context: Context, deadline: float | None) -> AsyncIterator[None]:
        """Limit the time in which a body arrives; `deadline` is in the event loop's clock.

        Raises TimeoutError, ServerBusy if another request needs the disk space, and ShuttingDown as soon as the
        service stops, because a request that has not arrived yet would get no slot.
        """
        try:
            async with asyncio.timeout_at(deadline) as timeout:
                self._receiving.add(timeout)
                self.disk.set_receiving(context, timeout)
                try:
                    yield
                finally:
                    self.disk.set_receiving(context, None)
                    self._receiving.discard(timeout)
        except TimeoutError:
            if self.is_closing:
                raise ShuttingDown("the service is shutting down; try again in a moment") from None
            if not self.disk.is_rejected(context):
                raise
        # even if the last bytes have arrived by now: the other request relies on this space
        if self.disk.is_rejected(context):
            raise self.disk.no_space()

    def can_start(self, caller: str) -> bool:
        """Return whether a worker is free for a caller now."""
        return not self.is_closing and self._slots.can_start(caller)

    def create_folder(self, context: Context) -> Path:
        """Create a folder for one request; it is removed when the request ends."""
        path = Path(tempfile.mkdtemp(prefix="job-", dir=self._scratch_folder()))
        context.cleanup.callback(self._remove_folder, path)
        return path

    def _remove_folder(self, path: Path) -> None:
        """Remove the folder of a request in a thread: some disks need milliseconds for each folder."""
        remove = partial(shutil.rmtree, path, ignore_errors=True)
        try:
            self._conversion_threads.submit(remove)
        except RuntimeError:
            # the service has ended, or no thread can be started
            remove()

    def _scratch_folder(self) -> Path:
        if self._scratch is not None and not self._scratch.path.is_dir():
            # a program that cleans temporary folders may have removed it
            self._scratch.remove()
            self._scratch = None
        if self._scratch is None:
            sweep(self._settings.temporary_folder)
            self._scratch = Scratch("service", self._settings.temporary_folder)
        return self._scratch.path

    async def run_in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function in a thread. A canceled call still waits for its end, so that nothing runs unobserved."""
        return await _run_in(self._conversion_threads, function, *arguments)

    async def run_lookup(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a query of the key database in a thread. Raises KeyStoreUnavailable after a timeout."""
        future = asyncio.get_running_loop().run_in_executor(
            self._lookup_threads, copy_context().run, function, *arguments
        )
        try:
            async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
                return await future
        except TimeoutError:
            raise KeyStoreUnavailable(f"the key database did not respond within {_LOOKUP_TIMEOUT_S:g} s") from None

    async def run_entitlement(self, caller: str, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that asks plug-ins for entitlements, as `run_in_thread` does.

        Callers take turns, so the slow hooks of one caller do not delay the others.
        """
        slot = await self._entitlement_slots.acquire(Ticket(caller), None)
        try:
            return await _run_in(self._entitlement_threads, function, *arguments)
        finally:
            self._entitlement_slots.release(slot)

    async def run_archive(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that packs or unpacks an archive, as `run_in_thread` does."""
        return await _run_in(self._archive_threads, function, *arguments)

    async def run_job_storage(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """Run a function of the store or the files of jobs, as `run_in_thread` does."""
        return await _run_in(self._job_threads, partial(function, *arguments, **keywords))

    async def run_job_query(
        self, deadline_s: float | None, function: Callable[..., T], *arguments: Any, **keywords: Any
    ) -> T:
        """Run a function of the store of jobs, as `run_job_storage` does. Raises JobStoreUnavailable at the deadline.

        The thread goes on after the deadline; a store has a deadline of its own for each statement.
        """
        if deadline_s is None:
            return await self.run_job_storage(function, *arguments, **keywords)
        future = asyncio.get_running_loop().run_in_executor(
            self._query_threads, copy_context().run, partial(function, *arguments, **keywords)
        )
        try:
            async with asyncio.timeout(deadline_s):
                return await future
        except TimeoutError:
            raise JobStoreUnavailable(f"the database of jobs did not respond within {deadline_s:g} s") from None

    @contextlib.asynccontextmanager
    async def slot(self, ticket: Ticket, deadline: float | None) -> AsyncIterator[None]:
        """Hold a conversion slot; wait for it until `deadline`, in the event loop's clock.

        Raises ServerBusy, ShuttingDown.
        """
        slot = await self._slots.acquire(ticket, deadline)
        try:
            yield
        except (WorkerCrashed, Canceled):
            if self.is_closing:
                raise ShuttingDown("the service shut down before the conversion ended; try again") from None
            raise
        finally:
            self._slots.release(slot)

    def stop(self) -> None:
        """Accept no new requests, and reject those that wait or are arriving; running conversions continue."""
        self.is_closing = True
        self._slots.stop()
        for timeout in self._receiving:
            if not timeout.expired():
                timeout.reschedule(0)

    def close(self) -> None:
        """Stop, end the threads, and remove the temporary files."""
        self.stop()
        for threads in (
            self._conversion_threads,
            self._lookup_threads,
            self._entitlement_threads,
            self._archive_threads,
            self._job_threads,
            self._query_threads,
        ):
            threads.shutdown(wait=True, cancel_futures=True)
        if self._scratch is not None:
            self._scratch.remove()


async def _run_in(threads: ThreadPoolExecutor, function: Callable[..., T], *arguments: Any) -> T:
    future = asyncio.get_running_loop().run_in_executor(threads, copy_context().run, function, *arguments)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        # a second cancellation can interrupt the wait below; then nothing else would retrieve the exception
        future.add_done_callback(_retrieve_exception)
        await asyncio.wait({future})
        raise


def _retrieve_exception(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
