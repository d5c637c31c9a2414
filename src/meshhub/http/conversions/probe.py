"""Whether a worker converts: a cube is sent through the engine, and the answer holds for some seconds."""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from collections.abc import Callable

from meshhub.engine.contract import Task
from meshhub.errors import MeshhubError, RequestError, ServerBusy, ShuttingDown
from meshhub.http.admission.resources import Jobs
from meshhub.model.chain import Request
from meshhub.model.plans import LOCAL
from meshhub.model.report import Report
from meshhub.model.source import Source, Target
from meshhub.pipeline.resolve import resolve
from meshhub.registry import Registry

log = logging.getLogger("meshhub.http")

FRESH_SECONDS = 5.0
"""How long an answer holds: probes may come often and from many sides."""

_PATIENCE = 20.0
"""Seconds after which a cube that is still not converted counts as a failure."""

_CORNERS = tuple((float(n & 1), float(n >> 1 & 1), float(n >> 2)) for n in range(8))
_SIDES = ((0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5))


def cube() -> bytes:
    """A binary STL of 12 triangles."""
    halves = [corners for a, b, c, d in _SIDES for corners in ((a, b, c), (a, c, d))]
    triangles = (struct.pack("<12fH", 0, 0, 0, *(x for n in half for x in _CORNERS[n]), 0) for half in halves)
    return bytes(80) + struct.pack("<I", len(halves)) + b"".join(triangles)


class Probe:
    """Asks the engine at most once at a time, and not again while the last answer is fresh.

    It takes no turn from a request, and no plug-in hears of its conversions.
    """

    def __init__(self, registry: Registry, jobs: Jobs, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells seconds."""
        self._registry = registry
        self._jobs = jobs
        self._clock = clock
        self._asking: asyncio.Task[str] | None = None
        self._asked = -FRESH_SECONDS
        self._said = ""

    async def check(self) -> None:
        """See that a worker converts. Raises ServerBusy when none does.

        When all workers are at work they are not asked: a busy service is not a broken one, and
        every conversion has its deadline.
        """
        if self._asking is None and self._jobs.all_at_work:
            return
        fresh = self._clock() - self._asked < FRESH_SECONDS
        if self._asking is None and not fresh:
            self._asking = asyncio.create_task(self._ask())
        # whoever asked first may leave, and the others still want to know
        said = self._said if self._asking is None else await asyncio.shield(self._asking)
        if said:
            raise ServerBusy(f"no worker converts now ({said}); the operator's log says more")

    async def _ask(self) -> str:
        try:
            self._said = await self._jobs.call(self._convert)
        finally:
            self._asked, self._asking = self._clock(), None
        return self._said

    def _convert(self) -> str:
        """Convert the cube; what is wrong, as an error code, or ""."""
        source, target = Source.from_bytes(cube(), "cube.stl"), Target()
        try:
            chain = resolve(self._registry.declarations, Request(target="stl"), source, LOCAL)
            report = self._registry.engine.run(Task(chain=chain, source=source, target=target), timeout=_PATIENCE)
        except RequestError:
            # no plug-in knows STL here
            return ""
        except MeshhubError as error:
            if isinstance(error, ServerBusy) and self._jobs.all_at_work:
                # all workers went to requests meanwhile
                return ""
            if isinstance(error, ShuttingDown) or self._jobs.closing:
                # the engine refuses or kills the cube
                return error.code
            log.error("a worker did not convert a cube: %s: %s", error.code, error.message)
            return error.code
        except Exception as error:
            log.error("a worker did not convert a cube", exc_info=error)
            return "internal_error"
        if isinstance(report, Report) and report.target.faces == 12 and len(target.read()) == len(cube()):
            return ""
        log.error("a worker made something else of a cube")
        return "conversion_failed"
