"""Tasks of workspaces that are bound to namespaces, and namespaces of workspaces that are gone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from libs.bus import Bus
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.outbox import announce
from libs.events import subjects
from libs.events.changes import WorkspaceChanged
from libs.events.orders import Order
from tests.builders import insert_workspace
from tests.harness import eventually
from tests.harness.cluster_admin import FakeClusterAdmin
from tests.integration.scheduler.world import KUBERNETES, QUICK, FakeLauncher, World, background

QUOTA_USED_UP = "the resource quota of its workspace is used up"


@pytest.fixture
async def world(own_database_url: str, bus: Bus) -> AsyncIterator[World]:
    async with connect_database(DatabaseSettings(url=own_database_url)) as db:
        yield World(db, bus, KUBERNETES)


async def bind(world: World, namespace: str, *, cluster: str = "here") -> None:
    """Bind the first workspace, in which the experiments of these tests are."""
    await world.api.sql("DELETE FROM workspace_namespace_bindings")
    await world.api.sql(
        "INSERT INTO workspace_namespace_bindings VALUES (1, :cluster, :namespace, false)",
        cluster=cluster,
        namespace=namespace,
    )
    async with world.db.transaction() as connection:
        await announce(connection, WorkspaceChanged(workspace_id=1, what="changed"))


async def made(world: World, namespace: str, *, workspace: int, claimed: str = "NULL") -> None:
    await world.api.sql(
        f"INSERT INTO auto_created_namespaces VALUES ('here', :namespace, :workspace, {claimed}, NULL)",
        namespace=namespace,
        workspace=workspace,
    )


async def test_allocation_keeps_the_namespace_in_which_it_got_its_slots(world: World) -> None:
    await bind(world, "team")
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [first] = await w.launcher.running()
        assert w.launcher.orders[first].namespace == "team"
        await bind(w, "new-home")
        await w.api.kill(experiment)
        await eventually(lambda: _is_over(w, first))
        assert w.launcher.stops[first].namespace == "team"
        again = await w.api.create()
        second = (await w.launcher.running(2))[1]
        assert w.launcher.orders[second].namespace == "new-home"
        await w.launcher.exit(second)
        await w.api.ended(again, "COMPLETED")


async def test_who_is_bound_to_the_namespace_of_the_pool_shares_its_quota(world: World) -> None:
    await bind(world, "default")
    async with world.scheduling() as w:
        await w.api.create()
        [first] = await w.launcher.running()
        assert w.launcher.orders[first].namespace == ""


async def test_order_that_was_lost_is_written_again_for_the_same_namespace(world: World) -> None:
    await bind(world, "team")
    async with world.scheduling(QUICK) as w:
        await w.api.create()
        [first] = await w.launcher.running()
        await bind(w, "new-home")
        await w.api.sql("UPDATE allocations SET assigned_at = assigned_at - interval '1 hour'")
        await w.bus.bucket(subjects.ORDERS_BUCKET).delete(subjects.order_key("default", first))
        await eventually(lambda: first in w.launcher.reorders, timeout_s=60)
        assert w.launcher.orders[first].namespace == "team"


async def test_bindings_of_other_clusters_concern_nobody(world: World) -> None:
    await bind(world, "team", cluster="elsewhere")
    async with world.scheduling() as w:
        await w.api.create()
        [first] = await w.launcher.running()
        assert w.launcher.orders[first].namespace == ""


async def test_quota_of_a_workspace_holds_over_all_pools(world: World) -> None:
    """A launcher takes away the pods of other pools itself, but not those that nobody has made yet."""
    await bind(world, "team")
    other = FakeLauncher(world.bus, pool="other")
    world.launcher.on_run = _nothing_yet
    await other.offer(quota_slots_of={"team": 3})
    async with world.scheduling() as w, background(other.run()):
        await w.launcher.offer(quota_slots_of={"team": 3})
        await w.api.create(slots=2)
        [first] = await w.launcher.running()
        waiting = await w.api.create(slots=2, pool="other")
        await eventually(lambda: _waits(w, waiting, QUOTA_USED_UP))
        small = await w.api.create(slots=1)
        second = (await w.launcher.running(2))[1]
        assert second.startswith(f"{small}.")
        await w.launcher.see(second, "RUNNING")
        assert not other.specs
        await w.launcher.see(first, "RUNNING")
        await other.offer(quota_slots_of={"team": 2})
        [started] = await other.running()
        assert started.startswith(f"{waiting}.")


async def test_quota_that_was_asked_for_holds_until_launchers_say_how_it_is(world: World) -> None:
    await bind(world, "own")
    await made(world, "own", workspace=1)
    await world.api.sql("UPDATE auto_created_namespaces SET quota_slots = 2")
    other = FakeLauncher(world.bus, pool="other")
    await other.offer()
    async with world.scheduling() as w, background(other.run()):
        await w.api.create(slots=2)
        await w.launcher.running()
        waiting = await w.api.create(slots=1, pool="other")
        await eventually(lambda: _waits(w, waiting, QUOTA_USED_UP))
        await other.offer(quota_slots_of={"own": 1})
        await other.running()


async def test_quota_that_was_raised_lets_the_next_start(world: World) -> None:
    await bind(world, "team")
    async with world.scheduling() as w:
        await w.launcher.offer(quota_slots_of={"team": 1})
        waiting = await w.api.create(slots=2)
        await eventually(lambda: _waits(w, waiting, QUOTA_USED_UP))
        await w.launcher.offer(quota_slots_of={"team": 2})
        await w.launcher.running()


async def test_namespace_goes_after_its_workspace(world: World) -> None:
    cluster_admin = FakeClusterAdmin()
    cluster_admin.namespaces |= {"mine": True, "kept": True}
    async with world.db.transaction() as connection:
        for name in ("kept", "doomed"):
            await insert_workspace(connection, name=name)
    await made(world, "kept", workspace=2)
    await made(world, "mine", workspace=3)
    async with cluster_admin.serving(world.bus), world.scheduling() as w:
        await w.api.delete_workspace(3)
        await eventually(lambda: "mine" not in cluster_admin.namespaces)
        await eventually(lambda: _remembered(w, ["kept"]))
    assert cluster_admin.namespaces == {"default": False, "kept": True}


async def test_namespace_is_not_forgotten_while_the_launcher_is_away(world: World) -> None:
    cluster_admin = FakeClusterAdmin()
    cluster_admin.namespaces["mine"] = True
    await made(world, "mine", workspace=99)
    async with background(world.scheduler(QUICK).run()):
        # Nobody answers: it is asked again until somebody does.
        async with cluster_admin.serving(world.bus):
            await eventually(lambda: "mine" not in cluster_admin.namespaces, timeout_s=30)
        await eventually(lambda: _remembered(world, []))


async def test_namespace_with_which_a_request_is_at_work_is_left_until_that_is_over(world: World) -> None:
    cluster_admin = FakeClusterAdmin()
    cluster_admin.namespaces |= {"mine": True, "late": True}
    await made(world, "mine", workspace=99, claimed="now() + interval '1 hour'")
    await made(world, "late", workspace=98, claimed="now() - interval '1 second'")
    async with cluster_admin.serving(world.bus), background(world.scheduler(QUICK).run()):
        await eventually(lambda: _remembered(world, ["mine"]))
        assert "mine" in cluster_admin.namespaces
        await world.api.sql("UPDATE auto_created_namespaces SET claimed_until = now()")
        await eventually(lambda: _remembered(world, []))
    assert "mine" not in cluster_admin.namespaces


async def test_namespace_in_which_something_runs_waits_for_it(world: World) -> None:
    cluster_admin = FakeClusterAdmin()
    cluster_admin.namespaces |= {"mine": True, "free": True}
    await bind(world, "mine")
    async with cluster_admin.serving(world.bus), world.scheduling() as w:
        experiment = await w.api.create()
        [first] = await w.launcher.running()
        await made(w, "free", workspace=99)
        await made(w, "mine", workspace=99)
        async with w.db.transaction() as connection:
            await announce(connection, WorkspaceChanged(workspace_id=99, what="deleted"))
        await eventually(lambda: _remembered(w, ["mine"]))
        assert cluster_admin.namespaces["mine"]
        await w.launcher.exit(first)
        await w.api.ended(experiment, "COMPLETED")
        await eventually(lambda: "mine" not in cluster_admin.namespaces)


async def test_namespace_of_somebody_else_is_left_alone(world: World) -> None:
    cluster_admin = FakeClusterAdmin()
    cluster_admin.namespaces["theirs"] = False
    await made(world, "theirs", workspace=99)
    async with cluster_admin.serving(world.bus), background(world.scheduler(QUICK).run()):
        await eventually(lambda: _remembered(world, []))
    assert "theirs" in cluster_admin.namespaces


async def _nothing_yet(order: Order) -> None:
    """Take the order, and say nothing."""


async def _is_over(w: World, allocation: str) -> bool:
    return (await w.api.allocation(allocation))["released_at"] is not None


async def _waits(w: World, experiment: int, reason: str) -> bool:
    return [row["wait_reason"] for row in await w.api.allocations(experiment)] == [reason]


async def _remembered(w: World, namespaces: list[str]) -> bool:
    return await w.api.sql("SELECT namespace FROM auto_created_namespaces") == namespaces
