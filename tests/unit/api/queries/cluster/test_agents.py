from __future__ import annotations

import msgspec
import pytest

from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig, SchedulerConfig
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.api.queries.cluster.agents import agents, listed, with_marks
from services.api.queries.cluster.pools import wire_pool
from services.api.wire.cluster.agents import ContainerState
from services.api.wire.cluster.pools import FittingPolicy, PoolType, QueueStats, SchedulerType


def node(name: str, *holders: str | None, aux: tuple[str, ...] = (), **fields: object) -> NodeCapacity:
    """A node with one slot per holder; ``job:pod`` is one of ours, anything else somebody else's."""
    devices = []
    for number, holder in enumerate(holders):
        allocation, _, pod = (holder or "").rpartition(":")
        devices.append(Device(id=f"{number:03}", allocation=allocation or None, container=pod or None))
    return msgspec.structs.replace(NodeCapacity(name=name, devices=tuple(devices), aux_containers=aux), **fields)


def pool(name: str, *nodes: NodeCapacity) -> PoolCapacity:
    return PoolCapacity(pool=name, backend="kubernetes", nodes=nodes, slot_type="cuda", max_slots_per_pod=8)


def test_a_node_of_two_pools_is_shown_once() -> None:
    one = node("n", "7.1:pod", None)
    other = node("n", None, "8.1:pod2")
    (agent,) = agents([pool("a", one), pool("b", other)], {}, {"7.1": ContainerState.PULLING})
    assert agent.resource_pools == ["a", "b"]
    assert [slot.container and slot.container.id for slot in agent.slots.values()] == ["7.1", "8.1"]
    assert agent.containers["7.1"].state is ContainerState.PULLING
    assert agent.containers["8.1"].state is ContainerState.RUNNING, "what nobody has seen yet holds its slot anyway"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("", None),
        ("2030-01-01T12:00:00Z", "2030-01-01T12:00:00Z"),
        ("2030-01-01T12:00:00.500000+00:00", "2030-01-01T12:00:00.500Z"),
    ],
)
def test_nodes_say_since_when_they_are_there(said: str, shown: str | None) -> None:
    (agent,) = agents([pool("a", node("n", None, registered_at=said))], {}, {})
    assert agent.registered_time == shown


def test_pods_of_another_pool_are_no_strangers() -> None:
    (agent,) = agents([pool("a", node("n", "pod", None)), pool("b", node("n", "7.1:pod", "other"))], {}, {})
    assert [slot.container and slot.container.id for slot in agent.slots.values()] == ["7.1", "other"]


def test_marks_that_were_just_made_go_before_what_launchers_have_said() -> None:
    seen = [pool("a", node("n", None, enabled=False, draining=True), node("other", None))]
    agent, other = agents(with_marks(seen, {"n": (False, False)}), {"n": False}, {})
    assert [(one.enabled, one.draining) for one in (agent, other)] == [(False, False), (True, False)]
    assert agent.slots["000"].draining is False


def test_lists_leave_out_nodes_of_clusters_that_have_no_slots() -> None:
    cluster = pool("a", node("control-plane", aux=("9.1",)), node("worker", None))
    machine = msgspec.structs.replace(pool("b", node("laptop")), backend="process")
    assert [agent.id for agent in agents(listed([cluster, machine]), {}, {})] == ["laptop", "worker"]
    assert [agent.id for agent in agents([cluster, machine], {}, {})] == ["control-plane", "laptop", "worker"]


def test_nodes_of_the_process_backend_say_the_version_that_clients_expect() -> None:
    machine = msgspec.structs.replace(pool("b", node("laptop")), backend="process")
    shown = agents([pool("a", node("worker")), machine], {}, {})
    assert {agent.id: agent.version for agent in shown} == {"laptop": "0.38.1", "worker": ""}


def test_an_allocation_with_many_slots_is_one_container() -> None:
    (agent,) = agents([pool("a", node("n", "7.1:pod", "7.1:pod", None, aux=("9.1",)))], {}, {})
    assert list(agent.containers) == ["9.1", "7.1"]
    assert [device.id for device in agent.containers["7.1"].devices] == [0, 1]
    stats = agent.slot_stats.type_stats["TYPE_CPU"]
    assert (stats.total, stats.disabled, stats.draining, stats.states) == (3, 0, 0, {"STATE_RUNNING": 2})


def test_disabled_nodes_say_whether_they_drain() -> None:
    nodes = pool("a", node("drains", None), node("free", None), node("gone", None), node("off", None, enabled=False))
    drains, free, gone, off = agents([nodes], {"drains": True, "gone": False}, {})
    assert [(one.enabled, one.draining) for one in (drains, free, gone, off)] == [
        (False, True),
        (True, False),
        (False, False),
        (False, False),
    ]
    assert gone.slot_stats.type_stats["TYPE_CPU"].disabled == 1


CLUSTER = ClusterConfig(
    resource_manager=ResourceManagerConfig(
        type="kubernetes", default_compute_resource_pool="a", default_aux_resource_pool="a", max_slots_per_pod=4
    ),
    resource_pools=(
        PoolConfig(pool_name="a", max_aux_containers_per_agent=10),
        PoolConfig(pool_name="b", scheduler=SchedulerConfig(type="fair_share")),
    ),
)


def test_a_pool_counts_what_can_be_scheduled_and_what_is() -> None:
    capacity = pool(
        "a", node("n1", "7.1:pod", "stranger", None, aux=("9.1", "9.2")), node("n2", None), node("n3", None, None)
    )
    seen = wire_pool(CLUSTER.resource_pools[0], CLUSTER, capacity, {"n3": True}, QueueStats(queued_count=3))
    assert (seen.num_agents, seen.slots_available, seen.slots_used) == (3, 4, 1)
    of_another_pool = Device(id="000", allocation="8.1", container="pod2", foreign=True)
    shared = pool("a", NodeCapacity(name="n1", devices=(of_another_pool, Device(id="001"))))
    assert wire_pool(CLUSTER.resource_pools[0], CLUSTER, shared, {}, QueueStats()).slots_used == 0
    assert (seen.aux_container_capacity, seen.aux_containers_running) == (30, 2)
    assert (seen.type, seen.scheduler_type) == (PoolType.K8S, SchedulerType.PRIORITY)
    assert seen.scheduler_fitting_policy is FittingPolicy.KUBERNETES
    assert seen.slots_per_agent == 4
    assert seen.default_compute_pool
    assert seen.default_aux_pool


def test_a_pool_that_nobody_has_seen_is_empty() -> None:
    seen = wire_pool(CLUSTER.resource_pools[1], CLUSTER, None, {}, QueueStats())
    assert (seen.num_agents, seen.slots_available, seen.aux_container_capacity) == (0, 0, 0)
    assert seen.scheduler_type is SchedulerType.FAIR_SHARE
    assert b'"details":{}' in msgspec.json.encode(seen)
