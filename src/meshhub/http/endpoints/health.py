"""GET /health/live and /health/ready, for probes: no key, not counted."""

from __future__ import annotations

from typing import Literal, TypedDict

from litestar import get

from meshhub.errors import ShuttingDown
from meshhub.http.endpoints.guard import OPEN
from meshhub.http.state import AnyRequest, shared_of


class Health(TypedDict):
    """Response to a probe that succeeds."""

    status: Literal["live", "ready"]


@get("/health/live", opt=OPEN)
async def live() -> Health:
    """The process answers."""
    return {"status": "live"}


@get("/health/ready", opt=OPEN)
async def ready(request: AnyRequest) -> Health:
    """The service takes requests, there is disk for uploads, and a worker converts a cube."""
    shared = shared_of(request)
    if shared.jobs.closing:
        raise ShuttingDown("the service is shutting down; send requests elsewhere")
    shared.jobs.see_disk()
    await shared.probe.check()
    return {"status": "ready"}
