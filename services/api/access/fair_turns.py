"""A semaphore whose waiters take turns: by group, and within a group by member; first come first served in each member.

Whoever sends many requests at once waits longer, and nobody else does. It remembers those that wait and nothing more.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

_Waiter = asyncio.Future[None]


class FairTurns:
    """at_once  how many have it at the same time"""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._groups: OrderedDict[str, OrderedDict[str, deque[_Waiter]]] = OrderedDict()
        """Those whose turn comes first are first, groups as well as members."""

    async def acquire(self, group: str, member: str) -> None:
        """Return when it is the caller's turn; ``release`` ends it."""
        if self._free:  # then nobody waits
            self._free -= 1
            return
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._groups.setdefault(group, OrderedDict()).setdefault(member, deque()).append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.release()  # its turn had come in the same moment
            else:
                self._remove(group, member, waiter)
            raise

    def release(self) -> None:
        """Pass on a turn."""
        while self._groups:
            waiter = self._take_next()
            if not waiter.done():  # else cancelled, and not run since
                waiter.set_result(None)
                return
        self._free += 1

    def _take_next(self) -> _Waiter:
        """Whose turn it is; the group and the member go behind all others."""
        group, members = self._groups.popitem(last=False)
        member, waiters = members.popitem(last=False)
        waiter = waiters.popleft()
        if waiters:
            members[member] = waiters
        if members:
            self._groups[group] = members
        return waiter

    def _remove(self, group: str, member: str, waiter: _Waiter) -> None:
        members = self._groups.get(group, OrderedDict())
        waiters = members.get(member, deque())
        if waiter not in waiters:
            return
        waiters.remove(waiter)
        if not waiters:
            del members[member]
        if not members:
            del self._groups[group]
