"""GET /health/live and /health/ready, for probes: no API key, no rate limit."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from litestar import get

from meshhub.errors import ShuttingDown
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.description.parts import describe_json
from meshhub.http.endpoints.access import PUBLIC
from meshhub.http.state import AnyRequest, state_of


class Health(TypedDict):
    """Response to a probe that succeeds."""

    status: Literal["live", "ready"]
    faults: NotRequired[list[str]]


@get("/health/live", opt=PUBLIC)
async def health_live() -> Health:
    """Report that the process responds."""
    return {"status": "live"}


@get("/health/ready", opt=PUBLIC)
async def health_ready(request: AnyRequest) -> Health:
    """Check that the service accepts requests, has disk for uploads, and converts a cube.

    `faults` reports if no worker of a cluster runs, so that jobs wait, or if a store of jobs does not respond, so that
    jobs are rejected; other requests are served.
    """
    state = state_of(request)
    if state.resources.is_closing:
        raise ShuttingDown("the service is shutting down; send requests to another instance")
    state.resources.disk.check()
    await state.probe.check()
    faults = await state.jobs.find_faults()
    return {"status": "ready", "faults": faults} if faults else {"status": "ready"}


_HEALTH_LIVE = Endpoint(
    handler=health_live,
    summary="The process answers",
    tag="monitoring",
    answer=lambda _: describe_json("The process answers.", Health, {"status": "live"}),
    types=(Health,),
)

_HEALTH_READY = Endpoint(
    handler=health_ready,
    summary="The service takes requests",
    tag="monitoring",
    answer=lambda _: describe_json("The service takes requests.", Health, {"status": "ready"}),
    types=(Health,),
    codes=("shutting_down", "server_busy"),
)

ENDPOINTS = (_HEALTH_LIVE, _HEALTH_READY)
