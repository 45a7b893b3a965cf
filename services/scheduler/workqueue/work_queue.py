"""Who needs to be looked at: a set of keys and a few workers.

A key is looked at by one worker at a time, and again when it was poked meanwhile, so that no poke is lost and none does
work twice. What fails is looked at again, later each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Literal, NamedTuple

from libs.errors import Unavailable
from libs.run_until_first_exits import run_until_first_exits
from services.scheduler.workqueue.retry_loop import pause_after, report

WORKERS: Final = 8


class Key(NamedTuple):
    kind: Literal["experiment", "deletion", "allocation", "leaving", "project", "workspace", "namespaces", "nodes"]
    ident: int | str


class Attention:
    """``look`` returns seconds after which the key wants to be looked at again, or None."""

    def __init__(self, look: Callable[[Key], Awaitable[float | None]]) -> None:
        self._look = look
        self._waiting: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()
        self._running: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._waiters: dict[Key, list[asyncio.Future[None]]] = {}

    def poke(self, key: Key, *, after_s: float = 0.0) -> None:
        """Have ``key`` looked at, ``after_s`` seconds from now unless it is due earlier anyway."""
        if after_s > 0:
            self._set_timer(key, after_s)
        elif key in self._running:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._waiting.put_nowait(key)

    async def looked_at(self, key: Key) -> None:
        """Have ``key`` looked at, and return when a look that began after this call has ended.

        Raises Unavailable when it has failed, or nobody looks any more.
        """
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(key, []).append(waiter)
        self.poke(key)
        await waiter

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing runs; timers may."""
        return not self._queued and not self._running

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await run_until_first_exits(**{f"attention {number}": self._work() for number in range(WORKERS)})
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
            for waiters in self._waiters.values():
                _tell(waiters, Unavailable("the scheduler stops"))
            self._waiters.clear()

    async def _work(self) -> None:
        while True:
            key = await self._waiting.get()
            self._queued.discard(key)
            self._running.add(key)
            waiters = self._waiters.pop(key, [])
            outcome: Unavailable | None = Unavailable("the look was broken off")
            try:
                after_s = await self._look(key)
                outcome = None
            except Exception as error:  # noqa: BLE001  # the rim of the loop
                self._failures[key] = self._failures.get(key, 0) + 1
                after_s = pause_after(self._failures[key])
                report(key.kind, error, pause_s=after_s)
            else:
                self._failures.pop(key, None)
            finally:
                self._running.discard(key)
                _tell(waiters, outcome)
            if key in self._again:
                self._again.discard(key)
                self.poke(key)
            if after_s is not None:
                self.poke(key, after_s=max(after_s, 0.001))

    def _set_timer(self, key: Key, after_s: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + after_s
        known = self._timers.get(key)
        if known is not None:
            if known.when() <= due:
                return
            known.cancel()
        self._timers[key] = loop.call_at(due, self._ring, key)

    def _ring(self, key: Key) -> None:
        del self._timers[key]
        self.poke(key)


def _tell(waiters: Iterable[asyncio.Future[None]], error: Unavailable | None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue  # whoever waited has given up
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
