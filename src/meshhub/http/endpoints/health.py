"""GET /health/live and /health/ready, for probes: no API key, no rate limit."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from litestar import get

from meshhub.errors import ServerBusy, ShuttingDown
from meshhub.http.endpoints.access import PUBLIC
from meshhub.http.state import AnyRequest, state_of


class Health(TypedDict):
    """Response to a probe that succeeds."""

    status: Literal["live", "ready"]
    faults: NotRequired[list[str]]


@get("/health/live", opt=PUBLIC)
async def live() -> Health:
    """Report that the process responds."""
    return {"status": "live"}


@get("/health/ready", opt=PUBLIC)
async def ready(request: AnyRequest) -> Health:
    """Check that the service accepts requests, has disk for uploads, converts a cube, and can review requests.

    `faults` lists the disabled hooks of plug-ins, and reports if no worker of a cluster runs. Without reviews, every
    conversion would be rejected; without workers, jobs are accepted and wait.
    """
    state = state_of(request)
    if state.resources.is_closing:
        raise ShuttingDown("the service is shutting down; send requests to another instance")
    state.resources.disk.check()
    await state.probe.check()
    disabled = state.registry.hooks.faults
    faults = [f"{fault.plugin} ({fault.origin}): {fault.message}" for fault in disabled]
    if any(fault.hook == "meshhub_review" for fault in disabled):
        raise ServerBusy(f"requests cannot be reviewed now; {'; '.join(faults)}")
    faults += state.jobs.runner.faults
    return {"status": "ready", "faults": faults} if faults else {"status": "ready"}
