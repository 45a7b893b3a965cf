from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec

from libs.cluster.config import ClusterConfig
from libs.events.observations import Address, PodSeen
from services.api.queries.tasks import summary
from services.api.wire.tasks import FailureType, ResourcesStarted


def row(**fields: Any) -> Any:
    """A row of ``allocations`` with what is joined to it."""
    return SimpleNamespace(
        **{
            "task_id": "7.r",
            "allocation_id": "7.r.1",
            "name": "Trial 1 (Experiment 7)",
            "pool": "default",
            "slots": 2,
            "requested_at": datetime(2030, 1, 1, tzinfo=UTC),
            "job_priority": None,
            "pods": [],
            "places": [],
            "proxy_ports": None,
            **fields,
        }
    )


def pods(*seen: PodSeen) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = msgspec.to_builtins(seen)
    return plain


def test_what_waits_is_nowhere() -> None:
    seen = summary(row(), ClusterConfig())
    assert seen.resources is None
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
                PodSeen(name="p0", state="RUNNING", node="a", devices=("000", "001"), addresses=("10.0.0.1",)),
                PodSeen(name="p1", state="TERMINATED", node="b", exit_code=3, failure="FAILED", message="exit code 3"),
                PodSeen(name="p2", state="ASSIGNED"),
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


def test_behind_a_gateway_a_pod_is_reached_at_the_ports_of_the_gateway() -> None:
    at = Address(container_ip="gw", container_port=8888, host_ip="gw", host_port=32768)
    seen = summary(
        row(pods=pods(PodSeen(name="p0", state="RUNNING", node="a", addresses=("10.0.0.1",), proxied=(at,)))),
        ClusterConfig(),
    )
    assert seen.resources is not None
    (resource,) = seen.resources
    assert isinstance(resource.started, ResourcesStarted)
    (address,) = resource.started.addresses
    told = (address.container_ip, address.container_port, address.host_ip, address.host_port)
    assert told == ("gw", 8888, "gw", 32768)
