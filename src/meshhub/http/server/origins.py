"""Checks of the headers Host and Origin, and the headers of CORS.

A page of another site can send requests to a service on the machine of its visitor. By a DNS name that changes its
address (rebinding), it could read the responses too. Services on other addresses have no such access to protect: they
use no cookies, and their callers send keys themselves.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from meshhub.errors import MeshhubError, quote
from meshhub.http.admission.addresses import is_trusted
from meshhub.http.errors import ServiceError
from meshhub.http.headers import RESPONSE_HEADERS
from meshhub.http.state import ServiceState

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
_EXPOSED = ", ".join(header.name for header in RESPONSE_HEADERS)


def check_origin(scope: Any, headers: Mapping[str, str], state: ServiceState) -> None:
    """Check the host and the origin of a request. Raises ServiceError."""
    server, client = scope.get("server"), scope.get("client")
    is_proxied = client is not None and is_trusted(client[0], state.trusted)
    # a trusted proxy checks the host itself, or `allowed_hosts` lists the public names
    is_local = server is not None and _is_loopback(server[0]) and not is_proxied
    host, allowed = headers.get("host", ""), state.settings.allowed_hosts
    name = _host_name(host)
    if (allowed or is_local) and name not in allowed and not (is_local and _is_local_name(name)):
        raise ServiceError(
            f"the service does not serve the host {quote(name)}; the operator lists its names in 'allowed_hosts'",
            code="host_not_allowed",
        )
    origin = headers.get("origin")
    if not is_local or origin is None or scope["method"] in _SAFE_METHODS:
        return
    if not _is_same_host(origin, host) and not is_allowed(origin, headers, state):
        raise ServiceError(
            f"pages of {quote(origin)} may not use this service; the operator lists them in 'cors_origins'",
            code="origin_not_allowed",
        )


def is_allowed(origin: str, headers: Mapping[str, str], state: ServiceState) -> bool:
    """Return whether pages of an origin may read the response; with `*` not if they sent an API key."""
    origins = state.settings.cors_origins
    return origin in origins or (ANY in origins and _KEY_HEADER.lower() not in headers)


def cors_headers(headers: Mapping[str, str], state: ServiceState) -> dict[str, str]:
    """Return the headers that let a page of another origin read the response."""
    origin = headers.get("origin")
    if not state.settings.cors_origins or origin is None or not is_allowed(origin, headers, state):
        return {}
    return {"access-control-allow-origin": origin, "access-control-expose-headers": _EXPOSED, "vary": "Origin"}


def preflight_headers(scope: Any, headers: Mapping[str, str], state: ServiceState) -> dict[str, str] | None:
    """Return the headers of the response to a preflight request; None for another request."""
    if scope["method"] != "OPTIONS" or "access-control-request-method" not in headers:
        return None
    if not cors_headers(headers, state):
        return None
    names = _REQUEST_HEADERS if ANY in state.settings.cors_origins else (*_REQUEST_HEADERS, _KEY_HEADER)
    return {
        "access-control-allow-methods": _METHODS,
        "access-control-allow-headers": ", ".join(names),
        "access-control-max-age": str(PREFLIGHT_S),
    }


def find_rejection(scope: Any, headers: Mapping[str, str], state: ServiceState) -> MeshhubError | None:
    """Return the error of `check_origin`; None without one."""
    try:
        check_origin(scope, headers, state)
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
    # nobody can register a name without a dot: it is one of the local network or of a container
    is_label = name != "" and not {".", ":"} & set(name)
    return is_label or name.endswith(".localhost") or _is_loopback(name)


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
