"""Coroutines that call a method of `Registry` in a thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from meshhub.engine.contract import Cancel
from meshhub.model.progress import Listener, Progress

if TYPE_CHECKING:
    import asyncio

P = ParamSpec("P")
R = TypeVar("R")


def async_twin(method: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return a coroutine function that calls a method in a thread, and stops it when its task is cancelled."""

    @functools.wraps(method)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> R:
        import asyncio

        cancel = kwargs.setdefault("cancel", None) or Cancel()
        kwargs["cancel"] = cancel
        if (listener := kwargs.get("progress")) is not None:
            kwargs["progress"] = _in_loop(asyncio.get_running_loop(), cast(Listener, listener))
        work = asyncio.ensure_future(asyncio.to_thread(method, *args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            assert isinstance(cancel, Cancel)
            cancel()
            # no task waits for the work any longer, so its error is marked as retrieved
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise

    twin.__doc__ = (
        f"Call `{method.__name__}` in a thread; cancelling the task stops the conversion as `cancel` does. "
        "The event loop calls `progress`."
    )
    return twin


def _in_loop(loop: asyncio.AbstractEventLoop, listener: Listener) -> Listener:
    """Return a callback for another thread that calls a listener in the event loop and waits for its return."""

    async def call(progress: Progress) -> None:
        listener(progress)

    def relay(progress: Progress) -> None:
        import asyncio

        asyncio.run_coroutine_threadsafe(call(progress), loop).result()

    return relay
