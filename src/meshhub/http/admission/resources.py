"""Running conversions for requests: taking turns, off the event loop, stopped when the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar

from meshhub.engine.contract import Cancel
from meshhub.engine.scratch import Scratch, sweep
from meshhub.errors import (
    Cancelled,
    InvalidSettings,
    KeyStoreUnavailable,
    ServerBusy,
    ShuttingDown,
    WorkerCrashed,
)
from meshhub.http.admission.disk import Disk
from meshhub.http.admission.slots import Ticket, Turns
from meshhub.http.context import Context
from meshhub.http.errors import ClientGone
from meshhub.service.settings import Settings

T = TypeVar("T")

_SPARE_THREADS = 8
"""Threads beside those that wait for conversions: for reading results."""

_GRANT_THREADS = 8
"""Threads of their own for plug-ins that grant entitlements: while these are slow, conversions go on."""

_ARCHIVE_THREADS = 4
"""Threads of their own for packing and unpacking, which take seconds: many batches at once hold nobody else up."""

_LOOKUP_THREADS = 4
"""Threads of their own for the database of keys: when it is stuck, callers without a key go on."""

_LOOKUP_TIMEOUT_S = 1.4
"""Seconds for a lookup, with the wait for a thread; a little more than the database itself has."""


class Jobs:
    """What requests share: threads, turns, disk, and the news that the service is stopping."""

    def __init__(self, settings: Settings) -> None:
        """No thread and no folder is made before the first request. Raises InvalidSettings."""
        try:
            folder = settings.temporary_folder or tempfile.gettempdir()
        except OSError as error:
            raise InvalidSettings("temporary_folder: the system has none that can be written; set one") from error
        if not (Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            raise InvalidSettings(f"temporary_folder: {folder!r} is no folder that can be written; make it first")
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.most_at_once + _SPARE_THREADS, thread_name_prefix="meshhub")
        self._lookups = ThreadPoolExecutor(_LOOKUP_THREADS, thread_name_prefix="meshhub-keys")
        self._grants = ThreadPoolExecutor(_GRANT_THREADS, thread_name_prefix="meshhub-grants")
        self._archives = ThreadPoolExecutor(_ARCHIVE_THREADS, thread_name_prefix="meshhub-archives")
        self._turns = Turns(settings.worker_count, settings.queue)
        self._root: Scratch | None = None
        self.disk = Disk(self._folder_of_folders, settings.keep_free_bytes)
        self._receiving: set[asyncio.Timeout] = set()
        self.closing = False

    @property
    def all_at_work(self) -> bool:
        """Whether no worker is free."""
        return self._turns.running >= self.workers

    @property
    def waiting(self) -> int:
        """Conversions that wait for a worker."""
        return self._turns.waiting

    @property
    def running(self) -> int:
        """Conversions that have a worker."""
        return self._turns.running

    @property
    def workers(self) -> int:
        """Conversions that may run at once."""
        return self._settings.worker_count

    async def admit(self, context: Context, length: int | None) -> None:
        """Wait until there is room for a request, before its body is taken. Raises ServerBusy, ShuttingDown.

        Nothing is promised yet: an announced body that never comes holds no disk from others.
        """
        self._turns.check(context.identity)
        await self.disk.take(context, 0, room=2 * (length or 0))

    async def arrived(self, context: Context, more: int) -> None:
        """Promise disk to a request for what comes of bytes that are about to be kept. Raises ServerBusy."""
        # the bytes themselves are soon missing from what is free; what comes out is about as much again
        await self.disk.take(context, more, room=2 * more)

    async def reserve(self, context: Context, expected: int) -> None:
        """Promise disk to a request until it is over. Raises ServerBusy."""
        await self.disk.take(context, expected, room=expected)

    def see_disk(self) -> None:
        """See that there would be disk for uploads if what is under way were done. Raises ServerBusy.

        Requests that fill the disk for a while make a busy service, not a broken one.
        """
        if self.disk.free_bytes() + self.disk.promised < 0:
            raise ServerBusy("the service has too little disk space for uploads now")

    @contextlib.asynccontextmanager
    async def receiving(self, context: Context, deadline: float | None) -> AsyncIterator[None]:
        """Time for a body to arrive; `deadline` is of the loop's clock.

        Raises TimeoutError, ServerBusy when another request needs the disk, and ShuttingDown as soon as the service
        stops: what is not here yet gets no turn any more.
        """
        try:
            async with asyncio.timeout_at(deadline) as patience:
                self._receiving.add(patience)
                self.disk.receive(context, patience)
                try:
                    yield
                finally:
                    self.disk.receive(context, None)
                    self._receiving.discard(patience)
        except TimeoutError:
            if self.closing:
                raise ShuttingDown("the service is shutting down; try again in a moment") from None
            if self.disk.is_rejected(context):
                raise self.disk.no_room() from None
            raise

    def folder(self, context: Context) -> Path:
        """A folder of the request's own, removed when the request is over."""
        path = Path(tempfile.mkdtemp(prefix="job-", dir=self._folder_of_folders()))
        context.cleanup.callback(shutil.rmtree, path, ignore_errors=True)
        return path

    def _folder_of_folders(self) -> Path:
        if self._root is not None and not self._root.path.is_dir():
            # whoever tidies up temporary folders may have taken it for left behind
            self._root.remove()
            self._root = None
        if self._root is None:
            sweep(self._settings.temporary_folder)
            self._root = Scratch("service", self._settings.temporary_folder)
        return self._root.path

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function in a thread. When this is cancelled it still waits: nothing goes on behind our back."""
        return await self._in(self._threads, function, *arguments)

    async def look_up(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run what asks the database of keys in a thread. Raises KeyStoreUnavailable when it takes too long."""
        future = asyncio.get_running_loop().run_in_executor(self._lookups, copy_context().run, function, *arguments)
        try:
            async with asyncio.timeout(_LOOKUP_TIMEOUT_S):
                return await future
        except TimeoutError:
            raise KeyStoreUnavailable(f"the database of keys did not answer within {_LOOKUP_TIMEOUT_S:g} s") from None

    async def entitle(self, function: Callable[..., T], *arguments: Any) -> T:
        """As `call`, for what asks plug-ins who may do what."""
        return await self._in(self._grants, function, *arguments)

    async def archive(self, function: Callable[..., T], *arguments: Any) -> T:
        """As `call`, for what packs and unpacks."""
        return await self._in(self._archives, function, *arguments)

    async def _in(self, threads: ThreadPoolExecutor, function: Callable[..., T], *arguments: Any) -> T:
        future = asyncio.get_running_loop().run_in_executor(threads, copy_context().run, function, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # some cancel again and again, and then nobody is left to hear what became of it
            future.add_done_callback(_unheard)
            await asyncio.wait({future})
            raise

    @contextlib.asynccontextmanager
    async def turn(self, ticket: Ticket, deadline: float | None) -> AsyncIterator[None]:
        """Wait for a worker; `deadline` is of the loop's clock. Raises ServerBusy, ShuttingDown."""
        await self._turns.take(ticket, deadline)
        try:
            yield
        except (WorkerCrashed, Cancelled):
            if self.closing:
                raise ShuttingDown("the service shut down before the conversion was done; try again") from None
            raise
        finally:
            self._turns.give_back(ticket)

    async def watched(
        self, receive: Callable[[], Awaitable[Any]], work: Callable[[Cancel], Coroutine[Any, Any, T]]
    ) -> T:
        """Do the work unless the client leaves first; then stop it, and wait until it has stopped.

        The framework does not stop a handler whose client is gone. Raises ClientGone.
        """
        cancel = Cancel()
        job = asyncio.ensure_future(work(cancel))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({job, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not job.done():
                raise ClientGone
            return job.result()
        finally:
            leaving.cancel()
            if not job.done():
                cancel()
                job.cancel()
                await asyncio.wait({job})
            if not job.cancelled():
                job.exception()
            cancel.close()

    def stop(self) -> None:
        """Take no more work, and refuse what waits or still arrives; what runs goes on."""
        self.closing = True
        self._turns.stop()
        for patience in self._receiving:
            if not patience.expired():
                patience.reschedule(0)

    def close(self) -> None:
        """Stop, and remove what lies about."""
        self.stop()
        for threads in (self._threads, self._lookups, self._grants, self._archives):
            threads.shutdown(wait=True, cancel_futures=True)
        if self._root is not None:
            self._root.remove()


def _unheard(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


async def _left(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
