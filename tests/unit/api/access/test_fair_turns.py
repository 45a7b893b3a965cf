"""Many who come at once take turns, and nobody's turn is lost with one who goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from services.api.access.fair_turns import FairTurns


async def order_of(comers: Sequence[tuple[str, str]], *, gone: Sequence[int] = ()) -> list[int]:
    """In which order those are served who come while the only turn is taken, named by their place among ``comers``."""
    turns, served = FairTurns(1), list[int]()
    await turns.acquire("first", "first")

    async def come(number: int, group: str, member: str) -> None:
        await turns.acquire(group, member)
        served.append(number)
        await asyncio.sleep(0)
        turns.release()

    tasks = [asyncio.create_task(come(number, *comer)) for number, comer in enumerate(comers)]
    await asyncio.sleep(0)
    for number in gone:
        tasks[number].cancel()
    await asyncio.sleep(0)
    turns.release()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(5):
        await turns.acquire("last", "last")
    return served


async def test_groups_take_turns_and_so_do_their_members() -> None:
    guesser = [("far", name) for name in "aaabbb"]
    assert await order_of([*guesser, ("near", "x"), ("far", "c")]) == [0, 6, 3, 7, 1, 4, 2, 5]


async def test_nobody_waits_for_more_than_one_of_each_member() -> None:
    served = await order_of([*[("office", "guessed")] * 1000, ("office", "owner"), ("elsewhere", "owner")])
    assert (served.index(1001), served.index(1000)) == (1, 2)


async def test_who_goes_away_takes_no_turn() -> None:
    comers = [("a", "x"), ("a", "x"), ("b", "y"), ("c", "z")]
    assert await order_of(comers, gone=[0, 2]) == [1, 3]
    assert await order_of(comers, gone=range(4)) == []


async def test_a_turn_that_comes_as_its_waiter_goes_is_passed_on() -> None:
    turns = FairTurns(1)
    await turns.acquire("a", "x")
    leaving, staying = (asyncio.create_task(turns.acquire(group, "x")) for group in "bc")
    await asyncio.sleep(0)
    turns.release()
    leaving.cancel()
    async with asyncio.timeout(5):
        await staying
    assert leaving.cancelled()


async def test_as_many_as_allowed_have_it_at_once() -> None:
    turns, has_it, most = FairTurns(4), 0, 0

    async def hold(number: int) -> None:
        nonlocal has_it, most
        await turns.acquire(str(number % 3), str(number % 7))
        has_it += 1
        most = max(most, has_it)
        await asyncio.sleep(0)
        has_it -= 1
        turns.release()

    await asyncio.gather(*(hold(number) for number in range(100)))
    assert (most, has_it) == (4, 0)
