"""Counts calls to the API server, by a proxy on the way: of an allocation from order to removal, and of idleness."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from libs.events.observations import AllocationObserved
from services.launcher.backends.kubernetes.client.informer import WATCH_S
from services.launcher.backends.kubernetes.settings import StandbySettings
from tests.bench.kubernetes.site import GIVE_UP_S, BenchCluster, Site, open_site
from tests.bench.result import Result
from tests.integration.launcher.backends.kubernetes.client.faulty import FaultyProxy, faulty_proxy
from tests.integration.launcher.backends.kubernetes.launcher_harness import task

FEW, MANY = 40, 200
RUN_S = 2
SETTLE_S = 5
IDLE_S = 30
CREATES, DELETES = 3, 1
"""A Job, a Secret and a ConfigMap; with the Job goes everything."""
WATCHES = 6
"""Jobs, pods, events, quotas; nodes, and the pods of others."""
RENEWALS: Final = "lease"
"""Who of several launchers acts has to be said again and again, which is no polling; counted by itself."""


async def measure(bench: BenchCluster) -> list[Result]:
    async with open_site(bench) as site, faulty_proxy(site.kubeconfig, bench.directory) as (proxy, kubeconfig):
        await site.launch(kubeconfig=kubeconfig)
        start = _count(proxy)
        await _live(site, proxy, 1)  # what the first allocation needs is there for all others
        few = await _live(site, proxy, FEW)
        many = await _live(site, proxy, MANY)
        await _run(site, FEW)
        # Watches are all young then, and none ends by itself meanwhile.
        await site.launch(kubeconfig=kubeconfig)
        await asyncio.sleep(SETTLE_S)
        proxy.requests.clear()
        await asyncio.sleep(IDLE_S)
        idle = _count(proxy)
    each = {verb: (many[verb] - few[verb]) / (MANY - FEW) for verb in many}
    others = sum(calls for verb, calls in each.items() if verb not in ("POST", "DELETE", RENEWALS))
    per_minute = 60 / IDLE_S
    return [
        _row("calls of an allocation: creates", each["POST"], CREATES, goal=1.0),
        _row("calls of an allocation: deletes", each["DELETE"], DELETES, goal=1.0),
        _row("calls of an allocation: anything else", others, CREATES + DELETES, goal=None),
        _row("calls of a start, and what they read", start.total() - start[RENEWALS], 2 * WATCHES, goal=None),
        _row("calls of an idle minute", (idle.total() - idle[RENEWALS]) * per_minute, WATCHES * 60 / WATCH_S[0]),
        _row("lease renewals of a minute", idle[RENEWALS] * per_minute, 60 / StandbySettings().retry_s, goal=None),
    ]


def _row(name: str, value: float, baseline: float, *, goal: float | None = 1.0) -> Result:
    return Result(name=name, value=value, unit="calls", baseline=baseline, goal=goal, better="lower")


async def _live(site: Site, proxy: FaultyProxy, number: int) -> Counter[str]:
    """Calls while so many allocations are ordered, run, end and are removed."""
    proxy.requests.clear()
    ended: set[str] = set()
    all_ended = asyncio.Event()

    def saw(seen: AllocationObserved) -> None:
        if seen.gone:
            ended.add(seen.allocation)
        if len(ended) == number:
            all_ended.set()

    async with site.observing(saw), asyncio.timeout(GIVE_UP_S):
        allocations = await site.order([task(notes={"run-seconds": str(RUN_S)}) for _ in range(number)])
        await all_ended.wait()
        await site.withdraw(allocations)
        await site.namespace.until_empty(GIVE_UP_S)
    await asyncio.sleep(SETTLE_S)
    return _count(proxy)


async def _run(site: Site, number: int) -> None:
    """Order so many allocations that go on, and wait until they run."""
    async with site.running(number) as all_run:
        await site.order([task() for _ in range(number)])
        await all_run.wait()


def _count(proxy: FaultyProxy) -> Counter[str]:
    return Counter(RENEWALS if "/leases" in path else method for _, method, path in proxy.requests)
