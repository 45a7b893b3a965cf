"""200 allocations live and end while their launcher is killed at random moments, again and again.

The moments are drawn from a seed: shortly after the launcher began, at any time, and right before or after any of its
requests is carried out. The seed is the same every time, as far as a cluster repeats anything; RESOLUTE_TEST_SEED is
another.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import dropwhile
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from libs.bus import Bus, BusSettings, CoreMessage
from libs.events.observations import AllocationObserved
from libs.events.subjects import observed_by
from libs.run_until_first_exits import end
from services.launcher.backends.kubernetes.client.informer import Informer
from services.launcher.backends.kubernetes.client.objects import Job, Pod
from services.launcher.backends.kubernetes.manifests.names import PURPOSE_LABEL
from services.scheduler.allocations.observation import ended
from tests.harness.processes import ServiceProcess
from tests.harness.seeds import chance
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.allocations.lives import Life, draw
from tests.integration.launcher.backends.kubernetes.client.faulty import FaultyProxy, faulty_proxy
from tests.integration.launcher.backends.kubernetes.launcher_harness import LauncherHarness, Namespace, task
from tests.integration.launcher.backends.kubernetes.launcher_process import service

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

LIVES = 200
KILLS = 36
ROOT_CA = "kube-root-ca.crt"
ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
PATIENCE_S = 240.0
"""For everything to end once nobody kills any more; a quiet machine needs a few seconds."""


async def test_no_allocation_is_lost_doubled_or_left_behind(
    idle: LauncherHarness, bus: Bus, bus_settings: BusSettings, tmp_path: Path
) -> None:
    rng = chance()
    lives = [draw(rng) for _ in range(LIVES)]
    async with (
        faulty_proxy(Path(idle.settings.kubeconfig or ""), tmp_path) as (proxy, kubeconfig),
        history_of(idle.namespace) as history,
        told_on(bus) as told,
    ):
        idle.settings = msgspec.structs.replace(idle.settings, kubeconfig=str(kubeconfig))
        launcher = service(idle, bus_settings.url, tmp_path, RESOLUTE_KUBERNETES__STUCK_GRACE_S="1")
        killer = Killer(launcher, proxy, rng, log=tmp_path / "launcher.log")
        try:
            async with asyncio.TaskGroup() as tasks:
                births = sorted(rng.uniform(0, KILLS * 0.9) for _ in lives)
                living = {
                    tasks.create_task(live(life, idle, told, killer, birth=birth)): life
                    for life, birth in zip(lives, births, strict=True)
                }
                await killer.run()
                _, missing = await asyncio.wait(living, timeout=PATIENCE_S)
                assert not missing, f"never ended: {[living[task].kind for task in missing]}"
            await idle.namespace.until_empty(timeout_s=PATIENCE_S)
            assert await unlabelled(idle.namespace) == []
        finally:
            launcher.stop()
    lived = {task.result(): life for task, life in living.items()}
    wrong = [(life, told.in_order(each)) for each, life in lived.items() if not told.is_true_to(life, each)]
    assert not wrong, "\n\n".join(f"{life.kind}:\n{_in_short(seen)}" for life, seen in wrong)
    twice = {allocation: uids for allocation, uids in history.jobs.items() if len(uids) > 1}
    assert not twice, "more than one Job was made"
    most = {allocation: (life.kind, history.most_at_once[allocation]) for allocation, life in lived.items()}
    too_many = {each: found for each, found in most.items() if found[1] > lived[each].num_pods}
    assert not too_many, "more pods ran at once than were ordered"


async def unlabelled(namespace: Namespace) -> list[str]:
    """What is in a namespace that belongs neither to Kubernetes nor to the launcher itself."""
    paths = namespace.paths
    found = []
    for path in (paths.jobs, paths.pods, paths.services):
        found += await namespace.items(path)
    found += [item for item in await namespace.items(paths.config_maps) if item["metadata"]["name"] != ROOT_CA]
    found += [item for item in await namespace.items(paths.secrets) if item["type"] != ACCOUNT_TOKEN]
    return [item["metadata"]["name"] for item in found if PURPOSE_LABEL not in item["metadata"].get("labels", {})]


async def live(life: Life, harness: LauncherHarness, told: Told, killer: Killer, *, birth: float) -> str:
    """What a scheduler does for an allocation from its first order to the withdrawal of the last; returns its id."""
    await killer.until_round(birth)
    allocation = await harness.run(task(notes=life.notes, num_pods=life.num_pods))
    if life.withdraw_after_s is not None:
        await asyncio.sleep(life.withdraw_after_s)
        await harness.withdraw(allocation)
        return allocation
    if life.stop_after_s is not None:
        await asyncio.sleep(life.stop_after_s)
        await harness.stop(allocation, grace_s=2)
    await told.until_gone(allocation)
    await asyncio.sleep(life.rest_s)
    told.stop_listening(allocation)
    await harness.withdraw(allocation)
    return allocation


def _in_short(told: list[AllocationObserved]) -> str:
    return "\n".join(
        f"  {'gone' if seen.gone else 'there'}{' stopped' if seen.stopped else ''} {seen.failure} {seen.message} "
        + str([f"{pod.name[-5:]} {pod.state} {pod.exit_code} {pod.failure} {pod.message}" for pod in seen.pods])
        for seen in told
    )


class Killer:
    """Starts the launcher, kills it at a random moment, and again; in the end lets it work in peace."""

    def __init__(self, launcher: ServiceProcess, proxy: FaultyProxy, rng: random.Random, *, log: Path) -> None:
        self._launcher = launcher
        self._proxy = proxy
        self._rng = rng
        self._log = log
        self._log_read = 0
        self._is_killed = False
        self._round = 0.0
        self._began = asyncio.Condition()

    async def run(self) -> None:
        for number in range(KILLS):
            await self._start(number)
            moment = self._rng.choice([self._soon, self._some_time, self._at_a_request, self._at_a_request])
            await moment()
            self._kill()
        await self._start(KILLS)
        await self._until_open()

    async def until_round(self, birth: float) -> None:
        """Wait for a moment in the middle of a round."""
        async with self._began:
            await self._began.wait_for(lambda: self._round >= int(birth))
        await asyncio.sleep(birth % 1)

    async def _start(self, number: int) -> None:
        # An API server carries out at once what it has got. The proxy may be slower than a launcher that starts, which
        # then could not know of what the one before has asked.
        await asyncio.sleep(0.1)
        await eventually(lambda: not self._proxy.changes)
        self._log_read = self._log.stat().st_size if self._log.exists() else 0
        self._is_killed = False
        self._launcher.start()
        async with self._began:
            self._round = number
            self._began.notify_all()

    def _kill(self) -> None:
        self._is_killed = True
        self._launcher.kill()

    async def _soon(self) -> None:
        await asyncio.sleep(self._rng.uniform(0, 2))

    async def _some_time(self) -> None:
        await self._until_open()
        await asyncio.sleep(self._rng.uniform(0, 2))

    async def _at_a_request(self) -> None:
        """Right before or after the server carries out the n-th request that changes anything."""
        left, is_before = self._rng.randint(1, 25), self._rng.random() < 0.5
        killed = asyncio.Event()

        def count(request: web.Request) -> None:
            nonlocal left
            left -= request.method != "GET"
            if left == 0:
                self._kill()
                killed.set()

        async def count_before(request: web.Request) -> web.StreamResponse | None:
            count(request)
            return web.Response(status=502) if killed.is_set() else None

        if is_before:
            self._proxy.fault = count_before
        else:
            self._proxy.answered = count
        opened = asyncio.create_task(self._until_open())
        try:
            dying = asyncio.create_task(killed.wait())
            await asyncio.wait([opened, dying], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([dying], timeout=2)
        finally:
            self._proxy.fault, self._proxy.answered = None, lambda _request: None
            await end(opened, dying)

    async def _until_open(self) -> None:
        """Until the launcher carries out orders."""

        def is_open() -> bool:
            assert self._launcher.is_running or self._is_killed, self._launcher.log()
            if not self._log.exists():
                return False
            with self._log.open("rb") as log:
                log.seek(self._log_read)
                news = log.read()
            self._log_read += news.rfind(b"\n") + 1
            return b"launcher.started" in news[: news.rfind(b"\n") + 1]

        await eventually(is_open, timeout_s=120, every_s=0.05)


class Told:
    """What the bus was told of every allocation."""

    def __init__(self) -> None:
        self._told: dict[str, list[AllocationObserved]] = defaultdict(list)
        self._over: set[str] = set()
        self._gone: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def hear(self, message: CoreMessage) -> None:
        seen = msgspec.json.decode(message.data, type=AllocationObserved)
        if seen.allocation not in self._over:
            self._told[seen.allocation].append(seen)
        if seen.gone:
            self._gone[seen.allocation].set()

    def stop_listening(self, allocation: str) -> None:
        """Nobody waits for news of it any more: its order is withdrawn."""
        self._over.add(allocation)

    async def until_gone(self, allocation: str) -> None:
        await self._gone[allocation].wait()

    def in_order(self, allocation: str) -> list[AllocationObserved]:
        return sorted(self._told[allocation], key=lambda seen: seen.revision)

    def is_true_to(self, life: Life, allocation: str) -> bool:
        """Whether what was told of the end is the truth, and nothing else was told from then on.

        Of a Job that is stopped before it has pods, its controller may make some when it is gone already, having read
        it before: they are seen, and go, and then it is told again that nothing is there.
        """
        seen = self.in_order(allocation)
        ends = list(dropwhile(lambda each: not ended(each, life.num_pods), seen))
        if ends and ends[0].stopped and not ends[0].pods:
            ends = [each for each in ends if each.gone]
        return life.withdraw_after_s is not None or (bool(ends) and all(map(life.is_true, ends)))


@asynccontextmanager
async def told_on(bus: Bus) -> AsyncIterator[Told]:
    told = Told()
    async with bus.subscribe(observed_by(), told.hear):
        yield told


class History:
    """What there ever was in a namespace, by allocation: the uids of its Jobs, and how many of its pods ran at once.

    The Job controller of Kubernetes before 1.23 replaces pods that are deleted, so more may run one after the other.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, set[str]] = defaultdict(set)
        self.most_at_once: dict[str, int] = defaultdict(int)
        self._running: dict[str, set[str]] = defaultdict(set)

    def on_upsert(self, item: Job | Pod) -> None:
        if isinstance(item, Job):
            self.jobs[item.metadata.labels.allocation].add(item.metadata.uid)
            return
        allocation = item.metadata.labels.allocation
        if item.status.phase == "Running" and item.metadata.deletion_timestamp is None:
            self._running[allocation].add(item.metadata.uid)
        else:
            self._running[allocation].discard(item.metadata.uid)
        self.most_at_once[allocation] = max(self.most_at_once[allocation], len(self._running[allocation]))

    def on_delete(self, item: Job | Pod) -> None:
        self._running[item.metadata.labels.allocation].discard(item.metadata.uid)


@asynccontextmanager
async def history_of(namespace: Namespace) -> AsyncIterator[History]:
    history = History()
    query = {"labelSelector": "determined"}
    paths = namespace.paths
    jobs = Informer(namespace.api, what="jobs", path=paths.jobs, kind=Job, handler=history, query=query)
    pods = Informer(namespace.api, what="pods", path=paths.pods, kind=Pod, handler=history, query=query)
    watching = [asyncio.create_task(jobs.run()), asyncio.create_task(pods.run())]
    await asyncio.gather(jobs.synced.wait(), pods.synced.wait())
    try:
        yield history
    finally:
        await end(*watching)
