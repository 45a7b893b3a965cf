"""A work queue of objects to reconcile, each at most once in it, and the few workers that serve it.

One worker at a time reconciles an object, and does so again when it was enqueued meanwhile: no change is missed, and no
work is done twice. What fails is enqueued again, later each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Literal, NamedTuple

from libs.errors import Unavailable
from libs.run_until_first_exits import run_until_first_exits
from services.scheduler.workqueue.loops import pause_after, report

WORKERS: Final = 8


class Request(NamedTuple):
    kind: Literal[
        "experiment",
        "deletion",
        "deleted trial",
        "allocation",
        "termination",
        "generic task",
        "project",
        "workspace",
        "namespaces",
        "nodes",
    ]
    ident: int | str


class WorkQueue:
    """``reconcile`` returns the seconds after which the object is to be reconciled again, or None."""

    def __init__(self, reconcile: Callable[[Request], Awaitable[float | None]]) -> None:
        self._reconcile = reconcile
        self._waiting: asyncio.Queue[Request] = asyncio.Queue()
        self._queued: set[Request] = set()
        self._running: dict[Request, list[asyncio.Future[None]]] = {}
        """What is being reconciled, and who waits for that round to end."""
        self._again: set[Request] = set()
        self._timers: dict[Request, asyncio.TimerHandle] = {}
        self._failures: dict[Request, int] = {}
        self._waiters: dict[Request, list[asyncio.Future[None]]] = {}

    def enqueue(self, request: Request, *, after_s: float = 0.0) -> None:
        """Have the object reconciled, ``after_s`` seconds from now unless it is due earlier anyway."""
        if after_s > 0:
            self._set_timer(request, after_s)
        elif request in self._running:
            self._again.add(request)
        elif request not in self._queued:
            self._queued.add(request)
            self._waiting.put_nowait(request)

    async def enqueue_and_wait(self, request: Request) -> None:
        """Have the object reconciled, and return when a round that began after this call has ended.

        Raises Unavailable when it has failed, or nobody works any more.
        """
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(request, []).append(waiter)
        self.enqueue(request)
        await waiter

    async def wait(self, request: Request) -> None:
        """Return when the object has been reconciled as it was when it was enqueued last, which is before this call.

        Raises Unavailable as ``enqueue_and_wait`` does.
        """
        if request in self._running and request not in self._again:
            waiter = asyncio.get_running_loop().create_future()
            self._running[request].append(waiter)
            await waiter
        elif request in self._queued or request in self._again or request in self._failures:
            await self.enqueue_and_wait(request)

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing runs; timers may."""
        return not self._queued and not self._running

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await run_until_first_exits(**{f"worker {number}": self._work() for number in range(WORKERS)})
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
            for waiters in self._waiters.values():
                _tell(waiters, Unavailable("the scheduler stops"))
            self._waiters.clear()

    async def _work(self) -> None:
        while True:
            request = await self._waiting.get()
            self._queued.discard(request)
            waiters = self._running[request] = self._waiters.pop(request, [])
            outcome: Unavailable | None = Unavailable("the round was broken off")
            try:
                after_s = await self._reconcile(request)
                outcome = None
            except Exception as error:  # noqa: BLE001  # the rim of the loop
                self._failures[request] = self._failures.get(request, 0) + 1
                after_s = pause_after(self._failures[request])
                report(request.kind, error, pause_s=after_s)
            else:
                self._failures.pop(request, None)
            finally:
                del self._running[request]
                _tell(waiters, outcome)
            if request in self._again:
                self._again.discard(request)
                self.enqueue(request)
            if after_s is not None:
                self.enqueue(request, after_s=max(after_s, 0.001))

    def _set_timer(self, request: Request, after_s: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + after_s
        known = self._timers.get(request)
        if known is not None:
            if known.when() <= due:
                return
            known.cancel()
        self._timers[request] = loop.call_at(due, self._ring, request)

    def _ring(self, request: Request) -> None:
        del self._timers[request]
        self.enqueue(request)


def _tell(waiters: Iterable[asyncio.Future[None]], error: Unavailable | None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue  # whoever waited has given up
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
