"""GET /metrics, for Prometheus: no key, not counted, and unless told only for this machine."""

from __future__ import annotations

import ipaddress

from litestar import Response, get
from litestar.exceptions import NotFoundException

from meshhub.http.endpoints.guard import OPEN
from meshhub.http.state import AnyRequest, shared_of

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@get("/metrics", opt=OPEN)
async def metrics(request: AnyRequest) -> Response[bytes]:
    """What the service has counted since it started."""
    shared = shared_of(request)
    allowed = shared.settings.metrics
    if allowed == "off" or (allowed == "loopback" and not _from_here(request)):
        raise NotFoundException
    return Response(shared.metrics.text(), headers={"Content-Type": TEXT_FORMAT, "Cache-Control": "no-store"})


def _from_here(request: AnyRequest) -> bool:
    """Whether a program on this machine asks for itself: a proxy here asks for somebody else."""
    if any(name in request.headers for name in _FORWARDED):
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
