"""Plays replays without delaying the plans of queues: each of their plans is followed by a longer pause."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from services.scheduler.forecast.expectations import Expectations
from services.scheduler.plan.forecast.replay import Replay
from services.scheduler.plan.snapshot import PoolSnapshot


class Played(NamedTuple):
    replay: Replay
    is_cut_short: bool
    used_s: float
    """Processor time, about."""


async def play(
    snapshot: PoolSnapshot,
    expected: Expectations,
    *,
    budget_s: float,
    pause_per_step: float,
    is_enough: Callable[[Replay], bool] = lambda _: False,
) -> Played:
    """Play until nothing more starts, ``is_enough``, or the budget is used up.

    pause_per_step  how long a pause is, in relation to the step before it
    """
    ends = {name: end.at for name, end in expected.ends.items()}
    replay = Replay(snapshot, lengths=expected.lengths, ends=ends, otherwise=expected.otherwise)
    used_s, goes_on = 0.0, bool(snapshot.pending)
    while goes_on and used_s < budget_s:
        began = time.perf_counter()
        goes_on = replay.step() and not is_enough(replay)
        took_s = time.perf_counter() - began
        used_s += took_s
        await asyncio.sleep(took_s * pause_per_step)
    return Played(replay, goes_on, used_s)
