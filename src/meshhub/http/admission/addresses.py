"""Who is calling: the address of the socket, or what trusted proxies tell of it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOCAL = "local"
"""The address of a caller on a Unix socket."""


def networks(trusted: Iterable[str]) -> tuple[Network, ...]:
    """The networks that settings name. Raises ValueError."""
    return tuple(ipaddress.ip_network(one, strict=False) for one in trusted)


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> str:
    """The client's address.

    peer:      the socket's other end
    forwarded: the values of X-Forwarded-For, in order; believed only from trusted peers, and read
               from the right: each proxy appends the address it saw, the rest is the caller's own tale
    """
    address = _address(peer or "")
    if address is None:
        return LOCAL
    hops = [hop for line in forwarded for hop in line.split(",")]
    while hops and _is_trusted(address, trusted):
        before = _address(hops.pop())
        if before is None:
            break
        address = before
    return str(address)


def rate_identity(address: str) -> str:
    """What requests are counted by: an IPv4 address, or the /64 of an IPv6 one, which one customer has whole."""
    parsed = _address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


def is_trusted(peer: str, trusted: Sequence[Network]) -> bool:
    """Whether a socket's other end is a proxy that is believed."""
    address = _address(peer)
    return address is not None and _is_trusted(address, trusted)


def _is_trusted(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in trusted)


def _address(text: str) -> Address | None:
    """An address as proxies write it: bare, with a port, in brackets; IPv4 inside IPv6 counts as IPv4."""
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
