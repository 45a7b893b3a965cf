from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec

from libs.cluster.config import ClusterConfig, ResourceManagerConfig
from libs.events.failures import FailureType as Failures
from libs.events.observations import Address, ObservedPod
from services.api.queries.tasks.tasks import summary
from services.api.wire.tasks.tasks import FailureType, ResourcesStarted, ResourcesSummary

KUBERNETES = ClusterConfig(
    resource_manager=ResourceManagerConfig(type="kubernetes", cluster_name="here", max_slots_per_pod=4)
)


def row(**fields: Any) -> Any:
    """A row of ``allocations`` with what is joined to it."""
    return SimpleNamespace(
        **{
            "task_id": "7.r",
            "allocation_id": "7.r.1",
            "name": "Trial 1 (Experiment 7)",
            "pool": "default",
            "slots": 2,
            "num_pods": 1,
            "assigned_at": datetime(2030, 1, 1, tzinfo=UTC),
            "requested_at": datetime(2030, 1, 1, tzinfo=UTC),
            "job_priority": None,
            "pods": [],
            "places": [],
            "proxy_ports": None,
            **fields,
        }
    )


def pods(*seen: ObservedPod) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = msgspec.to_builtins(seen)
    return plain


def test_what_waits_is_nowhere() -> None:
    seen = summary(row(), ClusterConfig())
    assert seen.resources == []
    assert (seen.priority, seen.scheduler_type) == (42, "priority")


def test_until_pods_are_seen_the_plan_says_where() -> None:
    seen = summary(row(places=[{"node": "a", "slots": 2}]), ClusterConfig())
    assert seen.resources is not None
    (resource,) = seen.resources
    assert {name: len(devices.devices) for name, devices in resource.agent_devices.items()} == {"a": 2}
    assert resource.container_id == "7.r.1"


def test_pods_are_known_by_what_their_slots_show() -> None:
    seen = summary(
        row(
            pods=pods(
                ObservedPod(name="p0", state="RUNNING", node="a", devices=("000", "001"), addresses=("10.0.0.1",)),
                ObservedPod(
                    name="p1", state="TERMINATED", node="b", exit_code=3, failure="FAILED", message="exit code 3"
                ),
                ObservedPod(name="p2", state="ASSIGNED"),
            )
        ),
        ClusterConfig(),
    )
    assert seen.resources is not None
    runs, failed, waits = seen.resources
    assert [one.resources_id for one in seen.resources] == ["p0", "p1", "p2"]
    assert {one.container_id for one in seen.resources} == {"7.r.1"}
    assert [device.id for device in runs.agent_devices["a"].devices] == [0, 1]
    assert runs.started is not None
    assert runs.exited is None
    assert failed.exited is not None
    assert failed.exited.failure is not None
    assert (failed.exited.failure.failure_type, failed.exited.failure.exit_code) == (FailureType.RESOURCES_FAILED, 3)
    assert (waits.agent_devices, waits.started) == ({}, None)


def only_job(**fields: Any) -> ResourcesSummary:
    """The one entry of an allocation with two pods of four slots, on Kubernetes."""
    (resource,) = summary(row(slots=8, num_pods=2, **fields), KUBERNETES).resources or ()
    assert (resource.resources_id, resource.container_id, resource.resources_type) == ("7.r.1", "7.r.1", "k8s-job")
    return resource


def places_of(resource: ResourcesSummary) -> dict[str, int]:
    return {name: len(devices.devices) for name, devices in resource.agent_devices.items()}


def test_on_kubernetes_the_slots_of_a_job_are_on_the_nodes_of_its_pods() -> None:
    assert summary(row(assigned_at=None), KUBERNETES).resources == []
    assert places_of(only_job(places=[{"node": "guess", "slots": 4}] * 2)) == {"pods": 8}
    placed = ObservedPod(name="j-a", job="j", state="PULLING", node="n1")
    assert places_of(only_job(pods=pods(placed))) == {"n1": 4, "pods": 4}
    other = ObservedPod(name="j-b", job="j", state="RUNNING", node="n2")
    assert places_of(only_job(pods=pods(placed, other))) == {"n1": 4, "n2": 4}
    assert places_of(only_job(pods=pods(placed, placed))) == {"n1": 8}


def test_a_task_without_slots_is_on_its_node_all_the_same() -> None:
    (resource,) = (
        summary(row(slots=0, pods=pods(ObservedPod(name="j-a", state="RUNNING", node="n1"))), KUBERNETES).resources
        or ()
    )
    assert places_of(resource) == {"n1": 0}


def test_a_job_has_started_and_ended_when_all_its_pods_have() -> None:
    runs = ObservedPod(name="j-a", job="j", state="RUNNING", node="n1", addresses=("10.0.0.1",))
    waits = ObservedPod(name="j-b", job="j", state="STARTING", node="n2")
    assert (only_job(pods=pods(runs, waits)).started, only_job(pods=pods(runs)).started) == (None, None)
    both = only_job(pods=pods(runs, msgspec.structs.replace(runs, name="j-b", addresses=("10.0.0.2",))))
    assert both.started is not None
    assert both.started.native_resources_id == "j"
    assert [address.container_ip for address in both.started.addresses] == ["10.0.0.1", "10.0.0.2"]
    ended = ObservedPod(name="j-a", job="j", state="TERMINATED", exit_code=137, failure="DELETED", is_consequence=True)
    cause = ObservedPod(name="j-b", job="j", state="TERMINATED", exit_code=3, failure="FAILED", message="boom")
    assert only_job(pods=pods(ended, runs)).exited is None
    exited = only_job(pods=pods(ended, cause)).exited
    assert exited is not None
    assert exited.failure is not None
    told = (exited.failure.failure_type, exited.failure.err_msg, exited.failure.exit_code)
    assert told == (FailureType.RESOURCES_FAILED, "boom", 3)


def test_clients_know_every_type_of_failure() -> None:
    assert {kind.name for kind in Failures} <= set(FailureType.__members__)


def test_behind_a_gateway_a_pod_is_reached_at_the_ports_of_the_gateway() -> None:
    at = Address(container_ip="gw", container_port=8888, host_ip="gw", host_port=32768)
    pod = ObservedPod(name="p0", state="RUNNING", node="a", addresses=("10.0.0.1",), proxied=(at,))
    resource = only_job(pods=pods(pod, pod))
    assert isinstance(resource.started, ResourcesStarted)
    (address,) = resource.started.addresses
    told = (address.container_ip, address.container_port, address.host_ip, address.host_port)
    assert told == ("gw", 8888, "gw", 32768)
