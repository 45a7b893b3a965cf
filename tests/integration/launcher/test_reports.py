"""A launcher says again what the scheduler has not heard."""

from __future__ import annotations

import msgspec

from libs.events.inquiries import SAY_AGAIN, SayAgainAsked
from libs.events.observations import AllocationObserved
from libs.events.subjects import launcher_rpc
from tests.integration.launcher.place import POOL, Place, command

A = "11111111-2222-4333-8444-555555555555.1"
B = "11111111-2222-4333-8444-666666666666.1"


async def ask(place: Place, heard: dict[str, int]) -> None:
    await place.bus.request(launcher_rpc(POOL, SAY_AGAIN), msgspec.json.encode(SayAgainAsked(heard=heard)))


def content(seen: AllocationObserved) -> AllocationObserved:
    return msgspec.structs.replace(seen, revision=0)


async def test_what_was_not_heard_is_said_again(place: Place) -> None:
    for allocation in (A, B):
        await place.run(allocation, command("exit 3"))
    first, other = [await place.until_ended(allocation) for allocation in (A, B)]
    await ask(place, {A: 0, B: other.revision, "nobody.knows.1": 5})
    again = await place.until(A, lambda seen: seen.revision > first.revision)
    assert content(again) == content(first)
    assert place.last(B) == other


async def test_what_is_said_is_newer_than_what_was_heard_even_when_the_clock_went_back(place: Place) -> None:
    await place.run(A, command("exit 3"))
    first = await place.until_ended(A)
    tomorrow = first.revision + 86400 * 10**9
    await ask(place, {A: tomorrow})
    again = await place.until(A, lambda seen: seen.revision > tomorrow)
    assert content(again) == content(first)
