"""What a replay of a queue is told of run times: how long what waits will run, and when what runs will end.

What ends by its time limit and can be asked to leave saves its state after it, which is expected to take as long as
after any such request.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from services.scheduler.plan.forecast.estimates import ExpectedEnd
from services.scheduler.plan.forecast.replay import LEAVES_WITHIN
from services.scheduler.plan.forecast.run_times import PastRuns, RunKind, expected_end
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, PoolSnapshot


class Expectations(Struct, frozen=True):
    lengths: Mapping[str, timedelta]
    """Of pending allocations."""
    ends: Mapping[str, ExpectedEnd]
    """Of held ones."""
    otherwise: timedelta
    """Length of all others."""


def expectations(snapshot: PoolSnapshot, kinds: Mapping[str, RunKind], past: PastRuns) -> Expectations:
    """Allocations without a kind are left out."""
    lengths: dict[str, timedelta] = {}
    for one in snapshot.pending:
        if (kind := kinds.get(one.allocation)) is not None:
            run = past.expect(kind, one.runs_for)
            lengths[one.allocation] = run.length + _to_save(one) if run.known_from == "declared" else run.length
    ends: dict[str, ExpectedEnd] = {}
    now = snapshot.now
    for held in snapshot.held:
        if (kind := kinds.get(held.allocation)) is None:
            continue
        run = past.expect(kind)
        at = expected_end(held.started_at, run.length, now)
        if held.ends_at is not None and now < held.ends_at <= at:
            ends[held.allocation] = ExpectedEnd(held.ends_at + _to_save(held), "declared")
        else:
            ends[held.allocation] = ExpectedEnd(at, run.known_from)
    return Expectations(lengths, ends, past.otherwise)


def _to_save(one: HeldAllocation | PendingAllocation) -> timedelta:
    return LEAVES_WITHIN if one.preemptible else timedelta()
