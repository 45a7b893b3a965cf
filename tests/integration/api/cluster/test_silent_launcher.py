"""One launcher that says nothing: what others have said is listed (docs/reference/scheduling.md 16, B19)."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import pytest

from libs.events.capacity import NodeCapacity, PoolCapacity
from tests.harness.det import Det
from tests.harness.waiting import wait_until
from tests.integration.api.world import World, two_nodes

OTHER = PoolCapacity(
    pool="cpus", backend="process", nodes=(NodeCapacity(name="c", registered_at="2029-12-31T00:00:00Z"),)
)


@pytest.mark.parametrize("is_known", [False, True], ids=["never heard of", "silent for an hour"])
def test_lists_show_the_nodes_and_pools_of_others(world: World, det: Det, admin: httpx.Client, is_known: bool) -> None:
    if is_known:
        an_hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
        world.publish(msgspec.structs.replace(two_nodes(), seen_at=an_hour_ago))
    world.publish(OTHER)
    wait_until(lambda: "c" in {row["Agent ID"] for row in table(det, "agent", "list")}, what="its node is listed")
    assert {row["Agent ID"] for row in table(det, "agent", "list")} >= {"c"}
    pools = admin.get("/api/v1/resource-pools").raise_for_status().json()["resourcePools"]
    assert {pool["name"]: pool["numAgents"] for pool in pools}["cpus"] == 1
    assert {pool["name"] for pool in pools} == {"gpus", "cpus"}
    det("slot", "list")
    for pool in ("gpus", "cpus"):
        det("job", "list", "-p", pool)


def table(det: Det, *arguments: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(det(*arguments, "--csv").out)))
