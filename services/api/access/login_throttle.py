"""Throttles passwords: every wrong one makes the next wait longer, by name and by address. Pure.

A name that does not exist is slowed like any other, so nobody learns which ones do. Each process counts for itself.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeVar

FREE_BY_NAME: Final = 5
FREE_BY_ADDRESS: Final = 20
"""Many users may share one, behind a proxy or a gateway."""
FIRST_WAIT_S: Final = 0.25
LONGEST_WAIT_S: Final = 8.0
FORGOTTEN_AFTER_S: Final = 900.0
MOST_REMEMBERED: Final = 10_000
_IPV6_SITE_BITS: Final = 64

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(slots=True)
class _Failures:
    count: int = 0
    last_at: float = 0.0
    next_at: float = 0.0


class LoginThrottle:
    """Counts failures by name and address; moments are seconds of a clock that only goes forward."""

    def __init__(self) -> None:
        self._by_name: OrderedDict[str, _Failures] = OrderedDict()
        self._by_address: OrderedDict[str, _Failures] = OrderedDict()
        self._welcome: OrderedDict[tuple[str, str], None] = OrderedDict()

    def wait_s(self, name: str, address: str, now: float) -> float:
        """How long this attempt has to wait; 0 lets it through, and the next one waits for its turn."""
        site = _site(address)
        counted = [(self._by_address, site, FREE_BY_ADDRESS)]
        # Whoever has known the password from here is not kept out by those who guess it from elsewhere.
        if (name, site) not in self._welcome:
            counted.append((self._by_name, name, FREE_BY_NAME))
        found = [(_recent(table, key, now), free) for table, key, free in counted]
        wait = max((failures.next_at - now for failures, _ in found if failures is not None), default=0.0)
        if wait > 0:
            return wait
        for failures, free in found:
            if failures is not None and failures.count >= free:
                failures.next_at = now + min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (failures.count - free))
        return 0.0

    def fail(self, name: str, address: str, now: float) -> None:
        """Count a wrong login."""
        for table, key in ((self._by_name, name), (self._by_address, _site(address))):
            failures = _recent(table, key, now) or _Failures()
            failures.count += 1
            failures.last_at = now
            _remember(table, key, failures)

    def succeed(self, name: str, address: str) -> None:
        """Forget the failures of a name; those of the address stay, or its owner could guess other names for ever."""
        self._by_name.pop(name, None)
        _remember(self._welcome, (name, _site(address)), None)


def _recent(table: OrderedDict[str, _Failures], key: str, now: float) -> _Failures | None:
    failures = table.get(key)
    return failures if failures is not None and now - failures.last_at < FORGOTTEN_AFTER_S else None


def _remember(table: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > MOST_REMEMBERED:
        table.popitem(last=False)


def _site(address: str) -> str:
    """An address, or for IPv6 the network that one customer gets: its owner has all addresses in it."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, _IPV6_SITE_BITS), strict=False))
