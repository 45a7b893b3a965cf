"""Measures a launcher with thousands of pods in one namespace: its memory, and how soon the bus knows of a change."""

from __future__ import annotations

import asyncio
import random
import statistics
import time

from libs.events.observations import AllocationObserved
from libs.run_until_first_exits import end
from services.launcher.backends.kubernetes.client.connection import connect
from services.launcher.backends.kubernetes.client.objects import Pod
from tests.bench.kubernetes import bare
from tests.bench.kubernetes.site import BenchCluster, Site, open_site
from tests.bench.result import Result
from tests.integration.launcher.backends.kubernetes.launcher_harness import task

PODS = 5000
CHANGES = 200
PAUSE_S = 0.05
SETTLE_S = 5.0
RESIDENT_MB = 250
CHANGE_MS = 100


class Seen:
    """When an address was first seen, by address; somebody waits for the one that was given last."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.wanted = ""
        self.is_there = asyncio.Event()

    def note(self, address: str) -> None:
        self.at.setdefault(address, time.perf_counter())
        if address == self.wanted:
            self.is_there.set()


async def measure(bench: BenchCluster) -> list[Result]:
    # The last to be measured: nobody has to wait until so many pods are gone.
    async with open_site(bench, waits=False) as site:
        await site.launch()
        async with site.running(PODS) as all_run:
            await site.order([task() for _ in range(PODS)])
            await all_run.wait()
        grown_mb = site.launcher_resident_mb()
        # One that has to read everything at once may need more.
        await site.launch()
        await asyncio.sleep(SETTLE_S)
        restarted_mb = site.launcher_resident_mb()
        on_bus_s, on_watch_s = await _change(site)
    return [
        Result(
            name=f"resident memory with {PODS} pods",
            value=max(grown_mb, restarted_mb),
            unit="MB",
            baseline=RESIDENT_MB,
            goal=1.0,
            better="lower",
        ),
        Result(
            name="from a pod's change to the bus, median",
            value=statistics.median(on_bus_s) * 1e3,
            unit="ms",
            baseline=CHANGE_MS,
            goal=1.0,
            better="lower",
        ),
        Result(
            name="from a pod's change to the bus, bare watch",
            value=statistics.median(on_bus_s) * 1e3,
            unit="ms",
            baseline=statistics.median(on_watch_s) * 1e3,
            goal=None,
            better="lower",
        ),
    ]


async def _change(site: Site) -> tuple[list[float], list[float]]:
    """Give pods new addresses, one after another; returns seconds until the bus, and a bare watch, had each."""
    bus, watch = Seen(), Seen()

    def observed(seen: AllocationObserved) -> None:
        for pod in seen.pods:
            for address in pod.addresses:
                bus.note(address)

    def watched(pod: Pod) -> None:
        watch.note(pod.status.pod_ip)

    on_bus_s, on_watch_s = [], []
    rng = random.Random(7)
    async with connect(site.settings) as api, site.observing(observed):
        follow = bare.watch_pods(api, site.namespace.paths, watched)
        await follow.read_list()
        pods = sorted(name for _, name in follow.items)
        watching = asyncio.create_task(follow.run())
        try:
            for number in range(CHANGES):
                address = f"10.9.{number // 250}.{number % 250}"
                path = f"{site.namespace.paths.pod(rng.choice(pods))}/status"
                for seen in (bus, watch):
                    seen.wanted = address
                    seen.is_there.clear()
                started_at = time.perf_counter()
                await site.namespace.api.patch(path, {"status": {"podIP": address, "podIPs": [{"ip": address}]}})
                async with asyncio.timeout(60):
                    await asyncio.gather(bus.is_there.wait(), watch.is_there.wait())
                on_bus_s.append(bus.at[address] - started_at)
                on_watch_s.append(watch.at[address] - started_at)
                await asyncio.sleep(PAUSE_S)
        finally:
            await end(watching)
    return on_bus_s, on_watch_s
