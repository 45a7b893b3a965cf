"""What would become of a request that nobody has submitted, asked over the bus."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from libs.clock import SystemClock
from libs.errors import Unavailable
from libs.events import subjects
from libs.events.requests.queue_checks import HypotheticalRequest, QueueAnswer, QueueAnswers, QueueCheck, WaitingRequest
from services.api.access.principal import Principal
from services.scheduler.forecast.past_runs import PastRunsCache
from services.scheduler.forecast.queue_checks import QueueChecks
from services.scheduler.settings import ForecastSettings
from tests.harness import eventually
from tests.integration.scheduler.api import OWNER
from tests.integration.scheduler.queue.test_forecast import CAPACITY
from tests.integration.scheduler.world import World

_COUNTED = ("jobs", "tasks", "allocations", "allocation_usage", "outbox", "wait_notes", "start_estimates")


async def test_a_question_is_answered_as_the_submission_would_be(world: World) -> None:
    async with world.scheduling() as w:
        await knows_its_nodes(w)
        [free] = await ask(w, request_of(8))
        assert (free.starts_now, free.nodes, free.reason_code) == (True, ("node0",), "")
        await w.api.create(resources=_wants(8))
        await w.launcher.running()
        behind, too_large = await ask(w, request_of(8), request_of(16))
        assert (behind.starts_now, behind.is_possible, behind.reason_code) == (False, True, "no_room")
        assert behind.estimated_start is not None, "the one that runs is expected to end"
        assert "it gets 8 slots from 1 task that run" in behind.basis
        assert (too_large.is_possible, too_large.reason_code, too_large.estimated_start) == (False, "too_large", None)


async def test_who_is_more_important_is_behind_fewer(world: World) -> None:
    async with world.scheduling() as w:
        await knows_its_nodes(w)
        await w.api.create(resources=_wants(8))
        await w.launcher.running()
        experiment = await w.api.create(resources=_wants(4))
        await eventually(lambda: w.api.allocations(experiment))
        late, early = await ask(w, request_of(8), request_of(8, priority=1))
        assert (late.jobs_ahead, late.slots_ahead, early.jobs_ahead, early.slots_ahead) == (1, 4, 0, 0)
        assert late.estimated_start is not None
        assert early.estimated_start is not None
        assert early.estimated_start < late.estimated_start
        (limited,) = await ask(w, request_of(8, max_slots=4))
        assert (limited.reason_code, limited.starts_now) == ("job_max_slots", False)


async def test_a_question_leaves_nothing_behind(world: World) -> None:
    async with world.scheduling() as w:
        await w.api.create(resources=_wants(8))
        await w.launcher.running()
    checks = QueueChecks(
        db=world.db,
        clock=SystemClock(),
        cluster=world.cluster,
        capacity=lambda _: CAPACITY,
        settings=ForecastSettings(),
        past=PastRunsCache(otherwise=timedelta(hours=1)),
    )
    before = await _counts(world)
    answers = await checks.answers((request_of(8), request_of(4), request_of(16)))
    assert [answer.reason_code for answer in answers] == ["no_room", "no_room", "too_large"]
    assert await _counts(world) == before


async def test_what_waits_is_estimated_when_somebody_asks(world: World) -> None:
    async with world.scheduling() as w:
        await knows_its_nodes(w)
        await w.api.create(resources=_wants(8))
        [running] = await w.launcher.running()
        waits = await w.api.create(resources=_wants(8))
        await eventually(lambda: _waits(w, waits))
        [row] = await w.api.allocations(waits)
        asked = tuple(WaitingRequest(pool="default", allocation=one) for one in (row["allocation_id"], running))
        reply = await w.bus.request(subjects.CHECK_QUEUE, msgspec.json.encode(QueueCheck(waiting=asked)), timeout_s=30)
        estimate, of_running = msgspec.json.decode(reply, type=QueueAnswers).waiting
        assert estimate is not None
        assert estimate.estimated_start is not None
        assert (estimate.jobs_ahead, estimate.slots_ahead) == (0, 0)
        assert "it gets 8 slots from 1 task that run" in estimate.basis
        assert of_running is None


async def test_what_is_possible_is_taken_and_what_starts_now_starts(world: World) -> None:
    async with world.scheduling() as w:
        await knows_its_nodes(w)
        for number, slots in enumerate((3, 5, 1), start=1):
            [answer] = await ask(w, request_of(slots))
            experiment = await w.api.create(resources=_wants(slots))
            if answer.starts_now:
                await w.launcher.running(number)
            else:
                await eventually(lambda experiment=experiment: _waits(w, experiment))
            assert answer.starts_now is (number < 3)


def _wants(slots: int) -> dict[str, Any]:
    return {"slots_per_trial": slots, "resource_pool": "default"}


def request_of(slots: int, **more: Any) -> HypotheticalRequest:
    owner: Principal = OWNER
    return HypotheticalRequest(pool="default", slots=slots, num_pods=1, owner_id=owner.user_id, workspace_id=1, **more)


async def ask(w: World, *requests: HypotheticalRequest) -> tuple[QueueAnswer, ...]:
    question = msgspec.json.encode(QueueCheck(requests=requests))
    reply = await w.bus.request(subjects.CHECK_QUEUE, question, timeout_s=30)
    return msgspec.json.decode(reply, type=QueueAnswers).answers


async def knows_its_nodes(w: World) -> None:
    async def known() -> bool:
        try:
            [answer] = await ask(w, request_of(1))
        except Unavailable:
            return False  # it has not begun to listen
        return answer.reason_code != "capacity_unknown"

    await eventually(known)


async def _waits(w: World, experiment: int) -> bool:
    return any(row["wait_reason"] for row in await w.api.allocations(experiment))


async def _counts(w: World) -> dict[str, int]:
    return {name: (await w.api.sql(f"SELECT count(*) FROM {name}"))[0] for name in _COUNTED}
