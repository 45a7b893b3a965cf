"""Addresses that users may name: anything public, and the networks that an administrator allows. Pure.

Whoever names an address makes the control plane connect to it, which sees more of the network than that user does
(server-side request forgery). Source: RFC 6890, which lists what is not public.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network
Address: TypeAlias = IPv4Address | IPv6Address

_EMBEDDING: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""NAT64, and addresses of old that were compatible with IPv4: both end with an IPv4 address."""
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
"""RFC 8215; older releases of Python take it for public."""


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Networks as written in a configuration, ``10.1.0.0/16`` or one address. Raises ValueError."""
    return tuple(ip_network(text) for text in texts)


def is_allowed(address: str, allowed: Sequence[Network]) -> bool:
    """Whether a connection may go to this address. Raises ValueError for what is none."""
    found = _meant(ip_address(address.partition("%")[0]))
    if any(found in network for network in allowed):
        return True
    return found.is_global and not found.is_multicast and found not in _LOCAL_NAT64


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, where it does."""
    if isinstance(address, IPv4Address) or address.is_loopback:
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _EMBEDDING):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
