"""Jobs whose creation an API server that the test plays did not answer; needs no cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from libs.clock import SystemClock
from libs.events.orders import Order
from services.launcher.backends.kubernetes.allocations.reactions import Reactions
from services.launcher.backends.kubernetes.allocations.teardown import Teardown
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.backend import KubernetesBackend
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.client.api import KubeApi
from services.launcher.backends.kubernetes.client.objects import Job
from services.launcher.backends.kubernetes.creation import creation as attempts
from services.launcher.backends.kubernetes.creation.creation import Creation
from services.launcher.container.settings import TaskSettings
from services.launcher.container.trust import TaskTrust
from services.launcher.reconcile import Existence
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.client.faulty import Json, serving
from tests.unit.launcher.backends.kubernetes.builders import CLUSTER_ID, Listener, traits
from tests.unit.launcher.specs import task

ORDER = Order(allocation="1.x.1", pool="default", desired="run", spec=task(nodes=("ns1-0",)))


class Server:
    """Has Jobs only. The first that it is asked for is made or not, and the connection breaks before the answer."""

    def __init__(self, *, makes_it: bool, later: int = 201) -> None:
        self.jobs: dict[str, Json] = {}
        self.asked: list[str] = []
        self.deleted: list[Json] = []
        self._makes_it = makes_it
        self._later = later
        """Status of every other request to make something."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.method)
        name = request.path.rpartition("/")[2]
        if request.method == "POST" and self.asked.count("POST") == 1:
            body = await request.json()
            name = body["metadata"]["name"]
            if self._makes_it:
                self.jobs[name] = {**body, "metadata": {**body["metadata"], "uid": "uid-job", "namespace": "ns1"}}
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if request.method == "POST":
            return web.json_response({"message": "quota"}, status=self._later)
        if name not in self.jobs:
            return web.json_response({"reason": "NotFound"}, status=404)
        if request.method == "DELETE":
            self.deleted.append(self.jobs.pop(name))
            return web.json_response({})
        return web.json_response(self.jobs[name])


class Launcher:
    """One that has ordered ``ORDER``, got no answer, and pauses until the test has it try ``again``."""

    def __init__(self, backend: KubernetesBackend, tracker: Tracker, creation: Creation) -> None:
        self.backend = backend
        self._tracker = tracker
        self._creation = creation

    @property
    def existence(self) -> Existence:
        return self._tracker.existing[ORDER.allocation]

    def again(self) -> None:
        self._creation.put(self._tracker.allocations[ORDER.allocation], ORDER)

    async def until_gone(self) -> None:
        await eventually(lambda: self.existence is Existence.ENDED)

    def see_deleted(self, job: Json) -> None:
        self._tracker.on_job_deleted(msgspec.convert(job, Job))


@asynccontextmanager
async def paused(server: Server) -> AsyncIterator[Launcher]:
    nothing: Any = None

    async def prepare(_namespace: str) -> None:
        return

    async def no_class(_spec: object) -> None:
        return

    async with AsyncExitStack() as stack:
        configuration = Configuration(host=await stack.enter_async_context(serving(server.handle)))

        async def credentials() -> Configuration:
            return configuration

        api = KubeApi(configuration, credentials=credentials, max_requests=4, timeout_s=30)
        stack.push_async_callback(api.close)
        background = await stack.enter_async_context(Background())
        tracker = Tracker(pool="default", clock=SystemClock(), stuck_grace_s=60, listener=Listener())
        stack.callback(tracker.close)
        namespaces: Any = SimpleNamespace(own="ns1", prepare=prepare)
        settings = TaskSettings(master_url="http://master:8080", log_intake_url="http://logs:8090")
        creation = Creation(
            api,
            namespaces=namespaces,
            traits=traits(),
            trust=TaskTrust(settings),
            tracker=tracker,
            priority_class_of=no_class,
            created=lambda _tracked: None,
            background=background,
        )
        teardown = Teardown(api, tracker=tracker, launcher="mine", sidecar_grace_s=0, log_delivery_s=1)
        background.create_task(Reactions(teardown, tracker, background).run(), name="reactions")
        background.create_task(creation.work(), name="creator")
        backend = KubernetesBackend(
            cluster_id=CLUSTER_ID,
            tracker=tracker,
            creation=creation,
            teardown=teardown,
            namespaces=namespaces,
            capacity_tracker=nothing,
            launch_record=nothing,
            cluster_admin=nothing,
            placeholders=nothing,
            clock=SystemClock(),
        )
        await backend.start(ORDER)

        def is_put_off() -> bool:
            return any(each.get_name() == f"again {ORDER.allocation}" for each in asyncio.all_tasks())

        await eventually(is_put_off)
        await asyncio.sleep(0)  # it has begun to pause
        yield Launcher(backend, tracker, creation)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 3600.0)


async def test_a_job_that_was_made_without_an_answer_is_stopped_before_it_is_gone() -> None:
    server = Server(makes_it=True)
    async with paused(server) as launcher:
        await launcher.backend.stop(ORDER.allocation, grace_s=1, ordered=True)
        assert launcher.existence is Existence.LIVE
        launcher.again()
        await eventually(lambda: bool(server.deleted))
        assert launcher.existence is Existence.LIVE
        launcher.see_deleted(server.deleted[0])
        await launcher.until_gone()
    assert server.asked.count("POST") == 1, "nothing more was made of it"


async def test_a_job_that_was_not_made_is_gone_once_somebody_has_looked() -> None:
    server = Server(makes_it=False)
    async with paused(server) as launcher:
        await launcher.backend.stop(ORDER.allocation, grace_s=1, ordered=True)
        assert launcher.existence is Existence.LIVE
        launcher.again()
        await launcher.until_gone()
    assert server.asked == ["POST", "GET"]


async def test_a_job_that_was_made_without_an_answer_is_taken_back_when_the_next_attempt_is_refused() -> None:
    server = Server(makes_it=True, later=403)
    async with paused(server) as launcher:
        launcher.again()
        await launcher.until_gone()
    assert (len(server.deleted), server.jobs) == (1, {})


async def test_who_sees_no_nodes_binds_pods_to_none() -> None:
    """Those that the order names are what this launcher assumes, and no node of the cluster has the name."""
    server = Server(makes_it=True)
    async with paused(server):
        [job] = server.jobs.values()
        affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        assert "metadata.name" not in str(affinity)
