"""Conversions that end when their client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from meshhub.engine.contract import Cancel
from meshhub.http.admission.slots import Ticket
from meshhub.http.conversions.runner import Execution
from meshhub.http.errors import ClientGone
from meshhub.http.headers import CACHE
from meshhub.http.intake.conversion_requests import ConversionRequest
from meshhub.http.intake.reception import Reception

T = TypeVar("T")


async def run_while_connected(
    reception: Reception, conversion: ConversionRequest, work: Callable[[Execution], Coroutine[Any, Any, T]]
) -> T:
    """Run the conversions of a request, and cancel them if the client leaves first; wait until they have ended.

    The framework does not stop the handler when the client has left. Raises ClientGone.
    """
    cancel, context = Cancel(), reception.context
    execution = Execution(conversion, Ticket(context.identity), context.deadline, cancel)
    task = asyncio.ensure_future(work(execution))
    disconnect = asyncio.ensure_future(_wait_for_disconnect(reception.request.receive))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        result = task.result()
        if execution.hits:
            context.headers[CACHE] = "hit" if all(execution.hits) else "miss"
        return result
    finally:
        disconnect.cancel()
        if not task.done():
            cancel()
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
        cancel.close()


async def _wait_for_disconnect(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
