"""Ports on a Gateway that many share: nobody's port is given twice, and nobody's listener is lost."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.cluster.config import TaskGatewayConfig
from libs.errors import InvalidRequest
from libs.events.observations import Address
from libs.events.orders import ProxyPort
from services.launcher.backends.kubernetes.gateway.listeners import (
    ALLOCATION_NOTE,
    CLAIM_NOTE,
    Claim,
    Wanted,
    addresses,
    claims_of,
    free_ports,
    open_claims,
    tcp_route,
    with_listeners,
    without_listeners,
)
from tests.unit.launcher.backends.kubernetes.builders import build, environment, observation, run, running, view
from tests.unit.launcher.specs import task

START, END = 32768, 32799
CONFIG = TaskGatewayConfig(gateway_name="tasks", gateway_namespace="gateways", gateway_ip="gateway.example.com")

Json = dict[str, Any]


def gateway(*ports: int, notes: dict[str, str] | None = None) -> Json:
    """One with listeners of others."""
    listeners = [{"name": f"other-{port}", "port": port, "protocol": "HTTP"} for port in ports]
    return {"metadata": {"name": "tasks", "annotations": notes or {}}, "spec": {"listeners": listeners}, "status": {}}


def wanted(allocation: str = "1.x.1", *task_ports: int, launcher: str = "mine") -> Wanted:
    return Wanted(
        launcher=launcher, allocation=allocation, namespace="ns", job=f"job-{allocation}", task_ports=task_ports
    )


def claimed(before: Json, want: Wanted) -> Json:
    return with_listeners(before, want, start=START, end=END)


def ports_of(found: Json) -> list[int]:
    return [listener["port"] for listener in found["spec"]["listeners"]]


@pytest.mark.parametrize(
    ("used", "count", "expected"),
    [
        (set(), 2, (10, 11)),
        ({10, 12}, 2, (11, 13)),
        ({9, 14}, 4, (10, 11, 12, 13)),
        ({10, 11, 12}, 1, (13,)),
        (set(), 0, ()),
    ],
)
def test_the_lowest_free_ports_are_taken(used: set[int], count: int, expected: tuple[int, ...]) -> None:
    assert free_ports(used, start=10, end=13, count=count) == expected


@pytest.mark.parametrize(("used", "count"), [(set(), 5), ({10}, 4), ({10, 11, 12, 13}, 1)])
def test_too_few_free_ports_are_told(used: set[int], count: int) -> None:
    with pytest.raises(InvalidRequest, match=r"^not enough free ports in range 10-13$"):
        free_ports(used, start=10, end=13, count=count)


@given(
    used=st.sets(st.integers(START - 3, END + 3), max_size=30),
    count=st.integers(0, 8),
)
def test_free_ports_are_free_ascending_and_the_lowest(used: set[int], count: int) -> None:
    free = [port for port in range(START, END + 1) if port not in used]
    if len(free) < count:
        with pytest.raises(InvalidRequest):
            free_ports(used, start=START, end=END, count=count)
    else:
        assert list(free_ports(used, start=START, end=END, count=count)) == free[:count]


TASKS = st.lists(
    st.tuples(
        st.sampled_from(["mine", "yours"]),
        st.sampled_from(["1.a.1", "1.b.1", "2.c.3"]),
        st.lists(st.integers(1, 65535), min_size=1, max_size=3),
    ),
    max_size=6,
    unique_by=lambda each: each[:2],
)


@given(others=st.sets(st.integers(START, END), max_size=10), tasks=TASKS, data=st.data())
def test_what_is_claimed_and_freed_leaves_the_gateway_as_it_was(others: set[int], tasks: Any, data: Any) -> None:
    before = gateway(*others, notes={"owner": "network team"})
    at = before
    for launcher, allocation, task_ports in tasks:
        at = claimed(at, wanted(allocation, *task_ports, launcher=launcher))
        assert len(set(ports_of(at))) == len(ports_of(at))
    assert ports_of(at)[: len(others)] == ports_of(before)
    for launcher, allocation, task_ports in data.draw(st.permutations(tasks)):
        kept = {(claim.launcher, claim.port) for name in ("mine", "yours") for claim in open_claims(at, name)}
        mine = [claim for claim in open_claims(at, launcher) if claim.allocation == allocation]
        assert [claim.task_port for claim in mine] == task_ports
        at = without_listeners(at, mine)
        left = {(claim.launcher, claim.port) for name in ("mine", "yours") for claim in open_claims(at, name)}
        assert kept - left == {(launcher, claim.port) for claim in mine}
    assert at == before


def test_claiming_twice_is_claiming_once() -> None:
    once = claimed(gateway(START), wanted("1.x.1", 8888, 6006))
    assert claimed(once, wanted("1.x.1", 8888, 6006)) is once
    other = claimed(once, wanted("1.x.1", 8888))
    assert [claim.port for claim in open_claims(other, "mine")] == [START + 1]


def test_the_gateway_that_was_read_stays_as_it_was() -> None:
    read = gateway(START)
    copied = copy.deepcopy(read)
    made = claimed(read, wanted("1.x.1", 80))
    without_listeners(made, claims_of(made, "mine"))
    assert read == copied
    assert made["status"] == {}


def test_a_gateway_without_annotations_or_listeners() -> None:
    bare = {"metadata": {"name": "tasks"}, "spec": {"gatewayClassName": "c"}}
    made = claimed(bare, wanted("1.x.1", 80))
    assert made["spec"]["gatewayClassName"] == "c"
    assert made["spec"]["listeners"] == [
        {
            "name": f"det-{START}",
            "port": START,
            "protocol": "TCP",
            "allowedRoutes": {"namespaces": {"from": "All"}},
        }
    ]
    assert made["metadata"]["annotations"][f"{ALLOCATION_NOTE}{START}"] == "1.x.1"


MINE = Claim(port=START, launcher="mine", allocation="1.x.1", namespace="ns", job="job", index=0, task_port=80)
NOTE = msgspec.json.encode(MINE).decode()


@pytest.mark.parametrize(
    "notes",
    [
        {},
        {f"{ALLOCATION_NOTE}{START}": "1.x.1"},  # as the reference writes it
        {f"{CLAIM_NOTE}{START}": NOTE},
        {f"{ALLOCATION_NOTE}{START}": "2.y.1", f"{CLAIM_NOTE}{START}": NOTE},
        {f"{ALLOCATION_NOTE}{START}": "1.x.1", f"{CLAIM_NOTE}{START}": "not JSON"},
        {f"{ALLOCATION_NOTE}{START}": "1.x.1", f"{CLAIM_NOTE}{START}": '{"port": "x"}'},
        {f"{ALLOCATION_NOTE}{START + 1}": "1.x.1", f"{CLAIM_NOTE}{START + 1}": NOTE},
        {
            f"{ALLOCATION_NOTE}{START}": "1.x.1",
            f"{CLAIM_NOTE}{START}": NOTE.replace('"mine"', '"yours"'),
        },
    ],
)
def test_what_is_not_wholly_ours_is_somebody_elses(notes: dict[str, str]) -> None:
    theirs = gateway(notes=notes)
    theirs["spec"]["listeners"] = [{"name": f"det-{START}", "port": START, "protocol": "TCP"}]
    assert claims_of(theirs, "mine") == ()
    assert without_listeners(theirs, [MINE]) == theirs


def test_a_port_that_became_somebody_elses_is_not_freed() -> None:
    made = claimed(gateway(), wanted("1.x.1", 80))
    (old,) = claims_of(made, "mine")
    again = claimed(without_listeners(made, [old]), wanted("2.y.1", 80))
    assert [claim.port for claim in claims_of(again, "mine")] == [old.port]
    assert without_listeners(again, [old]) == again


def test_a_listener_that_somebody_took_away_is_made_anew() -> None:
    made = claimed(gateway(), wanted("1.x.1", 80))
    reset = {**made, "spec": {**made["spec"], "listeners": [{"name": "web", "port": START, "protocol": "HTTP"}]}}
    assert open_claims(reset, "mine") == ()
    again = claimed(reset, wanted("1.x.1", 80))
    assert ports_of(again) == [START, START + 1]
    assert [claim.port for claim in claims_of(again, "mine")] == [START + 1]
    freed = without_listeners(again, claims_of(again, "mine"))
    assert freed["spec"]["listeners"] == [{"name": "web", "port": START, "protocol": "HTTP"}]
    assert freed["metadata"]["annotations"] == {}


def test_a_route_leads_from_its_listener_to_its_service() -> None:
    ports = (ProxyPort(service_id="t", port=8888), ProxyPort(service_id="t:1", port=6006))
    made = build(task(proxy_ports=ports), has_gateway=True)
    claim = msgspec.structs.replace(MINE, index=1, task_port=6006)
    route = tcp_route(made.services[1], claim, CONFIG)
    assert route["metadata"] == made.services[1]["metadata"]
    assert route["metadata"]["name"] == f"{made.name}-1"
    assert route["metadata"]["annotations"] == {"determined.ai/job-name": made.name}
    (parent,) = route["spec"]["parentRefs"]
    assert parent == {"namespace": "gateways", "name": "tasks", "port": START, "sectionName": f"det-{START}"}
    (rule,) = route["spec"]["rules"]
    assert rule == {"backendRefs": [{"kind": "Service", "name": f"{made.name}-1", "port": 6006}]}


def test_addresses_are_in_the_order_of_the_tasks_ports() -> None:
    second = msgspec.structs.replace(MINE, port=START + 5, index=1, task_port=81)
    host = "gateway.example.com"
    assert addresses([second, MINE], CONFIG) == (
        Address(container_ip=host, container_port=80, host_ip=host, host_port=START),
        Address(container_ip=host, container_port=81, host_ip=host, host_port=START + 5),
    )


def test_tasks_do_not_report_addresses_that_help_nobody() -> None:
    assert environment(build(task(), has_gateway=True))["DET_PROXY_THROUGH_GATEWAY"] == "true"
    assert "DET_PROXY_THROUGH_GATEWAY" not in environment(build(task()))


def test_only_tasks_of_one_pod_have_services_for_the_gateway() -> None:
    ports = (ProxyPort(service_id="t", port=8888),)
    assert len(build(task(proxy_ports=ports), has_gateway=True).services) == 1
    assert build(task(proxy_ports=ports, slots=2, num_pods=2), has_gateway=True).services == ()


def test_addresses_on_the_gateway_are_observed_with_the_pod() -> None:
    tracked = run(running())
    assert observation(tracked, view()).pods[0].proxied == ()
    tracked.intent.confirm_proxied(addresses([MINE], CONFIG))
    assert observation(tracked, view()).pods[0].proxied == tracked.intent.proxied
