"""``resolute check`` asks what a task would gain that may leave the level of a topology."""

from __future__ import annotations

from typing import Any

import pytest

from libs.clock import SystemClock
from libs.cluster.config import (
    ClusterConfig,
    PoolConfig,
    ResourceManagerConfig,
    SchedulerConfig,
    TopologyConfig,
    TopologyDefault,
)
from services.api.actions.cluster.queue_check import variants_of
from services.api.actions.cluster.submissions import Submission
from tests.harness.app import new_app

RACK = "example.com/rack"


def changes_of(
    topology: dict[str, str] | None, *, slots: int = 16, required_by_pool: str = ""
) -> list[tuple[str, Any]]:
    """Changes of the topology that are asked about."""
    levels = TopologyConfig(levels=("zone", RACK), default=TopologyDefault(required=required_by_pool))
    cluster = ClusterConfig(
        resource_manager=ResourceManagerConfig(type="kubernetes", max_slots_per_pod=8),
        resource_pools=(PoolConfig(pool_name="default", scheduler=SchedulerConfig(topology=levels)),),
    )
    nobody: Any = None
    submission = Submission(
        task_type="TRIAL",
        config={"resources": {"topology": topology}},
        pool="default",
        slots=slots,
        slots_field="resources.slots_per_trial",
        is_single_pod=False,
        is_preemptible=True,
        preemption_timeout_s=0,
        max_slots=None,
        workspace_id=1,
        unavailable_pools=frozenset(),
    )
    found = variants_of(new_app(nobody, nobody, SystemClock(), cluster=cluster), submission)
    return [(one.change, one.topology) for one in found if one.topology is not None]


@pytest.mark.parametrize("level", [RACK, "zone"])
def test_of_a_level_that_is_required(level: str) -> None:
    assert changes_of({"required": level}) == [(f"resources.topology: {{preferred: {level}}}", {"preferred": level})]


def test_of_what_the_pool_requires() -> None:
    expected = [(f"resources.topology: {{preferred: {RACK}}}", {"preferred": RACK})]
    assert changes_of(None, required_by_pool=RACK) == expected
    assert changes_of({"preferred": RACK}, required_by_pool=RACK) == []


def test_not_of_what_may_be_anywhere_and_not_of_single_pods() -> None:
    assert changes_of({"preferred": RACK}) == changes_of(None) == []
    assert changes_of({"required": RACK}, slots=8) == []
