"""Destinations of connections: the hosts and networks that an administrator allows beside what is public. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct

from libs.outbound.addresses import Network, is_allowed, networks

_PORTS: Final = {"http": 80, "https": 443}
_MOST_PORTS: Final = 65535
_URL: Final = re.compile(r"(?i:(https?))://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(?:/[!-\[\]-~]*)?")


class Authority(NamedTuple):
    """Host and port of a URL (RFC 3986 3.2)."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def authority(host: str, port: int) -> Authority:
    """The same for all ways to write a name."""
    return Authority(host.lower().strip("[]").removesuffix("."), port)


def authority_of(url: str) -> Authority | None:
    """Host and port of a URL of HTTP.

    None for a URL that two programs may read differently, such as one with a user or a backslash before its host.
    """
    found = _URL.fullmatch(url.strip())
    if found is None:
        return None
    port = int(found[3]) if found[3] else _PORTS[found[1].lower()]
    return authority(found[2], port) if port <= _MOST_PORTS else None


class Destinations(Struct, frozen=True, kw_only=True):
    """What is allowed beside public addresses: networks, and hosts whatever their addresses are."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[Authority] = frozenset()

    def allow(self, to: Authority, address: str) -> bool:
        """Whether a connection to ``to`` may go to ``address``, one of its host. Raises ValueError for no address."""
        return to in self.hosts or is_allowed(address, self.networks)


def destinations(texts: Iterable[str]) -> Destinations:
    """As written in a configuration: networks, as in ``10.1.0.0/16``, and URLs. Raises ValueError."""
    ranges, hosts = [], set()
    for text in texts:
        if "://" not in text:
            ranges.append(text)
        elif (host := authority_of(text)) is not None:
            hosts.add(host)
        else:
            raise ValueError(f"{text!r} is not a URL such as http://minio.data.svc:9000")
    return Destinations(networks=networks(ranges), hosts=frozenset(hosts))
