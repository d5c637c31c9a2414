"""Destinations of webhooks: only addresses that callers may reach, resolved once and then pinned.

A caller chooses the URL, so it could name a service inside the operator's network (server-side request forgery), or a
host name whose address changes between check and connection. The connection therefore goes to the checked address.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from meshhub.errors import InvalidOption, quote
from meshhub.http.admission.addresses import Address, Network

_MAX_URL_CHARS = 2000
"""Maximum characters of a URL; a longer one is certainly a mistake."""

_RESOLVE_TIMEOUT_S = 2.0
"""Seconds that a submission waits for a name server."""

_UNKNOWN_NAMES = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY") if hasattr(socket, name)
)
"""Errors for a name without addresses, which another attempt does not change."""

_TRANSLATED = (
    ipaddress.ip_network("64:ff9b::/96"),
    ipaddress.ip_network("2002::/16"),
    ipaddress.ip_network("2001::/32"),
)
"""IPv6 networks whose addresses contain an IPv4 address, which may be private: NAT64, 6to4, Teredo."""

_LOCAL = (ipaddress.ip_network("fec0::/10"), ipaddress.ip_network("192.0.0.0/24"))
"""Local networks that `is_global` includes: site-local addresses (RFC 3879), and protocol assignments (RFC 6890), where
a cloud has its metadata service."""


class Destination(Struct, frozen=True):
    """Parts of a URL."""

    host: str
    port: int
    is_secure: bool
    path: str

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"


class Refused(Exception):
    """A destination has an address that is not allowed."""


class Destinations:
    """Allowed destinations: the hosts and networks of the setting, or all public addresses with https."""

    def __init__(self, allowed: Sequence[str]) -> None:
        """Allow these hosts ("example.com", "*.example.com"), addresses and networks."""
        self._networks: list[Network] = []
        self._hosts: list[str] = []
        for entry in allowed:
            try:
                self._networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                self._hosts.append(entry.lower())

    @property
    def _is_limited(self) -> bool:
        return bool(self._networks or self._hosts)

    def parse(self, url: str) -> Destination:
        """Return the destination of a URL that a caller sent. Raises InvalidOption."""
        problem = "is not a URL like https://example.com/hook"
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            host = host.encode("idna").decode("ascii")
        except (ValueError, UnicodeError):
            raise InvalidOption(f"option 'webhook_url' {problem}: {quote(url)}") from None
        if not host or parts.scheme not in ("http", "https") or len(url) > _MAX_URL_CHARS or not url.isascii():
            raise InvalidOption(f"option 'webhook_url' {problem}: {quote(url)}")
        if (
            parts.username is not None
            or parts.password is not None
            or any(not c.isprintable() or c == " " for c in url)
        ):
            raise InvalidOption(f"option 'webhook_url' must have no password and no spaces: {quote(url)}")
        is_secure = parts.scheme == "https"
        if not is_secure and not self._is_limited:
            raise InvalidOption("option 'webhook_url' must begin with https://")
        if self._hosts and not self._networks and not self._is_listed(host):
            raise InvalidOption(f"option 'webhook_url': the operator does not allow webhooks to {quote(host)}")
        with contextlib.suppress(ValueError):
            if not self._is_allowed(host, ipaddress.ip_address(host)):
                raise InvalidOption(f"option 'webhook_url': webhooks may not reach {host}; send a public address")
        path = parts.path or "/"
        return Destination(
            host, port or (443 if is_secure else 80), is_secure, path + (f"?{parts.query}" if parts.query else "")
        )

    async def check(self, url: str) -> None:
        """Check that a URL that a caller sent can be reached. Raises InvalidOption.

        A name server that does not respond now may do so later, so its failure is not an error.
        """
        destination = self.parse(url)
        try:
            async with asyncio.timeout(_RESOLVE_TIMEOUT_S):
                await self.resolve(destination)
        except Refused as refused:
            raise InvalidOption(f"option 'webhook_url': {refused}; send a public address") from None
        except socket.gaierror as error:
            if error.errno in _UNKNOWN_NAMES:
                raise InvalidOption(
                    f"option 'webhook_url': the host {quote(destination.host)} does not exist"
                ) from None
        except OSError:
            # includes TimeoutError
            pass

    async def resolve(self, destination: Destination) -> str:
        """Return an allowed address of a destination. Raises Refused, OSError."""
        loop = asyncio.get_running_loop()
        rows = await loop.getaddrinfo(destination.host, destination.port, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in rows]
        # all of them, because a connection to a name with a public and a private address could reach the private one
        for address in addresses:
            if not self._is_allowed(destination.host, address):
                raise Refused(f"{destination.host} has the address {address}, which webhooks may not reach")
        return str(addresses[0])

    def _is_allowed(self, host: str, address: Address) -> bool:
        if not self._is_limited:
            return is_public(address)
        plain = getattr(address, "ipv4_mapped", None) or address
        return self._is_listed(host) or any(plain.version == net.version and plain in net for net in self._networks)

    def _is_listed(self, host: str) -> bool:
        return any(host == entry or (entry.startswith("*.") and host.endswith(entry[1:])) for entry in self._hosts)


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet."""
    address = getattr(address, "ipv4_mapped", None) or address
    if any(address.version == network.version and address in network for network in (*_TRANSLATED, *_LOCAL)):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
