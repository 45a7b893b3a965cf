"""What a check calls possible is not refused when it is submitted a moment later: both are the planner's word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape, ReportedTaint
from libs.events.requests.queue_checks import EmptyPoolRequest
from services.scheduler.allocations.pod_sizes import PoolDivision, division_of, planned_pods
from services.scheduler.forecast.empty_pool import answer_of, in_empty_pool
from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import EPOCH, HeldAllocation, PendingAllocation, PoolSnapshot
from services.scheduler.queue.pool_memory import PoolMemory
from services.scheduler.queue.pool_rows import nodes_of

POOL = PoolConfig(pool_name="default", can_grow=False)
CLUSTER = ClusterConfig(resource_manager=ResourceManagerConfig(type="kubernetes"), resource_pools=(POOL,))
STRANGER = {"container": "c", "foreign": True}


@st.composite
def shapes(draw: st.DrawFn) -> ReportedShape:
    return ReportedShape(
        labels={"gpu": draw(st.sampled_from(("a100", "v100")))},
        taints=draw(st.sampled_from(((), (), (ReportedTaint(key="team"),)))),
        unschedulable=draw(st.booleans()),
        ready=draw(st.booleans()),
        allocatable={"cpu": draw(st.sampled_from((2000, 8000))), "pods": 110, "nvidia.com/gpu": 4, "memory": 1 << 40},
    )


@st.composite
def capacities(draw: st.DrawFn) -> PoolCapacity:
    known = tuple(draw(st.lists(shapes(), min_size=1, max_size=3)))
    nodes = (
        NodeCapacity(
            name=f"n{number}",
            devices=tuple(Device(id=str(i), **(STRANGER if draw(st.booleans()) else {})) for i in range(4)),
            enabled=draw(st.booleans()),
            shape=draw(st.sampled_from((None, *range(len(known))))),
            foreign={"cpu": draw(st.sampled_from((0, 1500)))},
        )
        for number in range(draw(st.integers(1, 4)))
    )
    return PoolCapacity(pool="default", backend="kubernetes", nodes=tuple(nodes), shapes=known)


@st.composite
def requests(draw: st.DrawFn) -> EmptyPoolRequest:
    pods, slots = draw(
        st.sampled_from(((1, 0), (1, 1), (1, 4), (1, 5), (2, 8), (3, 6), (5, 20), (2, 7), (3, 10)))
    )  # the last two only where plans divide them
    container = {"name": "determined-container", "resources": {"requests": {"cpu": draw(st.sampled_from(("1", "3")))}}}
    selector = draw(st.sampled_from(({}, {"gpu": "a100"}, {"gpu": "h100"})))
    tolerations = draw(st.sampled_from(([], [{"operator": "Exists"}])))
    spec = {"containers": [container], "nodeSelector": selector, "tolerations": tolerations}
    return EmptyPoolRequest(
        pool="default",
        task_type="TRIAL",
        slots=slots,
        num_pods=pods,
        pod_spec=draw(st.sampled_from((None, {"spec": spec}))),
    )


@given(capacities(), requests(), st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=6), st.data())
def test_what_is_possible_among_others_is_possible_alone(
    capacity: PoolCapacity, asked: EmptyPoolRequest, running: list[tuple[int, int]], data: st.DataObject
) -> None:
    memory = PoolMemory(cluster=CLUSTER, pool=POOL)
    row = {"slots": asked.slots, "num_pods": asked.num_pods}
    division = PoolDivision(most=4, divides=data.draw(st.booleans()), can_differ=True)
    most = division.most_per_pod(row)
    each = 1 if most else asked.slots // asked.num_pods
    needs = memory.needs_of_pod("TRIAL", asked.pod_spec, each, capacity)
    common = {"priority": 42, "submitted_at": EPOCH, "requested_at": EPOCH}
    pods = (each,) * (asked.slots if most else asked.num_pods)
    mine = PendingAllocation(allocation="x", job="x", pods=pods, most_per_pod=most, needs=needs, **common)
    other = PendingAllocation(allocation="y", job="y", pods=(data.draw(st.sampled_from((1, 4))),), **common)
    held = [HeldAllocation(allocation=f"h{i}", job="h", pods=((f"n{n}", s),)) for i, (n, s) in enumerate(running)]
    disabled = data.draw(st.sets(st.sampled_from([node.name for node in capacity.nodes])))
    nodes = nodes_of(capacity, disabled, memory.shaped(capacity))
    decisions = plan(PoolSnapshot(nodes=nodes, held=tuple(held), pending=(other, mine))).decisions
    among_others = answer_of(next(one for one in decisions if one.allocation == "x"))
    assert in_empty_pool(asked, capacity, memory, division).is_possible == among_others.is_possible


def test_what_the_launcher_cannot_divide_has_to_wait() -> None:
    asked = EmptyPoolRequest(pool="default", task_type="TRIAL", slots=7, num_pods=2, pod_spec=None)
    node = NodeCapacity(name="n", devices=tuple(Device(id=str(i)) for i in range(8)))
    capacity = PoolCapacity(pool="default", backend="kubernetes", nodes=(node,))
    division = division_of(CLUSTER, "default", capacity)
    answer = in_empty_pool(asked, capacity, PoolMemory(cluster=CLUSTER, pool=POOL), division)
    assert (answer.is_possible, answer.starts_now, answer.reason_code) == (True, False, "equal_pods")


@pytest.mark.parametrize("num_pods", [2, 10**9])
def test_what_is_beyond_all_pools_is_too_large(num_pods: int) -> None:
    """And takes no memory for each of its slots."""
    capacity = PoolCapacity(
        pool="default", backend="kubernetes", nodes=(NodeCapacity(name="n", devices=(Device(id="0"),)),)
    )
    asked = EmptyPoolRequest(pool="default", task_type="TRIAL", slots=10**9, num_pods=num_pods)
    division = PoolDivision(most=1, divides=True, can_differ=True)
    answer = in_empty_pool(asked, capacity, PoolMemory(cluster=CLUSTER, pool=POOL), division)
    assert (answer.is_possible, answer.reason_code) == (False, "too_large")


@pytest.mark.parametrize(
    ("num_pods", "most", "planned"),
    [
        (2, 4, ((1 << 20,), 0)),
        (1 << 18, 0, ((1 << 20,), 0)),
        (1 << 17, 0, ((8,) * (1 << 17), 0)),
    ],
)
def test_pods_that_plans_look_at(num_pods: int, most: int, planned: tuple[tuple[int, ...], int]) -> None:
    assert planned_pods(slots=1 << 20, num_pods=num_pods, most_per_pod=most) == planned
