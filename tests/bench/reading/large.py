"""Everything that reads, through ``det``, the SDK and REST: on a database of 100,000 experiments against one of 100.

The large one has a trial of 100,000 names and one with a million points of a metric, of which the small one has ten
and a thousand. What answers at the same length is to take at most 1.5 times as long, in time and in processor of the
services and the database; of the rest both lengths are told, and what there is more of.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Final

from tests.bench.cpu import scheduled_s, workers_of
from tests.bench.reading.large_calls import WHY_LONGER
from tests.bench.reading.large_rows import LARGE, SMALL, Size, insert_large
from tests.bench.reading.large_side import Ask, Side
from tests.bench.result import Result
from tests.bench.system import BenchSystem, running_system

ROUNDS: Final = 5
FACTOR: Final = 1.5
SAME_LENGTH: Final = 1.2
"""Up to this ratio two answers count as of the same length: ids have more digits, and durations other ones."""
LEAST_MS: Final = 2.0
"""Of processor time: what costs less is not told apart from what services do by themselves meanwhile."""


def measure(_: BenchSystem) -> list[Result]:
    """On two systems of its own: nobody else wants so many experiments."""
    with ExitStack() as stack:
        systems = [(stack.enter_context(running_system()), size) for size in (SMALL, LARGE)]
        return asyncio.run(_compare(systems))


async def _compare(systems: list[tuple[BenchSystem, Size]]) -> list[Result]:
    with ExitStack() as stack:
        rows = [await insert_large(system.database_url, size) for system, size in systems]
        sides = [stack.enter_context(Side.of(system, each)) for (system, _), each in zip(systems, rows, strict=True)]
        return [result async for result in compared(*sides)]


async def compared(small: Side, large: Side) -> AsyncIterator[Result]:
    """Two results of each call: how long it took, and what it took of the processor."""
    for (name, on_small), (_, on_large) in zip(small.asks(), large.asks(), strict=True):
        lengths = [0, 0]
        rounds: list[list[tuple[float, float]]] = [[], []]
        # In turns, so that what else the machine does hits both; once is enough for what is longer.
        while len(rounds[0]) < (1 if name in WHY_LONGER else ROUNDS):
            for number, (side, ask) in enumerate(((small, on_small), (large, on_large))):
                lengths[number], *spent = await _spent(side.system, ask)
                rounds[number].append((spent[0], spent[1]))
        # The least of all rounds, which is the one with the least of what else the machine does.
        for index, what in enumerate(("", ", processor")):
            values = [min(each[index] for each in of_side) for of_side in rounds]
            yield _result(name, what, lengths, values)


async def _spent(system: BenchSystem, ask: Ask) -> tuple[int, float, float]:
    """Length of an answer in bytes, and milliseconds: by the clock, and of the processor in api and database."""
    pids = system.pids()
    before = {process: scheduled_s(process) for process in (pids["api"], *workers_of(pids["postgres"]))}
    began = time.perf_counter()
    length = await ask()
    elapsed_s = time.perf_counter() - began
    # A process of the database that ended meanwhile has served nobody here.
    spent_s = sum(max(0.0, scheduled_s(process) - then) for process, then in before.items())
    return length, elapsed_s * 1e3, spent_s * 1e3


def _are_same(lengths: list[int]) -> bool:
    return max(lengths) <= SAME_LENGTH * max(min(lengths), 100)


def _result(name: str, what: str, lengths: list[int], values: list[float]) -> Result:
    small, large = (max(value, LEAST_MS) for value in values) if what else values
    told = f"{name}{what}"
    why = WHY_LONGER.get(name)
    if why or not _are_same(lengths):
        told += f" ({lengths[0]:,} and {lengths[1]:,} bytes{f': {why}' if why else ''})"
    # What is longer for no reason that is known is held to the goal as well.
    goal = None if why else FACTOR
    return Result(name=told, value=large, unit="ms", baseline=small, goal=goal, better="lower")
