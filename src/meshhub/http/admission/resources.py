"""Resources that requests share: conversion slots, threads, folders, disk, and the state of the shutdown."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from meshhub.errors import Canceled, ShuttingDown, WorkerCrashed
from meshhub.http.admission.disk import Disk
from meshhub.http.admission.folders import Folders
from meshhub.http.admission.slots import SlotQueue, Ticket, shutting_down
from meshhub.http.admission.threads import Threads
from meshhub.http.context import Context
from meshhub.service.settings import Settings
from meshhub.service.sharing import SlotLimits


class Resources:
    """Slots, threads, folders and disk of the service.

    Attributes:
        threads: Threads.
        folders: Folders of requests.
        disk: Disk space for them.
        workers: Maximum number of parallel conversions.
        is_closing: Whether the service accepts no new requests.
    """

    def __init__(self, settings: Settings, slots: SlotLimits | None = None) -> None:
        """Create no thread and no folder before the first request. Raises InvalidSettings.

        Args:
            settings: Settings of the service.
            slots: Conversions at once; default: those of the settings.
        """
        self.threads = Threads(settings.most_at_once)
        self.folders = Folders(settings.temporary_folder, self.threads)
        self.disk = Disk(self.folders, settings.keep_free_bytes)
        self.workers = settings.worker_count
        self.is_closing = False
        self._slots = SlotQueue(slots or settings.slot_limits, settings.queue)
        self._receiving: set[asyncio.Timeout] = set()

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
                raise shutting_down() from None
            if not self.disk.is_rejected(context):
                raise
        # even if the last bytes have arrived by now: the other request relies on this space
        if self.disk.is_rejected(context):
            raise self.disk.no_space()

    def can_start(self, caller: str) -> bool:
        """Return whether a worker is free for a caller now."""
        return not self.is_closing and self._slots.can_start(caller)

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
        self.threads.close()
        self.folders.close()
