"""What a replay is told of run times: what ends by its limit takes a while to save its state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.scheduler.forecast.expectations import expectations
from services.scheduler.plan.forecast.replay import LEAVES_WITHIN
from services.scheduler.plan.forecast.run_times import PastRuns, RunKind
from services.scheduler.plan.snapshot import EPOCH, HeldAllocation, PendingAllocation, PoolSnapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LIMIT = timedelta(minutes=30)
KIND = RunKind(owner=1, task_type="TRIAL", pool="p", slots=1)
SHORT = PastRuns(by_pool={("p", "TRIAL"): (timedelta(minutes=10), 3)})


@pytest.mark.parametrize(
    ("past", "preemptible", "takes"),
    [
        pytest.param(PastRuns(), True, LIMIT + LEAVES_WITHIN, id="asked at its limit"),
        pytest.param(PastRuns(), False, LIMIT, id="killed at its limit"),
        pytest.param(SHORT, True, timedelta(minutes=10), id="ended before by itself"),
    ],
)
def test_what_reaches_its_limit_saves_its_state_after_it(past: PastRuns, preemptible: bool, takes: timedelta) -> None:
    held = HeldAllocation(
        allocation="h",
        job="h",
        pods=(("n", 1),),
        preemptible=preemptible,
        started_at=NOW,
        ends_at=NOW + LIMIT,
    )
    pending = PendingAllocation(
        allocation="p",
        job="p",
        pods=(1,),
        priority=42,
        submitted_at=EPOCH,
        requested_at=EPOCH,
        preemptible=preemptible,
        runs_for=LIMIT,
    )
    pool = PoolSnapshot(nodes=(), held=(held,), pending=(pending,), now=NOW)
    found = expectations(pool, {"h": KIND, "p": KIND}, past)
    assert found.ends["h"].at == NOW + takes
    assert found.lengths["p"] == takes
