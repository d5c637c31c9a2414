"""Files that are sent to printers: one at a time to each, and a repeated request only once."""

# why this way: docs/decisions/0062-network-printers.md
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from weakref import WeakValueDictionary

from meshhub.http.errors import ServiceError

_MAX_KEPT_COUNT = 1000
"""Requests whose outcome is kept for a repetition, in the memory of the server."""


class FileToSend(NamedTuple):
    """What a request sends: equal requests have equal values."""

    address: str
    digest: bytes
    replace: bool


class SentFiles:
    """Requests to send files, with their outcomes; for one event loop."""

    def __init__(self) -> None:
        """Start without requests."""
        self._kept: dict[tuple[str, str], tuple[FileToSend, asyncio.Task[None]]] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def send(
        self, caller: str, key: str | None, printer: str, file: FileToSend, run: Callable[[], Awaitable[None]]
    ) -> None:
        """Send a file; a request with the key of an earlier one gets its outcome, and sends nothing.

        Args:
            caller: Identity of the caller, whose keys are separate.
            key: Idempotency key; None: the request is new.
            printer: Address of the printer, which gets one file at a time.
            file: What is sent.
            run: Sends it.
        Raises:
            ServiceError: The key belongs to another request.
            Exception: What `run` raises.
        """
        if key is None:
            await self._send_alone(printer, run)
            return
        known = self._kept.get((caller, key))
        if known is None:
            known = self._kept[caller, key] = (file, asyncio.create_task(self._send_alone(printer, run)))
            self._forget_oldest()
        elif known[0] != file:
            raise ServiceError(
                "another request was sent with this Idempotency-Key; use a new key for a new file",
                error_code="idempotency_conflict",
            )
        # the first request goes on if its client leaves
        await asyncio.shield(known[1])

    async def _send_alone(self, printer: str, run: Callable[[], Awaitable[None]]) -> None:
        lock = self._locks.setdefault(printer, asyncio.Lock())
        async with lock:
            await run()

    def _forget_oldest(self) -> None:
        ended = [key for key, (_, task) in self._kept.items() if task.done()]
        for key in ended[: max(0, len(self._kept) - _MAX_KEPT_COUNT)]:
            del self._kept[key]
