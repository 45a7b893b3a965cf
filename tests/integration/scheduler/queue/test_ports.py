"""Ports of trials: enough for each that runs, none that the administrator keeps for others
(docs/reference/platform.md 18)."""

from __future__ import annotations

from libs.cluster.config import ClusterConfig
from tests.harness import eventually
from tests.integration.scheduler.deletion.test_endings import _launch_notebook
from tests.integration.scheduler.world import World


async def test_reserved_ports_are_given_to_nobody(world: World) -> None:
    world.cluster = ClusterConfig(reserved_ports=(12350, 12351, 29400))
    async with world.scheduling() as w:
        await w.api.create()
        [allocation] = await w.launcher.running()
        spec = w.launcher.specs[allocation].spec
        assert spec is not None
        assert sorted(spec.ports.values()) == [12352, 12360, 12365, 29401]


async def test_trials_wait_for_ports_and_others_do_not(world: World) -> None:
    world.cluster = ClusterConfig(reserved_ports=tuple(range(29401, 65536)))
    async with world.scheduling() as w:
        await w.api.create()
        [first] = await w.launcher.running()
        await w.api.create()
        [waiting] = await eventually(lambda: _waiting(w))
        notebook = await _launch_notebook(w, workspace=1)
        assert (await w.launcher.running(2))[1] == notebook
        assert [row["allocation_id"] for row in await _waiting(w)] == [waiting["allocation_id"]]
        assert waiting["wait_reason"] == "waiting for ports to become free: running trials hold them all"
        await w.launcher.exit(first)
        assert (await w.launcher.running(3))[2] == waiting["allocation_id"]


async def test_however_many_trials_wait_for_ports_others_start(world: World) -> None:
    """More than a transaction starts at once."""
    world.cluster = ClusterConfig(reserved_ports=tuple(range(29400, 65536)))
    searcher = {"name": "random", "metric": "loss", "max_trials": 120, "max_concurrent_trials": 0}
    async with world.scheduling() as w:
        await w.launcher.offer(slots=130)
        await w.api.create(searcher=searcher, hyperparameters={"lr": {"type": "double", "minval": 0, "maxval": 1}})
        await eventually(lambda: _all_wait(w, 120))
        notebook = await _launch_notebook(w, workspace=1)
        assert await w.launcher.running() == [notebook]


async def _all_wait(w: World, count: int) -> bool:
    return len(await _waiting(w)) == count


async def _waiting(w: World) -> list[dict[str, object]]:
    return [dict(row) for row in await w.api.allocations() if row["wait_reason"]]
