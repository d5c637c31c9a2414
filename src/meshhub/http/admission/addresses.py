"""Client addresses: the peer of the socket, or the address that trusted proxies report."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOCAL = "local"
"""Address of a caller on a Unix socket."""

UNIX = "unix"
"""Item of the trusted proxies that stands for the callers on a Unix socket."""

Trusted = Network | Literal["unix"]
"""Network of trusted proxies, or UNIX."""

_IPV6_FACTORS = {64: 1, 56: 4, 48: 16}
"""Limits of the networks of an IPv6 address, by prefix length, as multiples of the limit of one caller. Providers
assign one of these networks to a customer. The factors allow for several callers in a network, but not for the 65 536
that the /64 networks of a /48 could hold.
"""


class Counted(NamedTuple):
    """Name under which requests are counted, and the multiple of the limit of one caller that it may use."""

    identity: str
    factor: int


def networks(trusted: Iterable[str]) -> tuple[Trusted, ...]:
    """Parse the networks of a setting. Raises ValueError."""
    parsed: list[Trusted] = ["unix" if text == UNIX else ipaddress.ip_network(text, strict=False) for text in trusted]
    return tuple(parsed)


def client_address(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Trusted]) -> str:
    """Return the address of the client.

    Args:
        peer: Remote address of the socket; None for a Unix socket.
        forwarded: Values of X-Forwarded-For, in order. They count only if the peer is trusted, and are read from the
            right: each proxy appends the address that it saw, and the caller can forge the rest.
        trusted: Networks of trusted proxies.
    """
    address = _parse_address(peer or "")
    if address is None and UNIX not in trusted:
        return LOCAL
    hops = [hop for line in forwarded for hop in line.split(",")]
    while hops and (address is None or _is_in(address, trusted)):
        previous = _parse_address(hops.pop())
        if previous is None:
            break
        address = previous
    return LOCAL if address is None else str(address)


def count_networks(address: str) -> list[Counted]:
    """Return the names under which requests of an address are counted: the address; for IPv6 its /64, /56 and /48."""
    parsed = _parse_address(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return [Counted(address, 1)]
    return [
        Counted(str(ipaddress.ip_network((parsed, length), strict=False)), factor)
        for length, factor in _IPV6_FACTORS.items()
    ]


def is_trusted(peer: str, trusted: Sequence[Trusted]) -> bool:
    """Return whether the remote address of a socket is a trusted proxy."""
    address = _parse_address(peer)
    return address is not None and _is_in(address, trusted)


def _is_in(address: Address, trusted: Sequence[Trusted]) -> bool:
    return any(
        not isinstance(network, str) and address.version == network.version and address in network
        for network in trusted
    )


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
