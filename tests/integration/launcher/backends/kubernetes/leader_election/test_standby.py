"""Several launchers of one pool: one acts, the others wait, and what runs does not notice who it is."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
import yaml
from aiohttp import web

from libs.bus import BusSettings
from libs.events.observations import AllocationObserved
from services.launcher.backends.kubernetes.leader_election.elector import LeadershipLost
from services.launcher.backends.kubernetes.settings import StandbySettings
from tests.harness.processes import ServiceProcess
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.client.faulty import FaultyProxy, faulty_proxy
from tests.integration.launcher.backends.kubernetes.launcher_harness import RIGHTS, LauncherHarness, Namespace, task
from tests.integration.launcher.backends.kubernetes.launcher_process import service

pytestmark = pytest.mark.cluster

Json = dict[str, Any]
TIMES = StandbySettings(lease_s=15, renew_deadline_s=10.0, retry_s=0.5)
"""As in production, but for more attempts: an API server that stalls for seconds takes the lease from nobody."""
LONG = StandbySettings(lease_s=600, renew_deadline_s=60.0, retry_s=0.2)
"""Whoever has to wait for such a lease to run out does not get it during a test."""
PATIENCE_S = 120.0
"""For what another launcher does once a lease has run out, too."""


@pytest.fixture
def idle(idle: LauncherHarness) -> LauncherHarness:
    idle.settings = msgspec.structs.replace(idle.settings, standby=TIMES)
    return idle


@pytest.fixture
async def other(idle: LauncherHarness) -> AsyncIterator[LauncherHarness]:
    """A second launcher of the same pool, which hears with the ears of the first."""
    harness = LauncherHarness(idle.bus, idle.namespace, Path(idle.settings.kubeconfig or ""))
    harness.settings = idle.settings
    harness.observations = idle.observations
    try:
        yield harness
    finally:
        await harness.kill()


async def lease_of(namespace: Namespace) -> Json:
    [lease] = await namespace.items(namespace.paths.leases, "resolute/purpose=lease")
    return lease


async def holder(namespace: Namespace) -> str:
    return str((await lease_of(namespace))["spec"].get("holderIdentity") or "")


async def until_held_by_another(namespace: Namespace, than: str) -> None:
    async def is_held() -> bool:
        return await holder(namespace) not in ("", than)

    await eventually(is_held, timeout_s=PATIENCE_S, every_s=0.1, what=f"somebody takes over from {than}")


async def uids(namespace: Namespace) -> dict[str, str]:
    """Job and pods by name."""
    found = [*await namespace.jobs(), *await namespace.pods()]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}


async def until_running(harness: LauncherHarness, allocation: str) -> None:
    """Also on a cluster that has much to do."""

    def is_running(seen: AllocationObserved) -> bool:
        return bool(seen.pods) and all(pod.state == "RUNNING" for pod in seen.pods)

    await harness.until(allocation, is_running, timeout_s=PATIENCE_S)


@asynccontextmanager
async def starting(harness: LauncherHarness) -> AsyncIterator[asyncio.Task[None]]:
    """Started, but perhaps not acting yet."""
    start = asyncio.create_task(harness.start())
    try:
        yield start
    finally:
        start.cancel()
        await asyncio.gather(start, return_exceptions=True)


async def test_one_acts_while_the_other_waits_without_watching_anything(
    idle: LauncherHarness, other: LauncherHarness, tmp_path: Path
) -> None:
    await idle.start()
    allocation = await idle.run(task())
    await until_running(idle, allocation)
    before = await uids(idle.namespace)
    async with faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (proxy, kubeconfig):
        other.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(kubeconfig))
        async with starting(other) as start:
            await eventually(lambda: lease_requests(proxy) >= 5, timeout_s=PATIENCE_S)
            assert not start.done()
            assert other.backend is None
            asked = {path.partition("?")[0] for _, _, path in proxy.requests if "/leases/" not in path}
            paths = idle.namespace.paths
            assert asked == {"/version", paths.namespace, paths.jobs}
            assert all(method == "GET" and "watch=" not in path for _, method, path in proxy.requests)
            idle.observations.clear()
            await idle.kill()  # as it ends when it is asked to: it gives the lease up
            await asyncio.wait_for(start, PATIENCE_S)
        await until_running(other, allocation)
        assert await uids(idle.namespace) == before
        await other.kill()


def lease_requests(proxy: FaultyProxy) -> int:
    return sum("/leases/" in path for _, _, path in proxy.requests)


async def test_the_lease_says_whose_it_is(idle: LauncherHarness) -> None:
    await idle.start()
    lease = await lease_of(idle.namespace)
    labels = lease["metadata"]["labels"]
    assert lease["metadata"]["name"].startswith("det-0a1b2c3d-pool-gpus-")
    assert labels["resolute/cluster-id"] == idle.settings.cluster_id
    assert lease["spec"]["leaseDurationSeconds"] == TIMES.lease_s
    first = lease["spec"]["renewTime"]

    async def is_renewed() -> bool:
        return bool((await lease_of(idle.namespace))["spec"]["renewTime"] > first)

    await eventually(is_renewed, timeout_s=PATIENCE_S)
    await idle.kill()
    assert await holder(idle.namespace) == ""


async def test_a_lease_that_has_changed_meanwhile_is_given_up_all_the_same(idle: LauncherHarness) -> None:
    slow = StandbySettings(lease_s=600, renew_deadline_s=500.0, retry_s=300.0)
    idle.settings = msgspec.structs.replace(idle.settings, standby=slow)
    await idle.start()
    path = f"{idle.namespace.paths.leases}/{(await lease_of(idle.namespace))['metadata']['name']}"
    await idle.namespace.api.patch(path, {"metadata": {"labels": {"seen-by": "somebody"}}})
    await idle.kill()
    assert await holder(idle.namespace) == ""


@contextmanager
def processes(
    harness: LauncherHarness, bus_url: str, directory: Path, standby: StandbySettings
) -> Iterator[list[ServiceProcess]]:
    """Two launchers of the same pool, not started yet."""
    env = {f"RESOLUTE_KUBERNETES__STANDBY__{key.upper()}": str(value) for key, value in times(standby).items()}
    with ExitStack() as stack:
        made = []
        for name in ("one", "two"):
            (directory / name).mkdir()
            launcher = service(harness, bus_url, directory / name, **env)
            stack.callback(launcher.kill)
            made.append(launcher)
        yield made


def times(standby: StandbySettings) -> Json:
    return {name: getattr(standby, name) for name in standby.__struct_fields__}


async def until_said(launcher: ServiceProcess, what: str, count: int = 1) -> None:
    await eventually(lambda: launcher.log().count(what) >= count, timeout_s=PATIENCE_S, every_s=0.1, what=what)


async def test_when_the_holder_is_killed_the_other_takes_over_and_no_task_notices(
    idle: LauncherHarness, bus_settings: BusSettings, tmp_path: Path
) -> None:
    with processes(idle, bus_settings.url, tmp_path, TIMES) as (one, two):
        one.start()
        await until_said(one, "launcher.started")
        running = await idle.run(task())
        ending = await idle.run(task(notes={"run-seconds": "8", "exit-code": "7"}))
        await until_running(idle, running)
        await idle.until_begun(ending)
        two.start()
        await until_said(two, "lease.standing_by")
        first = await holder(idle.namespace)
        before = await uids(idle.namespace)
        one.kill()
        new = await idle.run(task())
        assert await holder(idle.namespace) == first
        await until_running(idle, new)
        assert "launcher.started" in two.log()
        assert await holder(idle.namespace) != first
        ended = await idle.until_ended(ending, timeout_s=PATIENCE_S)
        assert [(pod.exit_code, pod.failure) for pod in ended.pods] == [(7, "FAILED")]
        now = await uids(idle.namespace)
        assert before.items() <= now.items()
        jobs = await idle.namespace.jobs()
        assert sorted(job["metadata"]["labels"]["determined"] for job in jobs) == sorted([running, ending, new])

        # The one that was killed comes back, and waits; then it is its turn.
        one.start()
        await until_said(one, "lease.standing_by")
        two.kill()
        await until_said(one, "launcher.started", 2)
        await idle.withdraw(running)
        await idle.withdraw(ending)
        await idle.withdraw(new)
        await idle.namespace.until_empty()


async def test_a_holder_that_is_started_again_after_kill_9_goes_on_at_once(
    idle: LauncherHarness, bus_settings: BusSettings, tmp_path: Path
) -> None:
    with processes(idle, bus_settings.url, tmp_path, LONG) as (one, two):
        one.start()
        await until_said(one, "launcher.started")
        first = await lease_of(idle.namespace)
        two.start()
        await until_said(two, "lease.standing_by")
        one.restart()
        await until_said(one, "launcher.started", 2)
        again = await lease_of(idle.namespace)
        for same in ("holderIdentity", "acquireTime", "leaseTransitions"):
            assert again["spec"][same] == first["spec"][same]
        assert "launcher.started" not in two.log()
        assert one.stop() == 0
        await until_said(two, "launcher.started")  # at once, for the lease was given up


async def test_a_holder_that_was_frozen_changes_nothing_when_it_wakes_up(
    idle: LauncherHarness, other: LauncherHarness, bus_settings: BusSettings, tmp_path: Path
) -> None:
    async with faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (proxy, kubeconfig):
        idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(kubeconfig))
        with processes(idle, bus_settings.url, tmp_path, TIMES) as (one, _):
            one.start()
            await until_said(one, "launcher.started")
            frozen = await holder(idle.namespace)
            os.kill(one.pid, signal.SIGSTOP)
            async with starting(other) as start:
                await asyncio.wait_for(start, PATIENCE_S)
            assert await holder(idle.namespace) not in ("", frozen)
            allocation = await other.run(task())
            await until_running(other, allocation)
            await other.stop(allocation)  # something that the frozen one would like to do as well
            seen = len(proxy.requests)
            os.kill(one.pid, signal.SIGCONT)
            await eventually(lambda: one.returncode is not None, timeout_s=PATIENCE_S)
            assert one.returncode == 1
            assert "the lease could not be renewed" in one.log()
            assert [(method, path) for _, method, path in proxy.requests[seen:] if method != "GET"] == []
            await other.until_ended(allocation, timeout_s=PATIENCE_S)


async def test_a_holder_cut_off_from_the_api_server_stops_before_the_other_begins(
    idle: LauncherHarness, other: LauncherHarness, tmp_path: Path
) -> None:
    async with faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (proxy, kubeconfig):
        other.settings = idle.settings
        idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(kubeconfig))
        await idle.start()
        assert idle.backend is not None
        running = idle._running
        assert running is not None
        ours = await holder(idle.namespace)
        over = asyncio.Event()

        async def hang(_: web.Request) -> web.StreamResponse:
            await over.wait()
            return web.Response(status=503)

        proxy.fault = hang
        proxy.drop_watches()
        allocation = await idle.run(task())
        async with starting(other) as start:
            await until_held_by_another(idle.namespace, ours)
            taken_at = asyncio.get_running_loop().time()
            await asyncio.wait_for(start, PATIENCE_S)
        await until_running(other, allocation)
        await asyncio.wait([running], timeout=PATIENCE_S)
        over.set()
        assert isinstance(running.exception(), LeadershipLost)
        assert max(when for when, method, _ in proxy.requests if method != "GET") < taken_at
        assert len(await idle.namespace.jobs()) == 1


async def test_somebody_elses_lease_ends_us_at_once_and_other_changes_do_not(idle: LauncherHarness) -> None:
    await idle.start()
    running = idle._running
    assert running is not None
    path = f"{idle.namespace.paths.leases}/{(await lease_of(idle.namespace))['metadata']['name']}"
    ours = await holder(idle.namespace)
    await idle.namespace.api.patch(path, {"metadata": {"labels": {"seen-by": "somebody"}}})
    await idle.namespace.api.delete(path)

    async def is_back() -> bool:
        found = await idle.namespace.items(idle.namespace.paths.leases, "resolute/purpose=lease")
        return [item["spec"]["holderIdentity"] for item in found] == [ours]

    await eventually(is_back, timeout_s=PATIENCE_S, every_s=0.1)
    await idle.namespace.api.patch(path, {"metadata": {"labels": {"seen-by": "somebody"}}})
    version = (await lease_of(idle.namespace))["metadata"]["resourceVersion"]

    async def is_renewed() -> bool:
        return bool((await lease_of(idle.namespace))["metadata"]["resourceVersion"] != version)

    await eventually(is_renewed, timeout_s=PATIENCE_S, every_s=0.1)
    assert not running.done()
    await idle.namespace.api.patch(path, {"spec": {"holderIdentity": "somebody", "renewTime": None}})
    await asyncio.wait([running], timeout=PATIENCE_S)
    assert isinstance(running.exception(), LeadershipLost)
    assert "taken by somebody" in str(running.exception())
    assert await holder(idle.namespace) == "somebody"


async def test_without_the_right_to_leases_it_works_alone(idle: LauncherHarness) -> None:
    rules = yaml.safe_load((RIGHTS / "role.yaml").read_text())["rules"]
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{idle.namespace.name}/roles/resolute-launcher"
    await idle.namespace.api.patch(role, {"rules": [rule for rule in rules if "leases" not in rule["resources"]]})

    async def is_refused() -> bool:
        with structlog.testing.capture_logs() as said:
            await idle.start()
        if any(entry["event"] == "kubernetes.no_lease" for entry in said):
            return True
        await idle.kill()  # rights change a moment later
        return False

    await eventually(is_refused, timeout_s=PATIENCE_S)
    await until_running(idle, await idle.run(task()))
