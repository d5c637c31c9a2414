"""Client addresses: the peer of the socket, or the address that trusted proxies report."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOCAL = "local"
"""Address of a caller on a Unix socket."""


def networks(trusted: Iterable[str]) -> tuple[Network, ...]:
    """Parse the networks of a setting. Raises ValueError."""
    return tuple(ipaddress.ip_network(text, strict=False) for text in trusted)


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the address of the client.

    Args:
        peer: Remote address of the socket; None for a Unix socket.
        forwarded: Values of X-Forwarded-For, in order. They count only if the peer is trusted, and are read from the
            right: each proxy appends the address that it saw, and the caller can forge the rest.
        trusted: Networks of trusted proxies.
    """
    address = _parse_address(peer or "")
    if address is None:
        return LOCAL
    hops = [hop for line in forwarded for hop in line.split(",")]
    while hops and _is_in(address, trusted):
        previous = _parse_address(hops.pop())
        if previous is None:
            break
        address = previous
    return str(address)


def rate_identity(address: str) -> str:
    """Return the rate limit key of an address: the IPv4 address, or the /64 of an IPv6 one (one customer's network)."""
    parsed = _parse_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


def is_trusted(peer: str, trusted: Sequence[Network]) -> bool:
    """Return whether the remote address of a socket is a trusted proxy."""
    address = _parse_address(peer)
    return address is not None and _is_in(address, trusted)


def _is_in(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in trusted)


def _parse_address(text: str) -> Address | None:
    """Parse an address as proxies write it: bare, with a port, in brackets. IPv4 mapped into IPv6 becomes IPv4."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
