"""Measures the time from many orders at once until all are observed running, against a bare loop.

In turns, each in an empty namespace; no launcher runs while the loop is measured. Each round begins with the other one,
so that what else the machine does hits both.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from libs.run_until_first_exits import end
from services.launcher.backends.kubernetes.client.connection import connect
from services.launcher.backends.kubernetes.client.objects import Pod
from services.launcher.backends.kubernetes.manifests.task_objects import manifests
from services.launcher.backends.kubernetes.wiring.configured_pool import configured_pool
from services.launcher.backends.kubernetes.wiring.pool_traits import pool_traits
from tests.bench.kubernetes import bare
from tests.bench.kubernetes.site import BenchCluster, Site, open_site, orders_of
from tests.bench.result import Result
from tests.integration.launcher.backends.kubernetes.launcher_harness import TASKS, cluster, task

ALLOCATIONS = 1000
ROUNDS = 3
MOST = 1.25


@dataclass(frozen=True)
class Took:
    wall_s: float
    cpu_s: float
    """Of the launcher, or of the loop with its watch."""


async def measure(bench: BenchCluster) -> list[Result]:
    ordered: list[Took] = []
    looped: list[Took] = []
    for number in range(ROUNDS):
        turns = [(_order, ordered), (_loop, looped)]
        for turn, took in turns if number % 2 == 0 else reversed(turns):
            async with open_site(bench) as site:
                took.append(await turn(site))
    return [
        Result(
            name=f"{ALLOCATIONS} orders until all run",
            # The best of each: what else the machine does only adds.
            value=min(took.wall_s for took in ordered),
            unit="s",
            baseline=min(took.wall_s for took in looped),
            goal=MOST,
            better="lower",
        ),
        Result(
            name="processor time of a launch",
            value=min(took.cpu_s for took in ordered) / ALLOCATIONS * 1e3,
            unit="ms",
            baseline=min(took.cpu_s for took in looped) / ALLOCATIONS * 1e3,
            goal=None,
            better="lower",
        ),
    ]


async def _order(site: Site) -> Took:
    await site.launch()
    specs = [task() for _ in range(ALLOCATIONS)]
    async with site.running(ALLOCATIONS) as all_run:
        cpu_before, started_at = site.launcher_cpu_s(), time.perf_counter()
        await site.order(specs)
        await all_run.wait()
        return Took(time.perf_counter() - started_at, site.launcher_cpu_s() - cpu_before)


async def _loop(site: Site) -> Took:
    config, settings = cluster(), site.settings
    (pool,) = config.resource_pools
    configured = configured_pool(pool.pool_name, settings=settings, cluster=config)
    traits = pool_traits(configured, tasks=TASKS, version=(1, 20), wheels=None)
    made = [manifests(order, traits) for order in orders_of([task() for _ in range(ALLOCATIONS)])]
    running: set[str] = set()
    all_run = asyncio.Event()

    def saw(pod: Pod) -> None:
        if pod.status.phase == "Running":
            running.add(pod.metadata.name)
        if len(running) == ALLOCATIONS:
            all_run.set()

    async with connect(settings) as api:
        follow = bare.watch_pods(api, site.namespace.paths, saw)
        await follow.read_list()
        watching = asyncio.create_task(follow.run())
        try:
            cpu_before, started_at = time.process_time(), time.perf_counter()
            await bare.create(api, site.namespace.paths, made, workers=settings.creators)
            await all_run.wait()
            return Took(time.perf_counter() - started_at, time.process_time() - cpu_before)
        finally:
            await end(watching)
