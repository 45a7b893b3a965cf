"""One launcher in several namespaces: acceptance item A14, as far as it is the launcher's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from libs.bus import Bus
from libs.events.capacity import PoolCapacity
from libs.events.orders import Environment
from services.launcher.backends.kubernetes.client.api import Refused
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.client.faulty import faulty_proxy
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    LauncherHarness,
    Namespace,
    account_of,
    grant,
    launcher_kubeconfig,
    new_namespace,
    open_place,
    revoke,
    task,
)

pytestmark = pytest.mark.cluster

LAUNCH_RECORD = "resolute/purpose=launch-record"


def alone(harness: LauncherHarness, **settings: Any) -> LauncherHarness:
    """With an id of its own: a launcher looks for what is its own in the whole cluster."""
    harness.settings = msgspec.structs.replace(harness.settings, cluster_id=str(uuid4()), **settings)
    return harness


@pytest.fixture
async def home(idle: LauncherHarness) -> LauncherHarness:
    """A harness whose launcher sees the cluster, and runs."""
    await alone(idle).start()
    return idle


@pytest.fixture(params=[False])
async def modest(
    bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[LauncherHarness]:
    """A harness whose launcher has nothing but Roles, unless the parameter is True; it runs."""
    config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path, sees_cluster=request.param)
    async with open_place(bus, namespace, config) as harness:
        await alone(harness).start()
        yield harness


@pytest.fixture
async def mighty(bus: Bus, namespace: Namespace, kubeconfig: Path, tmp_path: Path) -> AsyncIterator[LauncherHarness]:
    """A harness whose launcher makes namespaces; it runs."""
    config = await launcher_kubeconfig(namespace, kubeconfig, tmp_path, makes_namespaces=True)
    async with open_place(bus, namespace, config) as harness:
        await alone(harness).start()
        yield harness


@pytest.fixture
async def bound(namespace: Namespace, kubeconfig: Path) -> AsyncIterator[Namespace]:
    """The namespace of a workspace, in which no launcher has any rights yet."""
    async with new_namespace(kubeconfig) as made:
        yield made


def holders(capacity: PoolCapacity) -> list[str]:
    return [device.allocation for node in capacity.nodes for device in node.devices if device.allocation is not None]


async def launch_record_of(harness: LauncherHarness) -> dict[str, Any]:
    found = await harness.namespace.items(harness.namespace.paths.config_maps, LAUNCH_RECORD)
    return found[0] if found else {"metadata": {}}


async def until_written(harness: LauncherHarness, *allocations: str) -> None:
    async def is_written() -> bool:
        return set(allocations) <= ((await launch_record_of(harness)).get("data") or {}).keys()

    await eventually(is_written)


async def test_an_order_runs_in_the_namespace_that_it_names(home: LauncherHarness, bound: Namespace) -> None:
    await grant(bound, account_of(home))
    allocation = await home.run(task(slots=2), namespace=bound.name)
    seen = await home.until_running(allocation)
    kinds = sorted(each.split("/")[0] for each in await bound.remains())
    assert kinds == ["configmaps", "jobs", "pods", "secrets"]
    assert await home.namespace.remains() == []
    await eventually(lambda: f"Pod {seen.pods[0].name}: Pod resources allocated." in home.text(allocation))
    found = await home.until_capacity(lambda capacity: holders(capacity).count(allocation) == 2)
    assert found.quota_slots_of == {}
    await home.stop(allocation, namespace=bound.name)
    ended = await home.until_ended(allocation)
    assert ended.stopped is True
    await home.withdraw(allocation)
    await bound.until_empty()


async def test_a_namespace_is_bound_while_jobs_run(home: LauncherHarness, kubeconfig: Path) -> None:
    ending = await home.run(task(notes={"run-seconds": "3", "exit-code": "5"}))
    running = await home.run(task())
    await home.until_running(running)
    async with new_namespace(kubeconfig) as new:
        await grant(new, account_of(home))
        many = [await home.run(task(slots=1), namespace=new.name) for _ in range(6)]
        for allocation in many:
            seen = await home.until_running(allocation)
            words = f"Pod {seen.pods[0].name}: Pod resources allocated."
            await eventually(lambda: words in home.text(allocation))  # noqa: B023
        ended = await home.until_ended(ending)
        assert [pod.exit_code for pod in ended.pods] == [5]
        after = await home.run(task())
        seen = await home.until_running(after)
        await eventually(lambda: f"Pod {seen.pods[0].name}: Pod resources allocated." in home.text(after))
        for allocation in many:
            await home.withdraw(allocation)
        await new.until_empty()


@pytest.mark.parametrize("modest", [False, True], indirect=True)
async def test_a_restart_finds_runs_in_all_namespaces(modest: LauncherHarness, bound: Namespace) -> None:
    harness = modest
    await grant(bound, account_of(harness))
    mine = await harness.run(task())
    theirs = await harness.run(task(), namespace=bound.name)
    ending = await harness.run(task(notes={"run-seconds": "5", "exit-code": "7"}), namespace=bound.name)
    for allocation in (mine, theirs):
        await harness.until_running(allocation)
    await harness.until_begun(ending)
    await until_written(harness, mine, theirs, ending)
    await harness.kill()
    jobs = {job["metadata"]["uid"] for job in (*await harness.namespace.jobs(), *await bound.jobs())}
    await bound.until_failed(ending)
    harness.observations.clear()
    await harness.start()
    ended = await harness.until_ended(ending)
    assert [(pod.exit_code, pod.failure) for pod in ended.pods] == [(7, "FAILED")]
    await harness.until_running(mine)
    await harness.until_running(theirs)
    assert {job["metadata"]["uid"] for job in (*await harness.namespace.jobs(), *await bound.jobs())} == jobs
    await harness.withdraw(theirs)
    await harness.withdraw(ending)
    await bound.until_empty()


async def test_what_was_withdrawn_while_nobody_looked_is_removed(modest: LauncherHarness, bound: Namespace) -> None:
    await grant(bound, account_of(modest))
    allocation = await modest.run(task(), namespace=bound.name)
    await modest.until_running(allocation)
    await modest.kill()
    await modest.withdraw(allocation)
    await modest.start()
    await bound.until_empty()


async def test_a_launcher_that_sees_the_cluster_needs_no_memory(home: LauncherHarness, bound: Namespace) -> None:
    await grant(bound, account_of(home))
    allocation = await home.run(task(), namespace=bound.name)
    await home.until_running(allocation)
    await until_written(home, allocation)
    await home.kill()
    await home.withdraw(allocation)
    launch_record = await launch_record_of(home)
    await home.namespace.api.delete(home.namespace.paths.config_map(launch_record["metadata"]["name"]))
    await home.start()
    await bound.until_empty()


async def test_without_any_memory_orders_tell_where_to_look(modest: LauncherHarness, bound: Namespace) -> None:
    await grant(bound, account_of(modest))
    kept, stopped = [await modest.run(task(), namespace=bound.name) for _ in range(2)]
    for allocation in (kept, stopped):
        await modest.until_running(allocation)
    await until_written(modest, kept, stopped)
    await modest.kill()
    launch_record = await launch_record_of(modest)
    await modest.namespace.api.delete(modest.namespace.paths.config_map(launch_record["metadata"]["name"]))
    (before,) = await bound.jobs(f"determined={kept}")
    await modest.stop(stopped, namespace=bound.name)
    modest.observations.clear()
    await modest.start()
    ended = await modest.until_ended(stopped)
    assert (ended.stopped, len(ended.pods)) == (True, 1)  # it was found, not taken for something that never was
    assert await bound.jobs(f"determined={stopped}") == []
    await modest.until_running(kept)
    (after,) = await bound.jobs()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def test_what_was_deleted_in_a_namespace_does_not_begin_anew(modest: LauncherHarness, bound: Namespace) -> None:
    await grant(bound, account_of(modest))
    allocation = await modest.run(task(), namespace=bound.name)
    await modest.until_running(allocation)
    await until_written(modest, allocation)
    await modest.kill()
    (job,) = await bound.jobs()
    await bound.api.delete(bound.paths.job(job["metadata"]["name"]), {"propagationPolicy": "Background"})
    await bound.until_empty()
    modest.observations.clear()
    await modest.start()
    ended = await modest.until_ended(allocation)
    assert (ended.failure, ended.message) == ("DELETED", "job was deleted")
    assert await bound.jobs() == []


async def test_a_namespace_that_is_deleted_ends_its_runs_and_no_others(
    mighty: LauncherHarness, bound: Namespace
) -> None:
    mine = await mighty.run(task())
    theirs = await mighty.run(task(), namespace=bound.name)
    await mighty.until_running(mine)
    await mighty.until_running(theirs)
    await bound.api.delete(bound.paths.namespace)
    ended = await mighty.until_ended(theirs, timeout_s=60)
    assert {ended.failure, *(pod.failure for pod in ended.pods)} <= {"", "DELETED"}
    assert not ended.stopped
    await mighty.withdraw(theirs)

    # Lists show that it is gone before admission, which goes by a copy of its own, knows.
    async def admits_nothing() -> bool:
        body = {"metadata": {"name": "late"}}
        try:
            await bound.api.request("POST", bound.paths.config_maps, body=body, query={"dryRun": "All"})
        except Refused as error:
            return error.code == 404
        return False

    await eventually(admits_nothing, timeout_s=60)
    late = await mighty.run(task(), namespace=bound.name)
    ended = await mighty.until_ended(late)
    assert ended.failure == "LAUNCH_ERROR"
    assert f'namespaces "{bound.name}" not found' in ended.message
    assert mighty.told(mine)[-1].pods[0].state == "RUNNING"


async def test_a_namespace_that_was_deleted_while_nobody_looked(mighty: LauncherHarness, bound: Namespace) -> None:
    allocation = await mighty.run(task(), namespace=bound.name)
    await mighty.until_running(allocation)
    await until_written(mighty, allocation)
    await mighty.kill()
    await bound.api.delete(bound.paths.namespace)

    async def is_gone() -> bool:
        found = await bound.items("/api/v1/namespaces")
        return bound.name not in {item["metadata"]["name"] for item in found}

    await eventually(is_gone, timeout_s=60)
    mighty.observations.clear()
    await mighty.start()
    ended = await mighty.until_ended(allocation)
    assert (ended.failure, ended.message) == ("DELETED", f"namespace {bound.name} was deleted")


async def test_forbidden_and_missing_namespaces_refuse_their_orders_only(
    home: LauncherHarness, bound: Namespace
) -> None:
    running = await home.run(task())
    await home.until_running(running)
    refused = await home.run(task(), namespace=bound.name)
    ended = await home.until_ended(refused)
    assert ended.failure == "LAUNCH_ERROR"
    assert ended.message.startswith(f"error finding namespace {bound.name}: ")
    assert "cannot list resource" in ended.message
    assert "deploy/helm/rights/role.yaml" in ended.message
    strange = await home.run(task(), namespace="../../nodes")
    ended = await home.until_ended(strange)
    assert ended.message == "error finding namespace ../../nodes: no namespace can have this name"
    after = await home.run(task())
    await home.until_running(after)
    await grant(bound, account_of(home))
    await asyncio.sleep(2)  # a namespace that refused us is not asked again at once
    allowed = await home.run(task(), namespace=bound.name)
    await home.until_running(allowed)


async def test_a_missing_namespace_for_somebody_who_may_know(mighty: LauncherHarness) -> None:
    allocation = await mighty.run(task(), namespace="not-there")
    ended = await mighty.until_ended(allocation)
    assert ended.failure == "LAUNCH_ERROR"
    assert ended.message == 'error finding namespace not-there: namespaces "not-there" not found'


async def test_rights_that_are_taken_away_end_nothing(idle: LauncherHarness, bound: Namespace, tmp_path: Path) -> None:
    account = account_of(idle)
    async with faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (proxy, kubeconfig):
        idle.settings = msgspec.structs.replace(alone(idle).settings, kubeconfig=str(kubeconfig))
        await grant(bound, account)
        await idle.start()
        staying = await idle.run(task(), namespace=bound.name)
        going = await idle.run(task(), namespace=bound.name)
        await idle.until_running(staying)
        seen = await idle.until_running(going)
        await revoke(bound, account)

        async def is_refused() -> bool:
            proxy.drop_watches()
            refused = await idle.run(task(), namespace=bound.name)
            ended = await idle.until_ended(refused)
            await idle.withdraw(refused)
            return "cannot list resource" in ended.message

        await eventually(is_refused)
        await bound.delete_pod(seen.pods[0].name, grace_s=0)
        assert any("nobody can see what is in namespace" in text for text in idle.text(staying))
        assert not idle.told(going)[-1].gone
        assert not idle.told(staying)[-1].gone
        await grant(bound, account)
        ended = await idle.until_ended(going)
        assert {pod.failure for pod in ended.pods} == {"DELETED"}  # of old clusters also the one in its place
        assert idle.told(staying)[-1].pods[0].state == "RUNNING"
        for allocation in (staying, going):
            await idle.withdraw(allocation)
        await bound.until_empty()
        await idle.kill()


async def test_a_launcher_that_starts_without_rights_waits_for_them(modest: LauncherHarness, bound: Namespace) -> None:
    account = account_of(modest)
    await grant(bound, account)
    allocation = await modest.run(task(), namespace=bound.name)
    await modest.until_running(allocation)
    await until_written(modest, allocation)
    await modest.kill()
    await revoke(bound, account)
    modest.observations.clear()
    await modest.start()
    own = await modest.run(task())
    await modest.until_running(own)
    assert modest.told(allocation) == []  # nothing is known of it, so nothing is said
    await grant(bound, account)
    await modest.until_running(allocation)


async def test_a_namespace_that_nobody_uses_is_not_watched_any_more(idle: LauncherHarness, bound: Namespace) -> None:
    await grant(bound, account_of(idle))
    await alone(idle, namespace_idle_s=0.5).start()
    first = await idle.run(task(), namespace=bound.name)
    await idle.until_running(first)
    assert list((await launch_record_of(idle))["metadata"]["annotations"]) == [f"namespaces.resolute/{bound.name}"]
    await idle.withdraw(first)
    await bound.until_empty()

    async def is_forgotten() -> bool:
        return not (await launch_record_of(idle))["metadata"].get("annotations")

    await eventually(is_forgotten)
    second = await idle.run(task(), namespace=bound.name)
    await idle.until_running(second)


async def test_wheels_are_where_the_pods_are(idle: LauncherHarness, bound: Namespace, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "determined-0.38.1-py3-none-any.whl").write_bytes(b"wheel")
    await grant(bound, account_of(idle))
    await alone(idle, wheels_dir=str(wheels), namespace_idle_s=0.5).start()
    allocation = await idle.run(task(), namespace=bound.name)
    await idle.until_running(allocation)
    (found,) = await bound.items(bound.paths.config_maps, "resolute/purpose=wheels")
    (pod,) = await bound.pods()
    mounted = [volume["configMap"]["name"] for volume in pod["spec"]["volumes"] if "configMap" in volume]
    assert found["metadata"]["name"] in mounted
    await idle.withdraw(allocation)

    async def is_tidy() -> bool:
        return not await bound.items(bound.paths.config_maps, "resolute/purpose=wheels")

    await eventually(is_tidy)


async def test_trouble_in_one_namespace_does_not_hold_up_others(home: LauncherHarness, kubeconfig: Path) -> None:
    """More orders than there are creators cannot be made for now, and wait."""
    hook = {
        "metadata": {"name": f"broken-{uuid4().hex[:8]}", "labels": {"test": home.namespace.name}},
        "webhooks": [
            {
                "name": "broken.test.example",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 1,
                "clientConfig": {"url": "https://127.0.0.1:9/"},
                "rules": [
                    {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
                ],
            }
        ],
    }
    async with AsyncExitStack() as stack:
        broken = await stack.enter_async_context(new_namespace(kubeconfig))
        await grant(broken, account_of(home))
        await broken.api.patch(broken.paths.namespace, {"metadata": {"labels": {"broken": broken.name}}})
        hook["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"broken": broken.name}}
        hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        await broken.create(hooks, hook)
        stack.push_async_callback(broken.api.delete, f"{hooks}/{hook['metadata']['name']}")
        waiting = [await home.run(task(), namespace=broken.name) for _ in range(30)]
        for allocation in waiting:
            await home.until(allocation, lambda seen: not seen.gone)
        after = await home.run(task())
        await home.until_running(after)
        for allocation in waiting:
            await home.stop(allocation, namespace=broken.name)
        for allocation in waiting:
            ended = await home.until_ended(allocation, timeout_s=60)
            assert (ended.stopped, ended.failure) == (True, "")


async def test_two_workspaces_may_have_pods_of_the_same_name_in_view(home: LauncherHarness, bound: Namespace) -> None:
    """A Job that was copied by hand into another namespace, labels and all, is not taken for the original."""
    await grant(bound, account_of(home))
    other = await home.run(task(), namespace=bound.name)
    await home.until_running(other)
    allocation = await home.run(task(environment=Environment(image="i")))
    await home.until_running(allocation)
    (job,) = await home.namespace.jobs()
    metadata = {key: job["metadata"][key] for key in ("name", "labels", "annotations")}
    template = job["spec"]["template"]
    for labels in (metadata["labels"], template["metadata"]["labels"]):
        for prefix in ("", "batch.kubernetes.io/"):
            labels.pop(f"{prefix}controller-uid", None)
    template["metadata"].pop("creationTimestamp", None)
    await bound.create(bound.paths.jobs, {"metadata": metadata, "spec": {"suspend": None, "template": template}})

    async def has_copy() -> bool:
        return len(await bound.pods(f"determined={allocation}")) == 1

    await eventually(has_copy)
    await bound.api.delete(bound.paths.job(metadata["name"]), {"propagationPolicy": "Background"})

    async def has_none() -> bool:
        return not await bound.pods(f"determined={allocation}")

    await eventually(has_none)
    assert home.told(allocation)[-1].pods[0].state == "RUNNING"
    assert len(home.told(allocation)[-1].pods) == 1


async def test_a_pool_that_moves_follows_what_runs_where_it_was_and_begins_the_rest_where_it_is(
    bus: Bus, modest: LauncherHarness, kubeconfig: Path
) -> None:
    """Without rights in the whole cluster, and with a launcher of before that still acts."""
    home, old = modest, modest.namespace
    async with new_namespace(kubeconfig) as new:
        running = await home.run(task())
        await home.until_running(running)
        ended = await home.run(task(notes={"run-seconds": "0.2"}))
        await home.until_ended(ended)
        await grant(new, account_of(home))
        moved = LauncherHarness(bus, new, Path(home.settings.kubeconfig or ""))
        moved.observations = home.observations
        moved.settings = msgspec.structs.replace(home.settings, namespace=new.name, former_namespaces=(old.name,))
        starting = asyncio.create_task(moved.start())
        try:
            await asyncio.sleep(3)  # as long as it takes to get a lease that nobody holds
            assert not starting.done(), "two launchers act for the pool"
            await home.kill()
            await starting
            fresh = await moved.run(task())
            await moved.until_running(fresh)
            assert {job["metadata"]["labels"]["determined"] for job in await new.jobs()} == {fresh}
            (pod,) = await old.pods(f"determined={running}")
            assert pod["status"]["phase"] == "Running"
            await moved.stop(running)
            await moved.until_ended(running)
            for allocation in (running, ended, fresh):
                await moved.withdraw(allocation)
            await old.until_empty()
            await new.until_empty()
        finally:
            starting.cancel()
            await moved.kill()
