from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from libs.cluster.config import ClusterConfig, ResourceManagerConfig, SchedulerConfig
from libs.job_rank import position_at
from services.api.queries.cluster.jobs import QueuedJob, in_line, stats_by_pool

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def job(
    ident: str,
    *,
    priority: int = 42,
    minute: int = 0,
    pool: str = "default",
    scheduled: bool = False,
    position: int | None = None,
) -> QueuedJob:
    return QueuedJob(
        job_id=ident,
        job_type="EXPERIMENT",
        owner_id=1,
        workspace_id=1,
        pool=pool,
        priority=priority,
        weight=1.0,
        submitted_at=NOON + timedelta(minutes=minute),
        position=position,
        requested_slots=1,
        allocated_slots=int(scheduled),
        scheduled=scheduled,
        preemptible=True,
        name="",
    )


JOBS = [job("late", minute=2), job("early", minute=1), job("ten", priority=10, minute=3), job("ninety", priority=90)]


@pytest.mark.parametrize(
    ("manager", "order"),
    [("process", ["ten", "early", "late", "ninety"]), ("kubernetes", ["ninety", "early", "late", "ten"])],
)
def test_priority_comes_before_age(manager: str, order: list[str]) -> None:
    cluster = ClusterConfig(resource_manager=msgspec.convert({"type": manager}, ResourceManagerConfig))
    standings = in_line(JOBS, cluster, "default")
    assert [standing.job.job_id for standing in standings] == order
    assert [standing.jobs_ahead for standing in standings] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("scheduler", "preempts"),
    [
        (SchedulerConfig(), False),
        (SchedulerConfig(preemption=True), True),
        (SchedulerConfig(type="fair_share"), True),
    ],
)
def test_schedulers_say_whether_they_preempt(scheduler: SchedulerConfig, preempts: bool) -> None:
    assert scheduler.preempts is preempts


def test_there_is_no_line_where_slots_are_shared_out() -> None:
    manager = ResourceManagerConfig(scheduler=SchedulerConfig(type="fair_share"))
    standings = in_line(JOBS, ClusterConfig(resource_manager=manager), "default")
    assert {standing.jobs_ahead for standing in standings} == {-1}


def test_pools_count_their_jobs() -> None:
    stats = stats_by_pool([job("1"), job("2", scheduled=True), job("3"), job("4", pool="other", scheduled=True)])
    assert {pool: (one.queued_count, one.scheduled_count) for pool, one in stats.items()} == {
        "default": (2, 1),
        "other": (0, 1),
    }


def test_positions_count_within_a_priority_and_where_there_is_a_line() -> None:
    behind = position_at(NOON + timedelta(minutes=2))
    moved = [*JOBS, job("moved", minute=9, position=behind - 1), job("last", minute=0, position=behind + 1)]
    standings = in_line(moved, ClusterConfig(), "default")
    assert [standing.job.job_id for standing in standings] == ["ten", "early", "moved", "late", "last", "ninety"]
    manager = ResourceManagerConfig(scheduler=SchedulerConfig(type="fair_share"))
    standings = in_line(moved, ClusterConfig(resource_manager=manager), "default")
    assert [standing.job.job_id for standing in standings] == ["last", "ninety", "early", "late", "ten", "moved"]
