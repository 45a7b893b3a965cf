"""Throttles passwords: every wrong one makes the next attempt at the same name from the same address wait longer. Pure.

Three things are counted. Attempts wait by name and address together, so nobody else behind the address waits with them.
They also wait by name, once many addresses have guessed at it, unless the password was known from theirs before. By
address, only refusals wait: whoever tries many names has to wait for each answer, and a right password has its answer
at once. A name that does not exist is slowed like any other. Each process counts for itself.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeVar

FREE_BY_NAME_AND_ADDRESS: Final = 5
FREE_BY_NAME: Final = 20
"""Of all addresses together. A single one counts for five of them at most, and so keeps out nobody elsewhere."""
FREE_BY_ADDRESS: Final = 20
"""Of all names together: many users may share one, behind a proxy or a gateway."""
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
    """Counts failures; moments are seconds of a clock that only goes forward."""

    def __init__(self) -> None:
        self._by_pair: OrderedDict[tuple[str, str], _Failures] = OrderedDict()
        self._by_name: OrderedDict[str, _Failures] = OrderedDict()
        self._by_address: OrderedDict[str, _Failures] = OrderedDict()
        self._welcome: OrderedDict[tuple[str, str], None] = OrderedDict()

    def wait_s(self, name: str, address: str, now: float) -> float:
        """How long this attempt has to wait; 0 lets it through, and the next one waits for its turn."""
        pair = (name, site_of(address))
        found = [(_recent(self._by_pair, pair, now), FREE_BY_NAME_AND_ADDRESS)]
        # Whoever has known the password from here is not kept out by those who guess it from elsewhere.
        if pair not in self._welcome:
            found.append((_recent(self._by_name, name, now), FREE_BY_NAME))
        wait = max((failures.next_at - now for failures, _ in found if failures is not None), default=0.0)
        if wait > 0:
            return wait
        for failures, free in found:
            if failures is not None and failures.count >= free:
                failures.next_at = now + _pause_s(failures.count - free)
        return 0.0

    def fail(self, name: str, address: str, now: float) -> float:
        """Count a wrong login, and return how long its refusal has to wait."""
        pair = (name, site_of(address))
        from_here = _count(self._by_pair, pair, now)
        if from_here <= FREE_BY_NAME_AND_ADDRESS:
            _count(self._by_name, name, now)
        of_address = _count(self._by_address, pair[1], now)
        return 0.0 if of_address <= FREE_BY_ADDRESS else _pause_s(of_address - FREE_BY_ADDRESS - 1)

    def succeed(self, name: str, address: str) -> None:
        """Forget the failures of a name; those of the address stay, or its owner could guess other names for ever."""
        pair = (name, site_of(address))
        self._by_name.pop(name, None)
        self._by_pair.pop(pair, None)
        _remember(self._welcome, pair, None)


def _pause_s(further: int) -> float:
    return float(min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(further, 16)))


def _count(table: OrderedDict[_Key, _Failures], key: _Key, now: float) -> int:
    failures = _recent(table, key, now) or _Failures()
    failures.count += 1
    failures.last_at = now
    _remember(table, key, failures)
    return failures.count


def _recent(table: OrderedDict[_Key, _Failures], key: _Key, now: float) -> _Failures | None:
    failures = table.get(key)
    return failures if failures is not None and now - failures.last_at < FORGOTTEN_AFTER_S else None


def _remember(table: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > MOST_REMEMBERED:
        table.popitem(last=False)


def site_of(address: str) -> str:
    """An address, or for IPv6 the network that one customer gets: its owner has all addresses in it."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, _IPV6_SITE_BITS), strict=False))
