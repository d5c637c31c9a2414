"""GET /health/live and /health/ready, for probes: no key, not counted."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from litestar import get

from meshhub.errors import ServerBusy, ShuttingDown
from meshhub.http.endpoints.guard import OPEN
from meshhub.http.state import AnyRequest, shared_of


class Health(TypedDict):
    """Response to a probe that succeeds."""

    status: Literal["live", "ready"]
    faults: NotRequired[list[str]]


@get("/health/live", opt=OPEN)
async def live() -> Health:
    """The process answers."""
    return {"status": "live"}


@get("/health/ready", opt=OPEN)
async def ready(request: AnyRequest) -> Health:
    """The service takes requests, there is disk for uploads, a worker converts a cube, and reviews can be made.

    Hooks of plug-ins that are off are listed as `faults`; without reviews every conversion would be rejected.
    """
    shared = shared_of(request)
    if shared.jobs.closing:
        raise ShuttingDown("the service is shutting down; send requests elsewhere")
    shared.jobs.see_disk()
    await shared.probe.check()
    off = shared.registry.hooks.faults
    faults = [f"{fault.plugin} ({fault.origin}): {fault.message}" for fault in off]
    if any(fault.hook == "meshhub_review" for fault in off):
        raise ServerBusy(f"requests cannot be reviewed now; {'; '.join(faults)}")
    return {"status": "ready", "faults": faults} if faults else {"status": "ready"}
