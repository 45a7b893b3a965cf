"""Launchers that were killed while they made the objects of an allocation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from libs.events.orders import Order
from libs.events.subjects import ORDERS_BUCKET, order_key
from libs.ids import new_random_part
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.client.faulty import faulty_proxy
from tests.integration.launcher.backends.kubernetes.launcher_harness import Json, LauncherHarness, task

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]


@pytest.fixture
async def half_made(idle: LauncherHarness, tmp_path: Path) -> AsyncIterator[str]:
    """An allocation whose launcher got as far as its Job and its Secret, and was killed."""

    async def refuse_config_maps(request: web.Request) -> web.StreamResponse | None:
        is_last_step = request.method == "POST" and request.path.endswith("/configmaps")
        return web.json_response({"message": "not now"}, status=500) if is_last_step else None

    async with faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (proxy, kubeconfig):
        idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(kubeconfig))
        proxy.fault = refuse_config_maps
        await idle.start()
        allocation = await idle.run(task(notes={"start-seconds": "60"}))

        async def has_secret() -> bool:
            return bool(await idle.namespace.items(idle.namespace.paths.secrets, "determined"))

        await eventually(has_secret)
        await idle.kill()
        proxy.fault = None
        yield allocation
        await idle.kill()


async def only_job(harness: LauncherHarness) -> Json:
    (job,) = await harness.namespace.jobs()
    return job


async def until_whole(harness: LauncherHarness) -> None:
    async def is_whole() -> bool:
        return bool(await harness.namespace.items(harness.namespace.paths.config_maps, "determined"))

    await eventually(is_whole)


async def until_pods_are_of(harness: LauncherHarness, job: Json) -> None:
    async def is_so() -> bool:
        owners = {
            owner["uid"] for pod in await harness.namespace.pods() for owner in pod["metadata"]["ownerReferences"]
        }
        return owners == {job["metadata"]["uid"]}

    await eventually(is_so)


async def test_the_rest_is_made_for_the_job_that_is_there(idle: LauncherHarness, half_made: str) -> None:
    begun = await only_job(idle)
    await idle.start()
    await until_whole(idle)
    assert (await only_job(idle))["metadata"]["uid"] == begun["metadata"]["uid"]
    for path in (idle.namespace.paths.config_maps, idle.namespace.paths.secrets):
        (made,) = await idle.namespace.items(path, "determined")
        assert made["metadata"]["ownerReferences"][0]["uid"] == begun["metadata"]["uid"]
    await idle.withdraw(half_made)
    await idle.namespace.until_empty()


async def test_what_other_settings_began_is_made_anew(idle: LauncherHarness, half_made: str) -> None:
    begun = await only_job(idle)
    idle.tasks = msgspec.structs.replace(idle.tasks, master_url="http://another-master:8080")
    await idle.start()
    await until_whole(idle)
    (job,) = [each for each in await idle.namespace.jobs() if each["metadata"]["uid"] != begun["metadata"]["uid"]]
    (config_map,) = await idle.namespace.items(idle.namespace.paths.config_maps, "determined")
    assert config_map["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    await until_pods_are_of(idle, job)
    await idle.stop(half_made)
    ended = await idle.until_ended(half_made)
    assert (ended.stopped, ended.failure) == (True, ""), "what became of the other Job's pods is not its end"
    await idle.withdraw(half_made)
    await idle.namespace.until_empty()


async def test_a_bucket_that_was_written_again_leaves_one_of_each(idle: LauncherHarness, half_made: str) -> None:
    """The random part of an order is drawn again when the bucket was lost: nothing of the former names stays."""
    begun = await only_job(idle)
    key = order_key(idle.pool, half_made)
    bucket = idle.bus.bucket(ORDERS_BUCKET)
    found = await bucket.get(key)
    assert found is not None
    former = msgspec.json.decode(found.value, type=Order)
    again = msgspec.structs.replace(former, random_part=new_random_part())
    await bucket.delete(key)
    await idle.order(again)
    await idle.start()
    await until_whole(idle)

    async def has_one_of_each() -> bool:
        made = [
            *(await idle.namespace.items(idle.namespace.paths.config_maps, "determined")),
            *(await idle.namespace.items(idle.namespace.paths.secrets, "determined")),
        ]
        return [each["metadata"]["name"].rpartition("-")[2] for each in made] == [again.random_part] * 2

    await eventually(has_one_of_each)
    assert (await only_job(idle))["metadata"]["uid"] != begun["metadata"]["uid"]
    await until_pods_are_of(idle, await only_job(idle))
    await idle.withdraw(half_made)
    await idle.namespace.until_empty()


async def test_it_is_removed_when_its_order_is_withdrawn(idle: LauncherHarness, half_made: str) -> None:
    await idle.withdraw(half_made)
    await idle.start()
    await idle.namespace.until_empty()


async def test_it_is_stopped_when_its_order_says_so(idle: LauncherHarness, half_made: str) -> None:
    await idle.stop(half_made)
    await idle.start()
    ended = await idle.until_ended(half_made)
    assert (ended.stopped, ended.failure) == (True, "")
    await idle.namespace.until_empty()


async def test_a_task_that_runs_does_not_need_its_config_map_any_more(harness: LauncherHarness) -> None:
    allocation = await harness.run(task(notes={"start-seconds": "1", "run-seconds": "3", "exit-code": "4"}))
    await harness.until_running(allocation)
    await harness.kill()
    job = await only_job(harness)
    await harness.namespace.api.delete(f"{harness.namespace.paths.config_maps}/{job['metadata']['name']}")
    await harness.start()
    ended = await harness.until_ended(allocation)
    assert [(pod.exit_code, pod.failure) for pod in ended.pods] == [(4, "FAILED")]
    assert (await only_job(harness))["metadata"]["uid"] == job["metadata"]["uid"]
    await harness.withdraw(allocation)
    await harness.namespace.until_empty()


async def test_a_stop_that_a_launcher_was_killed_over_was_a_stop(harness: LauncherHarness) -> None:
    allocation = await harness.run(task())
    await harness.until_running(allocation)

    async def is_written() -> bool:
        return bool(
            await harness.namespace.items(harness.namespace.paths.config_maps, "resolute/purpose=launch-record")
        )

    await eventually(is_written)
    await harness.kill()
    await harness.stop(allocation)
    job = await only_job(harness)
    path = harness.namespace.paths.job(job["metadata"]["name"])
    await harness.namespace.api.delete(path, {"propagationPolicy": "Background"})
    await harness.namespace.until_empty()
    harness.observations.clear()
    await harness.start()
    ended = await harness.until_ended(allocation)
    assert (ended.stopped, ended.failure) == (True, "")
