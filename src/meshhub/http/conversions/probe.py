"""Readiness probe: convert a cube on the engine, and cache the result for some seconds."""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from collections.abc import Callable

from meshhub.engine.contract import Task
from meshhub.errors import ConversionTimeout, MeshhubError, RequestError, ServerBusy, ShuttingDown
from meshhub.http.admission.resources import Resources
from meshhub.model.chain import Request
from meshhub.model.plans import LOCAL
from meshhub.model.report import Report
from meshhub.model.source import Source, Target
from meshhub.pipeline.resolve import resolve
from meshhub.registry import Registry

log = logging.getLogger("meshhub.http")

CACHE_S = 5.0
"""Seconds for which a result is valid, because several systems may probe often."""

_TIMEOUT_S = 20.0
"""Seconds to convert the cube; a cold worker on a loaded machine needs a few."""

_CORNERS = tuple((float(n & 1), float(n >> 1 & 1), float(n >> 2)) for n in range(8))
_SIDES = ((0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5))


def cube_stl() -> bytes:
    """Return a cube of 12 triangles as binary STL."""
    triangles = [corners for a, b, c, d in _SIDES for corners in ((a, b, c), (a, c, d))]
    records = (
        struct.pack("<12fH", 0, 0, 0, *(value for corner in triangle for value in _CORNERS[corner]), 0)
        for triangle in triangles
    )
    return bytes(80) + struct.pack("<I", len(triangles)) + b"".join(records)


class Probe:
    """Probe of the engine: at most one runs at a time, and none runs while the last result is valid.

    It uses no slot of the requests, and plug-ins do not receive its conversions.
    """

    def __init__(self, registry: Registry, resources: Resources, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the time in seconds from `clock`."""
        self._registry = registry
        self._resources = resources
        self._clock = clock
        self._running: asyncio.Task[str] | None = None
        self._last_run = -CACHE_S
        self._error_code = ""

    async def check(self) -> None:
        """Check that a worker converts. Raises ServerBusy if none does.

        Skip the conversion while all workers are busy, because a busy service is healthy and every conversion has a
        deadline.
        """
        fault = self._registry.engine.find_fault()
        if fault:
            log.error("no worker can be started: %s", fault)
            raise ServerBusy("no worker can be started now; see the operator's log")
        if self._running is None and self._resources.are_all_workers_busy:
            return
        is_cached = self._clock() - self._last_run < CACHE_S
        if self._running is None and not is_cached:
            self._running = asyncio.create_task(self._run())
        # shield: the first caller may disconnect while others still wait for the result
        error_code = self._error_code if self._running is None else await self._wait(self._running)
        if error_code:
            raise ServerBusy(f"no worker can convert now ({error_code}); see the operator's log")

    async def _wait(self, running: asyncio.Task[str]) -> str:
        """Return the error code of the check that runs; that of a timeout if its worker does not even start."""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await asyncio.shield(running)
        except TimeoutError:
            return ConversionTimeout.error_code

    async def _run(self) -> str:
        try:
            self._error_code = await self._resources.threads.run(self._convert_cube)
        finally:
            self._last_run, self._running = self._clock(), None
        return self._error_code

    def _convert_cube(self) -> str:
        """Convert the cube; return the error code, or "" for success."""
        source, target = Source.from_bytes(cube_stl(), "cube.stl"), Target()
        try:
            # name the format, so that no third-party sniffer runs in this process
            request = Request(target="stl", options={"input_format": "stl"})
            chain = resolve(self._registry.declarations, request, source, LOCAL)
            report = self._registry.engine.run(Task(chain=chain, source=source, target=target), timeout=_TIMEOUT_S)
        except RequestError:
            # no plug-in for STL is installed
            return ""
        except MeshhubError as error:
            if isinstance(error, ServerBusy) and self._resources.are_all_workers_busy:
                # requests have taken all workers meanwhile
                return ""
            if isinstance(error, ShuttingDown) or self._resources.is_closing:
                # the engine rejects or kills the conversion
                return error.error_code
            log.error("a worker did not convert a cube: %s: %s", error.error_code, error.message)
            return error.error_code
        except Exception as error:
            log.error("a worker did not convert a cube", exc_info=error)
            return "internal_error"
        if isinstance(report, Report) and report.target.faces == 12 and len(target.read()) == len(cube_stl()):
            return ""
        log.error("a worker converted a cube to something else")
        return "conversion_failed"
