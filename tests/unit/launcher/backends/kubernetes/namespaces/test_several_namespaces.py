"""Several namespaces: what becomes of runs that nobody can see, whose quota counts, and what may be part of a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from libs.clock import SystemClock
from libs.events.orders import Order
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.intent import Intent
from services.launcher.backends.kubernetes.allocations.state.observed_state import UNSEEN_S, ObservedState
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.capacity import shapes
from services.launcher.backends.kubernetes.capacity.node_parts import NodePart, ShapeRules, node_part
from services.launcher.backends.kubernetes.capacity.slots import SlotKind, requested_slots
from services.launcher.backends.kubernetes.client.objects import Node, Pod, ResourceQuota, ResourceSlice
from services.launcher.backends.kubernetes.client.paths import may_be_namespace, may_be_node
from services.launcher.backends.kubernetes.manifests.task_objects import manifests
from services.launcher.reconcile import Existence
from tests.unit.launcher.backends.kubernetes.builders import (
    T0,
    Listener,
    capacity_tracker_of,
    existence,
    exited,
    job,
    node,
    observation,
    pod,
    quota,
    reaction,
    run,
    running,
    slim_pod,
    traits,
    view,
)
from tests.unit.launcher.specs import task

RIGHTS = Path(__file__).parents[6] / "deploy" / "helm" / "rights"
WORDS = "nobody can see what is in namespace a: forbidden"


def unseen(*pods: Pod) -> TrackedAllocation:
    made = run(*pods)
    made.observed.on_out_of_sight(WORDS)
    return made


def remembered_in(namespace: str) -> TrackedAllocation:
    return TrackedAllocation(
        allocation="1.x.1",
        task="",
        pool="default",
        job_name="of 1.x.1",
        namespace=namespace,
        slots_per_pod=0,
        observed=ObservedState(num_pods=1, out_of_sight=WORDS),
        intent=Intent(stage="abandoned"),
        view=view(),
        is_remembered=True,
    )


def stop(made: TrackedAllocation, *, deadline: float) -> None:
    made.request_stop(ordered=True, deadline=deadline)


def test_what_cannot_be_seen_lives_on_and_is_left_alone() -> None:
    for made in (unseen(running()), unseen(), run(with_job=False)):
        made.observed.on_out_of_sight(WORDS)
        assert existence(made, view()) is Existence.LIVE
        assert reaction(made, view()) is None
        assert existence(made, view(T0 + 1e9)) is Existence.LIVE


def test_what_cannot_be_seen_and_is_to_stop_is_gone_some_time_after_it_should_be() -> None:
    made = unseen(running())
    stop(made, deadline=T0 + 15)
    due = T0 + 15 + UNSEEN_S
    assert made.refresh(view(T0)).next_change == due
    assert existence(made, view(due - 1)) is Existence.LIVE
    assert existence(made, view(due)) is Existence.ENDED
    told = observation(made, view(due))
    assert (told.gone, told.stopped, told.failure) == (True, True, "")
    assert [(each.state, each.failure) for each in told.pods] == [("TERMINATED", "DELETED")]


def test_what_was_only_remembered_and_is_to_stop_is_gone_too() -> None:
    made = run(with_job=False)
    made.observed.on_out_of_sight(WORDS)
    stop(made, deadline=T0)
    assert existence(made, view(T0 + UNSEEN_S)) is Existence.ENDED


def test_a_namespace_that_is_gone_takes_everything_with_it() -> None:
    made = run(running())
    made.observed.on_namespace_deleted("namespace a was deleted", intent=made.intent, view=view())
    told = observation(made, view())
    assert [(each.state, each.failure, each.message) for each in told.pods] == [
        ("TERMINATED", "DELETED", "namespace a was deleted")
    ]
    before_its_pods = run()
    before_its_pods.observed.on_namespace_deleted("namespace a was deleted", intent=before_its_pods.intent, view=view())
    told = observation(before_its_pods, view())
    assert (told.gone, told.failure, told.message) == (True, "DELETED", "namespace a was deleted")


def test_the_objects_of_an_order_are_in_its_namespace() -> None:
    order = Order(allocation="1.x.1", pool="default", desired="run", spec=task())
    for namespace, expected in (("", "ns1"), ("team", "team")):
        made = manifests(msgspec.structs.replace(order, namespace=namespace), traits(services=True))
        objects = [made.job, made.config_map, *made.secrets, *made.services]
        assert {each["metadata"]["namespace"] for each in objects} == {expected}


@pytest.mark.parametrize(
    ("kind", "hard", "slots"),
    [
        (SlotKind(type="cuda", resource="nvidia.com/gpu"), {"requests.nvidia.com/gpu": "8", "pods": "1"}, 8),
        (SlotKind(type="cuda", resource="nvidia.com/gpu"), {"requests.amd.com/gpu": "8"}, None),
        (SlotKind(type="rocm", resource="amd.com/gpu"), {"requests.amd.com/gpu": "8"}, 8),
        (SlotKind(type="cpu", resource="cpu", cpu=0.5), {"requests.cpu": "1500m"}, 3),
        (SlotKind(type="cuda", resource="nvidia.com/gpu"), {}, None),
    ],
)
def test_slots_that_a_quota_allows(kind: SlotKind, hard: dict[str, str], slots: int | None) -> None:
    assert requested_slots(hard, kind) == slots


@pytest.mark.parametrize(
    ("name", "is_namespace", "is_node"),
    [
        ("team-1", True, True),
        ("node.example.com", False, True),
        ("a" * 63, True, True),
        ("a" * 64, False, True),
        ("", False, False),
        (".", False, False),
        ("..", False, False),
        ("-a", False, False),
        ("a-", False, False),
        ("A", False, False),
        ("a/b", False, False),
        ("a%2fb", False, False),
        ("a\n", False, False),
    ],
)
def test_names_that_may_be_part_of_a_path(name: str, is_namespace: bool, is_node: bool) -> None:
    assert (may_be_namespace(name), may_be_node(name)) == (is_namespace, is_node)


def at(namespace: str, found: Any, **fields: Any) -> Any:
    """The object in a namespace, with these fields of its metadata."""
    metadata = msgspec.structs.replace(found.metadata, namespace=namespace, **fields)
    return msgspec.structs.replace(found, metadata=metadata)


def of(allocation: str, found: Any) -> Any:
    notes = msgspec.structs.replace(found.metadata.annotations, allocation=allocation)
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, annotations=notes))


@pytest.fixture
async def tracker() -> Tracker:
    return Tracker(pool="default", clock=SystemClock(), stuck_grace_s=60, listener=Listener())


async def test_jobs_of_the_same_name_in_two_namespaces_are_two(tracker: Tracker) -> None:
    for namespace, allocation in (("a", "1.x.1"), ("b", "2.x.1")):
        tracker.on_job(at(namespace, of(allocation, job())))
        tracker.on_pod(at(namespace, of(allocation, running())))
    first, second = tracker.allocations["1.x.1"], tracker.allocations["2.x.1"]
    assert tracker.owner_of("Pod", "a", "job-abcde") is first
    assert tracker.owner_of("Pod", "b", "job-fghij") is second
    assert tracker.owner_of("Job", "c", "job") is None
    tracker.on_pod_deleted(at("b", running()))
    assert (list(first.observed.pods), list(second.observed.pods)) == (["job-abcde"], [])
    tracker.close()


async def test_how_the_pods_of_a_job_end_that_is_made_anew_is_nothing_of_the_allocation(tracker: Tracker) -> None:
    """On later releases of Kubernetes they are seen to end, rather than to be gone at once."""
    old = running(job_uid="uid-job")
    tracker.on_job(job())
    tracker.on_pod(old)
    run = tracker.allocations["1.x.1"]
    run.replace_job("uid-job")
    tracker.on_job(job())
    tracker.on_pod(exited(137, job_uid="uid-job", deleted_at="2026-01-01T00:00:00Z"))
    tracker.on_pod_deleted(old)
    tracker.on_job_deleted(job())
    assert (run.observed.job, run.observed.job_vanished, run.observed.pods, run.observed.ended, run.intent.outcome) == (
        None,
        False,
        {},
        {},
        None,
    )
    tracker.on_job(at("", job(), uid="another"))
    tracker.on_pod(running("job-fghij", job_uid="another"))
    assert (tracker.existing["1.x.1"], list(run.observed.pods)) == (Existence.LIVE, ["job-fghij"])
    tracker.close()


async def test_a_copy_in_another_namespace_is_not_taken_for_the_original(tracker: Tracker) -> None:
    tracker.on_job(at("a", job()))
    tracker.on_pod(at("a", running()))
    tracker.on_job(at("b", job(), uid="copy"))
    tracker.on_pod(at("b", running(), uid="copy"))
    tracker.on_pod_deleted(at("b", running(), uid="copy"))
    tracker.on_job_deleted(at("b", job(), uid="copy"))
    (found,) = tracker.allocations.values()
    assert (found.namespace, list(found.observed.pods), found.observed.job_vanished) == ("a", ["job-abcde"], False)
    tracker.close()


async def test_what_was_remembered_is_found_again_with_the_order_it_got_meanwhile(tracker: Tracker) -> None:
    remembered = remembered_in("a")
    tracker.add(remembered)
    assert tracker.existing["1.x.1"] is Existence.LIVE
    remembered.request_stop(ordered=True, deadline=T0)
    tracker.on_job(at("a", job()))
    tracker.regain_sight("a")
    found = tracker.allocations["1.x.1"]
    assert (found.job_name, found.intent.stop, found.observed.out_of_sight) == ("job", remembered.intent.stop, "")
    tracker.close()


async def test_what_was_remembered_and_is_not_there_waits_for_its_order(tracker: Tracker) -> None:
    remembered = remembered_in("a")
    tracker.add(remembered)
    tracker.lose_sight("b", "elsewhere")
    assert remembered.observed.out_of_sight == WORDS
    tracker.regain_sight("a")
    assert tracker.existing["1.x.1"] is Existence.ABANDONED
    tracker.close()


async def test_only_what_may_live_is_out_of_sight(tracker: Tracker) -> None:
    tracker.on_job(at("a", job(condition="Complete")))
    tracker.on_pod(at("a", pod(phase="Succeeded", node="n1", main={"terminated": {"exitCode": 0}})))
    assert tracker.existing["1.x.1"] is Existence.ENDED
    tracker.lose_sight("a", WORDS)
    assert tracker.existing["1.x.1"] is Existence.ENDED
    tracker.close()


async def test_nodes_are_reported_with_what_pods_may_ask_of_them(tracker: Tracker) -> None:
    capacity_tracker = capacity_tracker_of(tracker, bad_taints=("xid",))
    claims = node("n2", allocatable={"cpu": "4", "pods": "9"})
    slice_of_n2 = msgspec.convert({"metadata": {"name": "s"}, "spec": {"nodeName": "n2"}}, ResourceSlice)
    for item in (node("n1", labels={"zone": "a"}), claims):
        capacity_tracker.nodes.on_upsert(item)
    capacity_tracker.slices.on_upsert(slice_of_n2)
    capacity_tracker.others.on_upsert(slim_pod("daemon", "n1", {"cpu": "250m"}))
    found = await capacity_tracker.capacity()
    first, second = found.nodes
    assert found.launcher_requests == {"cpu": 10}
    assert first.foreign == {"cpu": 250, "pods": 1}
    assert [found.shapes[each.shape or 0].labels for each in found.nodes] == [{"zone": "a"}, {}]
    assert [found.shapes[each.shape or 0].claims_only for each in found.nodes] == [False, True]
    assert second.foreign == {}
    capacity_tracker.slices.on_delete(slice_of_n2)
    xid = {"key": "xid", "value": "79", "effect": "PreferNoSchedule"}
    capacity_tracker.nodes.on_upsert(node("n1", labels={"zone": "b"}, taints=[xid]))
    capacity_tracker.others.on_delete(slim_pod("daemon", "n1", {"cpu": "250m"}))
    found = await capacity_tracker.capacity()
    assert [found.shapes[each.shape or 0].claims_only for each in found.nodes] == [False, False]
    assert found.shapes[found.nodes[0].shape or 0].labels == {"zone": "b"}
    assert [each.enabled for each in found.nodes] == [False, True]
    assert found.nodes[0].foreign == {}
    tracker.close()


async def test_only_a_node_that_changes_is_looked_at_again(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    def noting(item: Node, rules: ShapeRules) -> NodePart:
        looked_at.append(item.metadata.name)
        return node_part(item, rules)

    monkeypatch.setattr(shapes, "node_part", noting)
    capacity_tracker = capacity_tracker_of(tracker)
    for number in range(3):
        capacity_tracker.nodes.on_upsert(node(f"n{number}"))
    await capacity_tracker.capacity()
    assert sorted(looked_at) == ["n0", "n1", "n2"]
    capacity_tracker.nodes.on_upsert(node("n0", message="a kubelet says every few seconds that all is well"))
    capacity_tracker.nodes.on_upsert(node("n1", labels={"zone": "a"}))
    capacity_tracker.nodes.on_delete(node("n2"))
    found = await capacity_tracker.capacity()
    assert looked_at[3:] == ["n1"]
    assert [found.shapes[each.shape or 0].labels for each in found.nodes] == [{}, {"zone": "a"}]
    tracker.close()


async def test_nodes_that_nobody_may_see_have_no_shape(tracker: Tracker) -> None:
    found = await capacity_tracker_of(tracker).capacity()
    assert found.shapes == ()
    assert [each.shape for each in found.nodes] == [None]
    tracker.close()


async def test_each_namespace_has_its_own_quotas_and_nodes_are_counted_once(tracker: Tracker) -> None:
    capacity_tracker = capacity_tracker_of(tracker)

    def limit(namespace: str, hard: int, used: int) -> ResourceQuota:
        name = "requests.nvidia.com/gpu"
        found: ResourceQuota = at(namespace, quota({name: str(hard)}, {name: str(used)}))
        return found

    for item in (limit("a", 6, 1), limit("b", 8, 3), limit("c", 2, 0)):
        capacity_tracker.quotas.on_upsert(item)
    capacity_tracker.nodes.on_upsert(node("n1"))
    of_one_slot = job(annotations={"resolute/slots-per-pod": "1"})
    for namespace, allocation in (("a", "1.x.1"), ("b", "2.x.1")):
        tracker.on_job(at(namespace, of(allocation, of_one_slot)))
        tracker.on_pod(at(namespace, of(allocation, running())))
    found = await capacity_tracker.capacity()
    assert found.quota_slots == 6
    assert found.quota_slots_of == {"b": 6, "c": 2}  # of the three in use one is ours
    held = [device.allocation for node in found.nodes for device in node.devices if device.allocation]
    assert sorted(held) == ["1.x.1", "2.x.1"]
    assert [capacity_tracker.free_slots_in(name) for name in ("a", "b", "c", "d")] == [5, 5, 2, 6]
    capacity_tracker.forget_namespace("b")
    capacity_tracker.quotas.on_delete(limit("c", 2, 0))
    assert (await capacity_tracker.capacity()).quota_slots_of == {}
    tracker.close()


def test_who_makes_namespaces_may_do_in_them_what_a_role_gives() -> None:
    def rules(file: str) -> set[tuple[str, str, str]]:
        role = yaml.safe_load((RIGHTS / file).read_text())
        return {
            (group, resource, verb)
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    # Only in the namespace of the pool: who acts for it, and pods that hold room.
    of_pool = {rule for rule in rules("role.yaml") if rule[1] == "leases" or rule == ("", "pods", "create")}
    added = {("", "namespaces", "create"), ("", "namespaces", "delete")}
    added |= {("", "resourcequotas", "create"), ("", "resourcequotas", "patch")}
    assert rules("cluster-role-workspaces.yaml") == (rules("role.yaml") - of_pool) | added
