"""GET /metrics, for Prometheus: no API key, no rate limit, and by default only for programs on this machine."""

from __future__ import annotations

import contextlib
import ipaddress

from litestar import Response, get
from litestar.exceptions import NotFoundException

from meshhub.errors import MeshhubError
from meshhub.http.description.endpoint import Endpoint
from meshhub.http.endpoints.access import PUBLIC
from meshhub.http.metrics import TEXT_FORMAT
from meshhub.http.state import AnyRequest, state_of

_PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@get("/metrics", opt=PUBLIC)
async def metrics(request: AnyRequest) -> Response[bytes]:
    """Return the metrics since the start of the service."""
    state = state_of(request)
    access = state.settings.metrics
    if access == "off" or (access == "loopback" and not _is_local(request)):
        raise NotFoundException
    with contextlib.suppress(MeshhubError):
        state.metrics.set_jobs(await state.jobs.statistics())
    state.metrics.set_store_faults(len(await state.jobs.find_store_faults()))
    return Response(state.metrics.export(), headers={"Content-Type": TEXT_FORMAT, "Cache-Control": "no-store"})


def _is_local(request: AnyRequest) -> bool:
    """Return whether the request comes from a program on this machine that is not a proxy."""
    if any(name in request.headers for name in _PROXY_HEADERS):
        return False
    peer = request.client.host if request.client else ""
    if not peer:
        # a Unix socket
        return True
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


ENDPOINTS = (
    Endpoint(
        handler=metrics,
        summary="Counters of the service",
        tag="monitoring",
        answer=lambda _: {
            "description": "Prometheus' text format. The operator decides who may read it.",
            "content": {
                "text/plain": {"schema": {"type": "string"}, "example": "# TYPE meshhub_requests_total counter\n"}
            },
        },
        codes=("not_found",),
    ),
)
