"""Checks of the headers Host and Origin, and the headers of CORS.

A page of another site can send requests to a service on its visitor's machine. With a DNS name that changes its address
(rebinding), the page could read the responses too. Services on other addresses need no such protection, because they
use no cookies and their callers send keys themselves.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from meshhub.errors import MeshhubError, quote
from meshhub.http.admission.addresses import is_trusted
from meshhub.http.errors import ServiceError
from meshhub.http.headers import RESPONSE_HEADERS
from meshhub.http.state import ServiceState
from meshhub.service.keys import is_publishable

ANY = "*"
"""Setting that allows every origin, without API keys."""

PREFLIGHT_S = 600
"""Seconds for which a browser may reuse the response to a preflight request; Chromium allows at most 7200."""

_METHODS = "GET, HEAD, POST, DELETE"
_REQUEST_HEADERS = (
    "Content-Type", "Idempotency-Key", "If-None-Match", "If-Range", "Last-Event-ID", "Range", "X-Request-ID",
)  # fmt: skip
_KEY_HEADER = "X-Api-Key"
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_PROBES = "/health/"
"""Prefix of the paths for probes; their responses contain no data of callers."""
_EXPOSED = ", ".join(header.name for header in RESPONSE_HEADERS)


class Access(NamedTuple):
    """Access of the page that sent a request.

    can_read: whether it may read the response
    can_send_key: whether it may send an API key
    """

    can_read: bool
    can_send_key: bool


def check_origin(scope: Any, headers: Mapping[str, str], state: ServiceState, access: Access) -> None:
    """Check the host and the origin of a request. Raises ServiceError."""
    server, client = scope.get("server"), scope.get("client")
    is_proxied = client is not None and is_trusted(client[0], state.trusted)
    # a trusted proxy checks the host itself, or `allowed_hosts` lists the public names
    is_loopback = server is not None and _is_loopback(server[0])
    is_local = is_loopback and not is_proxied
    if is_loopback and "host" not in headers and scope["path"].startswith(_PROBES):
        # probes in HTTP/1.0 may omit the header; browsers always send it
        return
    host, allowed = headers.get("host", ""), state.settings.allowed_hosts
    name = _host_name(host)
    if (allowed or is_local) and name not in allowed and not (is_local and _is_local_name(name)):
        raise ServiceError(
            f"the service does not serve the host {quote(name)}; the operator lists its names in 'allowed_hosts'",
            error_code="host_not_allowed",
        )
    origin = headers.get("origin")
    if not is_local or origin is None or scope["method"] in _SAFE_METHODS:
        return
    if not _is_same_host(origin, host) and not access.can_read:
        raise ServiceError(
            f"pages of {quote(origin)} may not use this service; the operator lists them in 'cors_origins'",
            error_code="origin_not_allowed",
        )


async def find_access(headers: Mapping[str, str], state: ServiceState) -> Access:
    """Return what the page that sent a request may do.

    It may read the response and send a key if its origin is listed, or if the request has a publishable key and the
    origin is that of the key. A preflight request does not contain the key; it only announces one. `*` allows every
    origin without a key.
    """
    origin, key = headers.get("origin"), headers.get(_KEY_HEADER.lower())
    origins = state.settings.cors_origins
    if origin is None:
        return Access(can_read=False, can_send_key=False)
    if origin in origins:
        return Access(can_read=True, can_send_key=True)
    announced = {name.strip() for name in headers.get("access-control-request-headers", "").lower().split(",")}
    has_key = is_publishable(key) if key is not None else _KEY_HEADER.lower() in announced
    is_published = has_key and await state.published_origins.include(origin)
    return Access(can_read=is_published or (ANY in origins and key is None), can_send_key=is_published)


def cors_headers(headers: Mapping[str, str], state: ServiceState, access: Access) -> dict[str, str]:
    """Return the headers of a response for pages of other origins, and for caches."""
    if access.can_read:
        origin = headers["origin"]
        return {"access-control-allow-origin": origin, "access-control-expose-headers": _EXPOSED, "vary": "Origin"}
    # no page can read this response, so a cache must not give it to a page
    is_public = bool(state.settings.cors_origins) or is_publishable(headers.get(_KEY_HEADER.lower(), ""))
    return {"vary": "Origin"} if is_public else {}


def preflight_headers(scope: Any, headers: Mapping[str, str], access: Access) -> dict[str, str] | None:
    """Return the headers of the response to a preflight request; None for another request, or of another page."""
    if scope["method"] != "OPTIONS" or "access-control-request-method" not in headers or not access.can_read:
        return None
    names = (*_REQUEST_HEADERS, _KEY_HEADER) if access.can_send_key else _REQUEST_HEADERS
    return {
        "access-control-allow-methods": _METHODS,
        "access-control-allow-headers": ", ".join(names),
        "access-control-max-age": str(PREFLIGHT_S),
    }


def find_rejection(scope: Any, headers: Mapping[str, str], state: ServiceState, access: Access) -> MeshhubError | None:
    """Return the error of `check_origin`; None without one."""
    try:
        check_origin(scope, headers, state, access)
    except MeshhubError as error:
        return error
    return None


def _is_same_host(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        # an unclosed bracket; browsers send no such origin
        return False


def _host_name(host: str) -> str:
    """Return the name or address in a Host header, in lower case, without the port and brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].rstrip(".")


def _is_local_name(name: str) -> bool:
    # nobody can register a name without a dot, so it is a name of the local network or of a container
    is_label = name != "" and not {".", ":"} & set(name)
    return is_label or name.endswith(".localhost") or _is_loopback(name)


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
