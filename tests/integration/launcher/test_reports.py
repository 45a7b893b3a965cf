"""A launcher says again what the scheduler has not heard."""

from __future__ import annotations

import msgspec

from libs.events.capacity import PoolCapacity
from libs.events.observation_requests import REPORT_AGAIN, ReportAgainRequest
from libs.events.observations import AllocationObserved
from libs.events.subjects import CAPACITY_BUCKET, capacity_key, launcher_rpc
from tests.harness import eventually
from tests.integration.launcher.launcher_harness import POOL, LauncherHarness, command

A = "11111111-2222-4333-8444-555555555555.1"
B = "11111111-2222-4333-8444-666666666666.1"


async def ask(harness: LauncherHarness, heard: dict[str, int]) -> None:
    await harness.bus.request(launcher_rpc(POOL, REPORT_AGAIN), msgspec.json.encode(ReportAgainRequest(heard=heard)))


def content(seen: AllocationObserved) -> AllocationObserved:
    return msgspec.structs.replace(seen, revision=0)


async def test_what_was_not_heard_is_said_again(harness: LauncherHarness) -> None:
    for allocation in (A, B):
        await harness.run(allocation, command("exit 3"))
    first, other = [await harness.until_ended(allocation) for allocation in (A, B)]
    await ask(harness, {A: 0, B: other.revision, "nobody.knows.1": 5})
    again = await harness.until(A, lambda seen: seen.revision > first.revision)
    assert content(again) == content(first)
    assert harness.last(B) == other


async def test_what_is_said_is_newer_than_what_was_heard_even_when_the_clock_went_back(
    harness: LauncherHarness,
) -> None:
    await harness.run(A, command("exit 3"))
    first = await harness.until_ended(A)
    tomorrow = first.revision + 86400 * 10**9
    await ask(harness, {A: tomorrow})
    again = await harness.until(A, lambda seen: seen.revision > tomorrow)
    assert content(again) == content(first)


async def test_a_capacity_is_numbered_after_what_it_is_as_new_as(harness: LauncherHarness) -> None:
    await harness.run(A, command("exit 3"))
    ended = await harness.until_ended(A)

    async def reported() -> PoolCapacity | None:
        entry = await harness.bus.bucket(CAPACITY_BUCKET).get(capacity_key(POOL))
        found = msgspec.json.decode(entry.value, type=PoolCapacity) if entry is not None else None
        return found if found is not None and found.revision > ended.revision else None

    capacity = await eventually(reported)
    assert not any(device.container for node in capacity.nodes for device in node.devices)
