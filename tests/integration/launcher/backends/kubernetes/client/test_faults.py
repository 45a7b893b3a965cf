"""A launcher whose way to the API server is bad: acceptance item A17, and that nothing is asked in vain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from tests.harness.seeds import chance
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.client.faulty import FaultyProxy, faulty_proxy
from tests.integration.launcher.backends.kubernetes.launcher_harness import LauncherHarness, task

pytestmark = pytest.mark.cluster


@pytest.fixture
async def proxy(idle: LauncherHarness, tmp_path: Path) -> AsyncIterator[FaultyProxy]:
    """Between the launcher of ``idle`` and the cluster."""
    async with faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (made, kubeconfig):
        idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(kubeconfig))
        await idle.start()
        yield made
        await idle.kill()


async def test_connections_that_break_lose_no_exit_and_tell_none_twice(
    idle: LauncherHarness, proxy: FaultyProxy
) -> None:
    allocations = [await idle.run(task(notes={"run-seconds": "1", "exit-code": str(code)})) for code in range(4)]
    for _ in range(15):
        await asyncio.sleep(0.15)
        proxy.drop_watches()
    for code, allocation in enumerate(allocations):
        ended = await idle.until_ended(allocation)
        assert [pod.exit_code for pod in ended.pods] == [code]
        ends = [seen for seen in idle.told(allocation) if seen.gone]
        assert len({msgspec.json.encode(msgspec.structs.replace(seen, revision=0)) for seen in ends}) == 1


async def test_versions_that_are_too_old(idle: LauncherHarness, proxy: FaultyProxy) -> None:
    allocation = await idle.run(task(notes={"run-seconds": "3"}))
    await idle.until_begun(allocation)
    gone = 0

    async def too_old(request: web.Request) -> web.StreamResponse | None:
        nonlocal gone
        if "watch=1" not in request.query_string or gone >= 6:
            return None
        gone += 1
        return web.json_response({"kind": "Status", "code": 410, "reason": "Expired"}, status=410)

    proxy.fault = too_old
    proxy.drop_watches()
    await eventually(lambda: gone == 6)
    ended = await idle.until_ended(allocation)
    assert [pod.exit_code for pod in ended.pods] == [0]


async def test_everything_at_once_and_again_and_again(idle: LauncherHarness, proxy: FaultyProxy) -> None:
    rng = chance()
    answered: set[int] = set()

    async def maybe(request: web.Request) -> web.StreamResponse | None:
        status = rng.choices([0, 429, 500, 503, 410], weights=[70, 8, 8, 8, 6])[0]
        if status == 410 and request.method != "GET":
            return None
        answered.add(status)
        headers = {"Retry-After": "0"} if status == 429 else {}
        body = {"kind": "Status", "code": status, "reason": "Expired" if status == 410 else "", "message": "not now"}
        return web.json_response(body, status=status, headers=headers) if status else None

    proxy.fault = maybe
    codes = [rng.choice([0, 1, 7]) for _ in range(30)]
    allocations = []
    for code in codes:
        notes = {"run-seconds": f"{rng.uniform(0, 2):.2f}", "exit-code": str(code)}
        allocations.append(await idle.run(task(notes=notes)))
        await asyncio.sleep(rng.uniform(0, 0.3))
        proxy.drop_watches()
    await eventually(lambda: answered == {0, 429, 500, 503, 410}, timeout_s=60)
    proxy.fault = None
    for code, allocation in zip(codes, allocations, strict=True):
        await idle.until_ended(allocation, timeout_s=120)
        ends = [seen for seen in idle.told(allocation) if seen.gone]
        assert {tuple((pod.exit_code, pod.failure) for pod in seen.pods) for seen in ends} == {
            ((code, "FAILED" if code else ""),)
        }
    for allocation in allocations:
        await idle.withdraw(allocation)
    await idle.namespace.until_empty(timeout_s=120)


async def test_a_server_that_fails_or_is_busy(idle: LauncherHarness, proxy: FaultyProxy) -> None:
    left = {500: 2, 503: 2, 429: 2}

    async def fail(request: web.Request) -> web.StreamResponse | None:
        status = next((status for status, count in left.items() if count), None)
        if request.method != "POST" or status is None:
            return None
        left[status] -= 1
        headers = {"Retry-After": "1"} if status == 429 else {}
        return web.json_response({"message": "not now"}, status=status, headers=headers)

    proxy.fault = fail
    allocation = await idle.run(task())
    await idle.until_running(allocation)
    assert not any(left.values())


async def test_answers_that_are_lost_make_nothing_twice(idle: LauncherHarness, proxy: FaultyProxy) -> None:
    proxy.loses_answers = True
    allocations = [await idle.run(task()) for _ in range(3)]

    async def are_made() -> bool:
        return len(await idle.namespace.jobs()) == 3

    await eventually(are_made, every_s=0.1)
    proxy.loses_answers = False
    for allocation in allocations:
        await idle.until_running(allocation)

    async def are_complete() -> bool:
        paths = idle.namespace.paths
        return all(
            [len(await idle.namespace.items(path, "determined")) == 3 for path in (paths.secrets, paths.config_maps)]
        )

    await eventually(are_complete, every_s=0.1)
    assert len(await idle.namespace.jobs()) == 3
    for allocation in allocations:
        await idle.withdraw(allocation)
    await idle.namespace.until_empty()


async def test_the_end_of_a_gang_is_written_down_when_the_server_is_back(
    idle: LauncherHarness, proxy: FaultyProxy
) -> None:
    allocation = await idle.run(task(slots=8, num_pods=2))
    seen = await idle.until_running(allocation, 2)
    refused = 0

    async def refuse_patches(request: web.Request) -> web.StreamResponse | None:
        nonlocal refused
        if request.method != "PATCH" or "/leases/" in request.path or refused >= 2:
            return None
        refused += 1
        return web.json_response({"message": "not now"}, status=500)

    proxy.fault = refuse_patches
    await idle.namespace.delete_pod(seen.pods[0].name)
    ended = await idle.until_ended(allocation)
    assert refused == 2
    assert "DELETED" in {pod.failure for pod in ended.pods}


def asked_lately(proxy: FaultyProxy) -> int:
    """Requests of the last second, but for those that keep the lease."""
    since = asyncio.get_running_loop().time() - 1.0
    return sum(at > since and "/leases/" not in path for at, _, path in proxy.requests)


async def test_nothing_is_asked_while_nothing_happens(idle: LauncherHarness, proxy: FaultyProxy) -> None:
    allocation = await idle.run(task())
    await idle.until_running(allocation)

    async def is_in_the_launch_record() -> bool:
        found = await idle.namespace.items(idle.namespace.paths.config_maps, "resolute/purpose=launch-record")
        return any(allocation in (launch_record.get("data") or {}) for launch_record in found)

    await eventually(is_in_the_launch_record, every_s=0.1)
    await eventually(lambda: asked_lately(proxy) == 0, every_s=0.1)
    before = len(proxy.requests)
    await asyncio.sleep(3)
    assert [request for request in proxy.requests[before:] if "/leases/" not in request[2]] == []
