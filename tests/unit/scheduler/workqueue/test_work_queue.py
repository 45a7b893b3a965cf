from __future__ import annotations

import asyncio

import pytest

from libs.errors import Unavailable
from libs.run_until_first_exits import end
from services.scheduler.workqueue.work_queue import Request, WorkQueue
from tests.harness import eventually

ONE = Request("experiment", 1)
TWO = Request("experiment", 2)


async def test_request_is_served_by_one_worker_and_again_when_enqueued_meanwhile() -> None:
    rounds: list[Request] = []
    running: set[Request] = set()
    proceed = asyncio.Event()

    async def reconcile(request: Request) -> float | None:
        assert request not in running
        running.add(request)
        rounds.append(request)
        await proceed.wait()
        running.discard(request)
        return None

    work_queue = WorkQueue(reconcile)
    task = asyncio.create_task(work_queue.run())
    try:
        for _ in range(3):
            work_queue.enqueue(ONE)
        work_queue.enqueue(TWO)
        await eventually(lambda: running == {ONE, TWO})
        for _ in range(3):
            work_queue.enqueue(ONE)
        proceed.set()
        await eventually(lambda: work_queue.is_idle)
        assert sorted(rounds) == [ONE, ONE, TWO]
    finally:
        await end(task)


async def test_what_fails_is_served_again_and_others_meanwhile() -> None:
    rounds: list[Request] = []

    async def reconcile(request: Request) -> float | None:
        rounds.append(request)
        if request == ONE and rounds.count(ONE) == 1:
            raise ValueError("broken")
        return None

    work_queue = WorkQueue(reconcile)
    task = asyncio.create_task(work_queue.run())
    try:
        work_queue.enqueue(ONE)
        work_queue.enqueue(TWO)
        await eventually(lambda: rounds.count(ONE) == 2)
        assert rounds.count(TWO) == 1
    finally:
        await end(task)


async def test_request_may_be_requeued_and_the_earlier_time_counts() -> None:
    rounds: list[Request] = []

    async def reconcile(request: Request) -> float | None:
        rounds.append(request)
        return 60.0 if len(rounds) == 1 else None

    work_queue = WorkQueue(reconcile)
    task = asyncio.create_task(work_queue.run())
    try:
        work_queue.enqueue(ONE)
        await eventually(lambda: rounds == [ONE] and work_queue.is_idle)
        work_queue.enqueue(ONE, after_s=0.01)
        work_queue.enqueue(ONE, after_s=90)
        await eventually(lambda: rounds == [ONE, ONE])
    finally:
        await end(task)


async def test_whoever_waits_is_told_when_a_round_has_ended_that_began_later() -> None:
    rounds: list[asyncio.Event] = []

    async def reconcile(request: Request) -> float | None:
        rounds.append(asyncio.Event())
        await rounds[-1].wait()
        return None

    work_queue = WorkQueue(reconcile)
    task = asyncio.create_task(work_queue.run())
    try:
        work_queue.enqueue(ONE)
        await eventually(lambda: len(rounds) == 1)
        asked = [asyncio.create_task(work_queue.enqueue_and_wait(ONE)) for _ in range(2)]
        await asyncio.sleep(0)
        rounds[0].set()
        await eventually(lambda: len(rounds) == 2)
        assert not any(one.done() for one in asked)
        rounds[1].set()
        await asyncio.gather(*asked)
    finally:
        await end(task)


async def test_whoever_waits_is_told_of_failures_and_of_the_end() -> None:
    started = asyncio.Event()

    async def reconcile(request: Request) -> float | None:
        if request == ONE:
            raise ValueError("broken")
        started.set()
        await asyncio.Event().wait()
        return None

    work_queue = WorkQueue(reconcile)
    task = asyncio.create_task(work_queue.run())
    with pytest.raises(Unavailable):
        await work_queue.enqueue_and_wait(ONE)
    running = asyncio.create_task(work_queue.enqueue_and_wait(TWO))
    await started.wait()
    waiting = asyncio.create_task(work_queue.enqueue_and_wait(TWO))
    await asyncio.sleep(0)
    await end(task)
    for asked in (running, waiting):
        with pytest.raises(Unavailable):
            await asked


async def test_whoever_knows_that_it_was_enqueued_waits_for_that_round_and_for_no_other() -> None:
    rounds: list[asyncio.Event] = []

    async def reconcile(request: Request) -> float | None:
        rounds.append(asyncio.Event())
        await rounds[-1].wait()
        return None

    work_queue = WorkQueue(reconcile)
    work_queue.enqueue(ONE)
    queued = asyncio.create_task(work_queue.wait(ONE))
    await asyncio.sleep(0)
    task = asyncio.create_task(work_queue.run())
    try:
        await eventually(lambda: len(rounds) == 1)
        running = asyncio.create_task(work_queue.wait(ONE))
        await asyncio.sleep(0)
        assert not queued.done()
        assert not running.done()
        rounds[0].set()
        await asyncio.gather(queued, running)
        await work_queue.wait(ONE)  # it is over
        assert (len(rounds), work_queue.is_idle) == (1, True)
        work_queue.enqueue(ONE)
        await eventually(lambda: len(rounds) == 2)
        work_queue.enqueue(ONE)
        again = asyncio.create_task(work_queue.wait(ONE))
        await asyncio.sleep(0)
        rounds[1].set()
        await eventually(lambda: len(rounds) == 3)
        assert not again.done(), "it was enqueued once more after that round had begun"
        rounds[2].set()
        await again
    finally:
        await end(task)


async def test_whoever_waits_for_a_round_that_has_failed_has_it_done_again() -> None:
    rounds = 0

    async def reconcile(_request: Request) -> float | None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise ValueError("broken")
        return None

    work_queue = WorkQueue(reconcile)
    task = asyncio.create_task(work_queue.run())
    try:
        with pytest.raises(Unavailable):
            await work_queue.enqueue_and_wait(ONE)
        await work_queue.wait(ONE)
        assert rounds >= 2
    finally:
        await end(task)
