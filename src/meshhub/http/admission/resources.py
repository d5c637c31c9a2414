"""Resources that requests share: conversion slots, threads, folders, disk, and the state of the shutdown."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from meshhub.errors import Canceled, ShuttingDown, WorkerCrashed
from meshhub.http.admission.disk import Disk
from meshhub.http.admission.folders import Folders
from meshhub.http.admission.slots import SlotQueue, Ticket
from meshhub.http.admission.threads import Threads
from meshhub.http.context import Context
from meshhub.service.settings import Settings
from meshhub.service.sharing import SlotLimits

LEAST_S = 0.05
"""Seconds of a small conversion, which the queue of a new service expects."""


class Resources:
    """Slots, threads, folders and disk of the service.

    Attributes:
        folders: Folders of requests.
        disk: Disk space for them.
        slots: Slots for conversions.
        inventories_folder: Folder of the lists that the operator keeps for callers; None without one.
        workers: Maximum number of parallel conversions.
        conversion_memory_bytes: Maximum memory of a conversion.
        receiving: Requests whose body arrives.
        is_closing: Whether the service accepts no new requests.
    """

    def __init__(self, settings: Settings, slots: SlotLimits | None = None) -> None:
        """Create no thread and no folder before the first request. Raises InvalidSettings.

        Args:
            settings: Settings of the service.
            slots: Maximum number of parallel conversions; default: from the settings.
        """
        self.threads = Threads(settings.most_at_once)
        self.folders = Folders(settings.temporary_folder, self.threads)
        self.disk = Disk(lambda: self.folders.root, settings.keep_free_bytes)
        self.slots = SlotQueue(
            slots or settings.slot_limits, settings.queue, memory_bytes=settings.job_memory_bytes, least_s=LEAST_S
        )
        self.inventories_folder = settings.inventories_folder
        self.workers = settings.worker_count
        self.conversion_memory_bytes = settings.memory_bytes
        self.receiving: set[Context] = set()
        self.is_closing = False

    @property
    def are_all_workers_busy(self) -> bool:
        """Whether no worker is free."""
        return self.slots.running >= self.workers

    @contextlib.asynccontextmanager
    async def slot(self, ticket: Ticket, deadline: float | None, memory_bytes: int = 0) -> AsyncIterator[None]:
        """Hold a conversion slot; wait for it until `deadline`, in the event loop's clock.

        Args:
            ticket: Request.
            deadline: None: no deadline.
            memory_bytes: Memory that the conversion needs.
        Raises:
            ServerBusy: No slot was free in time, or the queue is full.
            ShuttingDown: The service stops.
        """
        slot = await self.slots.acquire(ticket, deadline, memory_bytes)
        try:
            yield
        except (WorkerCrashed, Canceled):
            if self.is_closing:
                raise ShuttingDown("the service shut down before the conversion ended; try again") from None
            raise
        finally:
            self.slots.release(slot)

    def stop(self) -> None:
        """Accept no new requests, and reject those that wait or are arriving; running conversions continue."""
        self.is_closing = True
        self.slots.stop()
        for context in self.receiving:
            if context.receiving is not None and not context.receiving.expired():
                context.receiving.reschedule(0)

    def close(self) -> None:
        """Stop, end the threads, and remove the temporary files."""
        self.stop()
        self.threads.close()
        self.folders.close()
