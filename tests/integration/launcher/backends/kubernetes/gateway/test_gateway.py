"""Ports of tasks on the internal task gateway: acceptance item A16."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from libs.bus import Bus, BusSettings
from libs.events.observations import Address, AllocationObserved
from libs.events.orders import ProxyPort
from services.launcher.backends.kubernetes.gateway.listeners import ALLOCATION_NOTE
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.client.faulty import faulty_proxy
from tests.integration.launcher.backends.kubernetes.gateway.gateways import (
    FIRST,
    MAX_LISTENERS,
    WEB,
    TestGateway,
    new_gateway,
    two_pools,
)
from tests.integration.launcher.backends.kubernetes.launcher_harness import (
    POOL,
    LauncherHarness,
    Namespace,
    env_of,
    open_place,
    task,
)
from tests.integration.launcher.backends.kubernetes.launcher_process import service

pytestmark = pytest.mark.cluster


@pytest.fixture
async def gateway(kubeconfig: Path, namespace: Namespace, idle: LauncherHarness) -> AsyncIterator[TestGateway]:
    """A Gateway that the launcher of ``idle`` uses."""
    async with new_gateway(kubeconfig, namespace) as made:
        made.use(idle)
        yield made


def proxied(*ports: int, **fields: Any) -> Any:
    """A task whose ports are to be proxied."""
    return task(proxy_ports=tuple(ProxyPort(service_id=f"s:{port}", port=port) for port in ports), **fields)


def host_ports(seen: AllocationObserved) -> list[int]:
    return [address.host_port for pod in seen.pods for address in pod.proxied]


async def until_listed(gateway: TestGateway, ports: list[int]) -> None:
    async def is_listed() -> bool:
        return await gateway.ports() == ports

    try:
        await eventually(is_listed, every_s=0.1)
    except AssertionError as error:
        raise AssertionError(f"listeners are {await gateway.ports()}") from error


async def until_proxied(harness: LauncherHarness, allocation: str, *, timeout_s: float = 30) -> AllocationObserved:
    """Until a task runs and its ports are known; simulated nodes do not wait for the files of a pod."""

    def is_so(seen: AllocationObserved) -> bool:
        return bool(host_ports(seen)) and all(pod.state == "RUNNING" for pod in seen.pods)

    return await harness.until(allocation, is_so, timeout_s=timeout_s)


async def until_complete(harness: LauncherHarness, allocation: str) -> None:
    """Until everything of an allocation was made."""

    async def is_complete() -> bool:
        return bool(await harness.namespace.items(harness.namespace.paths.config_maps, f"determined={allocation}"))

    await eventually(is_complete)


async def test_a_task_has_listeners_services_and_routes_until_it_ends(
    idle: LauncherHarness, gateway: TestGateway
) -> None:
    await idle.start()
    allocation = await idle.run(proxied(8888, 6006))
    seen = await until_proxied(idle, allocation)
    await until_complete(idle, allocation)
    ports = [FIRST, FIRST + 2]  # what is between them is somebody else's
    assert seen.pods[0].proxied == tuple(
        Address(container_ip="192.0.2.7", container_port=port, host_ip="192.0.2.7", host_port=at)
        for port, at in zip((8888, 6006), ports, strict=True)
    )
    everywhere = {"namespaces": {"from": "All"}}
    assert await gateway.listeners() == [
        WEB,
        *({"name": f"det-{at}", "port": at, "protocol": "TCP", "allowedRoutes": everywhere} for at in ports),
    ]
    notes = await gateway.notes()
    assert {f"{ALLOCATION_NOTE}{at}": allocation for at in ports}.items() <= notes.items()
    assert notes["owner"] == "network team"

    (job,) = await idle.namespace.jobs()
    name = job["metadata"]["name"]
    assert env_of(job)["DET_PROXY_THROUGH_GATEWAY"]["value"] == "true"
    services = await idle.namespace.items(idle.namespace.paths.services)
    for index, (service_, route) in enumerate(zip(services, await gateway.routes(), strict=True)):
        assert service_["metadata"]["name"] == route["metadata"]["name"] == f"{name}-{index}"
        for made in (service_, route):
            assert made["metadata"]["labels"]["determined"] == allocation
            assert made["metadata"]["annotations"]["determined.ai/job-name"] == name
            assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]]
        task_port = (8888, 6006)[index]
        assert service_["spec"]["type"] == "ClusterIP"
        assert [(port["protocol"], port["port"]) for port in service_["spec"]["ports"]] == [("TCP", task_port)]
        at = ports[index]
        parent = {"namespace": gateway.home.name, "name": gateway.name, "port": at, "sectionName": f"det-{at}"}
        backend = {"kind": "Service", "name": f"{name}-{index}", "port": task_port}
        assert route["spec"] == {"parentRefs": [parent], "rules": [{"backendRefs": [backend]}]}

    await idle.stop(allocation, grace_s=1)
    await idle.until_ended(allocation)
    await idle.withdraw(allocation)
    await gateway.until_free()
    await idle.namespace.until_empty()


async def test_ports_run_out_with_words_and_come_back(idle: LauncherHarness, gateway: TestGateway) -> None:
    gateway.use(idle, gateway_port_range_start=FIRST, gateway_port_range_end=FIRST + 2)
    await idle.start()
    first = await idle.run(proxied(8888))
    await until_proxied(idle, first)
    second = await idle.run(proxied(8888, 6006))
    ended = await idle.until_ended(second)
    assert (ended.failure, ended.message) == (
        "LAUNCH_ERROR",
        f"adding 2 listeners to gateway: updating gateway with name 'tasks': "
        f"not enough free ports in range {FIRST}-{FIRST + 2}",
    )
    await idle.withdraw(second)
    await idle.stop(first, grace_s=1)
    await idle.until_ended(first)
    await idle.withdraw(first)
    await gateway.until_free()
    third = await idle.run(proxied(8888, 6006))
    assert host_ports(await until_proxied(idle, third)) == [FIRST, FIRST + 2]


async def test_more_listeners_than_a_gateway_has_room_for(idle: LauncherHarness, gateway: TestGateway) -> None:
    others = [{"name": f"other-{port}", "port": port, "protocol": "UDP"} for port in range(1, MAX_LISTENERS - 1)]
    await gateway.change(listeners=[WEB, *others])
    await idle.start()
    allocation = await idle.run(proxied(8888, 6006))
    ended = await idle.until_ended(allocation)
    assert ended.failure == "LAUNCH_ERROR"
    assert ended.message.startswith("adding 2 listeners to gateway: updating gateway with name 'tasks': ")
    assert str(MAX_LISTENERS) in ended.message
    await idle.withdraw(allocation)
    await idle.namespace.until_empty()
    assert await gateway.listeners() == [WEB, *others]


async def test_without_the_gateway_only_tasks_with_ports_fail(idle: LauncherHarness, gateway: TestGateway) -> None:
    gateway.use(idle, gateway_name="nowhere")
    await idle.start()
    allocation = await idle.run(proxied(8888))
    ended = await idle.until_ended(allocation)
    assert "adding 1 listeners to gateway: updating gateway with name 'nowhere': " in ended.message
    assert '"nowhere" not found' in ended.message
    await idle.withdraw(allocation)
    await idle.until_running(await idle.run(task()))


async def test_a_task_of_several_pods_is_not_proxied_and_told_so(idle: LauncherHarness, gateway: TestGateway) -> None:
    await idle.start()
    allocation = await idle.run(proxied(8888, slots=8, num_pods=2))
    seen = await idle.until_running(allocation, 2)
    assert host_ports(seen) == []
    assert [text for text in idle.text(allocation) if "did not proxy" in text] == [
        "did not proxy as expected 0 (found addrs [], requested 1):"
        " a task of several pods cannot be reached through the gateway"
    ]
    assert await gateway.listeners() == [WEB]
    assert await idle.namespace.items(idle.namespace.paths.services) == []


async def test_two_launchers_never_share_a_port(
    idle: LauncherHarness, bus: Bus, bus_settings: BusSettings, gateway: TestGateway, tmp_path: Path
) -> None:
    """Two processes, many tasks at once, and somebody who edits the Gateway just before every second edit of theirs."""
    pools = (POOL, "others")
    idle.cluster = two_pools(*pools)
    gateway.use(idle)
    edits = 0

    async def edit_first(request: web.Request) -> web.StreamResponse | None:
        nonlocal edits
        if request.method == "PUT":
            edits += 1
            if edits % 2:
                await gateway.change(notes={"edited": str(edits)})
        return None

    async with (
        faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (proxy, kubeconfig),
        open_place(bus, idle.namespace, kubeconfig) as other,
    ):
        proxy.fault = edit_first
        idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(kubeconfig))
        other.pool = pools[1]
        launchers = []
        for pool in pools:
            (tmp_path / pool).mkdir()
            launchers.append(service(idle, bus_settings.url, tmp_path / pool, RESOLUTE_POOL=pool))
        try:
            for launcher in launchers:
                launcher.start()
            allocations = [
                (harness, await harness.run(proxied(8888, 6006))) for _ in range(4) for harness in (idle, other)
            ]
            seen = [await until_proxied(harness, allocation) for harness, allocation in allocations]
            for harness, allocation in allocations:
                await until_complete(harness, allocation)
            ports = list(chain.from_iterable(map(host_ports, seen)))
            assert len(ports) == len(set(ports)) == 16
            assert sorted(ports) == await gateway.ports() == [FIRST, *range(FIRST + 2, FIRST + 17)]
            assert edits >= 2 * len(allocations)
            assert "gateway.conflict" in launchers[0].log() + launchers[1].log()
            assert len(await gateway.routes()) == 16
            for harness, allocation in allocations:
                await harness.stop(allocation, grace_s=1)
            for harness, allocation in allocations:
                await harness.until_ended(allocation, timeout_s=40)
                await harness.withdraw(allocation)
            await gateway.until_free()
        finally:
            for launcher in launchers:
                launcher.stop()


async def test_after_kill_9_the_addresses_are_told_again(
    idle: LauncherHarness, bus_settings: BusSettings, gateway: TestGateway, tmp_path: Path
) -> None:
    launcher = service(idle, bus_settings.url, tmp_path)
    launcher.start()
    try:
        allocation = await idle.run(proxied(8888, 6006))
        before = await until_proxied(idle, allocation)
        await until_complete(idle, allocation)
        listeners = await gateway.listeners()
        launcher.kill()
        idle.observations.clear()
        launcher.start()
        after = await idle.until_running(allocation)
        assert after.pods[0].proxied == before.pods[0].proxied
        # It is not told without them in between either: whoever proxies would lose its way.
        assert all(host_ports(seen) for seen in idle.told(allocation))
        assert await gateway.listeners() == listeners
        await idle.stop(allocation, grace_s=1)
        await idle.until_ended(allocation)
        await idle.withdraw(allocation)
        await gateway.until_free()
    finally:
        launcher.stop()


async def test_a_gateway_that_cannot_be_read_at_the_start_is_read_later(
    idle: LauncherHarness, gateway: TestGateway, tmp_path: Path
) -> None:
    await idle.start()
    allocation = await idle.run(proxied(8888))
    await until_proxied(idle, allocation)
    await until_complete(idle, allocation)
    await idle.kill()
    idle.observations.clear()
    async with faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (proxy, kubeconfig):

        async def is_away(request: web.Request) -> web.StreamResponse | None:
            if "/gateways/" not in request.path:
                return None
            return web.json_response({"kind": "Status", "message": "not now"}, status=500)

        proxy.fault = is_away
        idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(kubeconfig))
        await idle.start()
        seen = await idle.until_running(allocation)
        assert host_ports(seen) == []
        proxy.fault = None
        seen = await idle.until(allocation, lambda told: bool(host_ports(told)))
        assert host_ports(seen) == [FIRST]
        await idle.kill()


async def test_ports_of_what_ended_while_nobody_looked_are_freed_and_no_others(
    idle: LauncherHarness, gateway: TestGateway
) -> None:
    await idle.start()
    gone, kept = await idle.run(proxied(8888)), await idle.run(proxied(8888))
    await until_proxied(idle, gone)
    (port,) = host_ports(await until_proxied(idle, kept))
    for allocation in (gone, kept):
        await until_complete(idle, allocation)
    await idle.kill()
    (job,) = await idle.namespace.jobs(f"determined={gone}")
    path = idle.namespace.paths.job(job["metadata"]["name"])
    await idle.namespace.api.delete(path, {"propagationPolicy": "Background"})
    await idle.withdraw(gone)
    # Of another installation: of the reference, which says nothing but which allocation it is for.
    theirs = {"name": f"det-{FIRST + 100}", "port": FIRST + 100, "protocol": "TCP"}
    await gateway.change(
        notes={f"{ALLOCATION_NOTE}{FIRST + 100}": gone}, listeners=[*await gateway.listeners(), theirs]
    )
    await idle.start()
    await until_listed(gateway, [port, FIRST + 100])
    assert (await gateway.notes())[f"{ALLOCATION_NOTE}{FIRST + 100}"] == gone
    assert [route["metadata"]["labels"]["determined"] for route in await gateway.routes()] == [kept]
    await idle.stop(kept, grace_s=1)
    await idle.until_ended(kept)
    await idle.withdraw(kept)
    await until_listed(gateway, [FIRST + 100])
    assert theirs in await gateway.listeners()


@pytest.mark.parametrize("is_withdrawn", [True, False], ids=["withdrawn", "wanted"])
@pytest.mark.parametrize("held", ["/services", "/tcproutes", "/configmaps"])
async def test_killed_between_the_listeners_and_what_leads_to_them(
    idle: LauncherHarness, gateway: TestGateway, tmp_path: Path, held: str, is_withdrawn: bool
) -> None:
    direct = idle.settings
    reached = asyncio.Event()

    async def hold(request: web.Request) -> web.StreamResponse | None:
        if request.method == "POST" and request.path.endswith(held):
            reached.set()
            await asyncio.sleep(60)
        return None

    async with faulty_proxy(Path(direct.kubeconfig or ""), tmp_path) as (proxy, kubeconfig):
        idle.settings = msgspec.structs.replace(direct, kubeconfig=str(kubeconfig))
        await idle.start()
        proxy.fault = hold
        # As if its node waited for its files, which a simulated one does not.
        allocation = await idle.run(proxied(8888, 6006, notes={"start-seconds": "600"}))
        await asyncio.wait_for(reached.wait(), 20)
        assert await gateway.ports() == [FIRST, FIRST + 2]
        await idle.kill()
    if is_withdrawn:
        await idle.withdraw(allocation)
    idle.settings = direct
    await idle.start()
    if not is_withdrawn:
        await until_complete(idle, allocation)
        seen = await idle.until(allocation, lambda told: bool(host_ports(told)))
        assert host_ports(seen) == await gateway.ports() == [FIRST, FIRST + 2]
        assert len(await gateway.routes()) == 2
        await idle.stop(allocation, grace_s=1)
        await idle.until_ended(allocation)
        await idle.withdraw(allocation)
    await gateway.until_free()
    await idle.namespace.until_empty()
