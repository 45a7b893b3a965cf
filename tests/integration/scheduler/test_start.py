"""What the scheduler says of its configuration when it starts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import yaml

from libs.bus import BusSettings
from tests.harness import ServiceProcess
from tests.harness.waiting import eventually


async def test_keys_that_do_not_apply_are_said(
    own_database_url: str, bus_settings: BusSettings, tmp_path: Path
) -> None:
    cluster = tmp_path / "cluster.yaml"
    pools = [{"pool_name": "default"}, {"pool_name": "shared", "scheduler": {"type": "fair_share"}}]
    cluster.write_text(yaml.safe_dump({"resource_pools": pools, "resource_manager": {"fluent": {"image": "x"}}}))
    settings = {
        "database": {"url": own_database_url.replace("+asyncpg", "")},
        "bus": {"url": bus_settings.url},
        "cluster_config": str(cluster),
    }
    path = tmp_path / "scheduler.yaml"
    path.write_text(yaml.safe_dump(settings))
    process = ServiceProcess("services.scheduler.main", "--settings", str(path), log_path=tmp_path / "log")
    with process:

        async def is_working() -> bool:
            return "lease.won" in process.log()

        await eventually(is_working)
        assert await asyncio.to_thread(process.stop) == 0
    warnings = [line for line in map(json.loads, process.log().splitlines()) if line["level"] == "warning"]
    assert [(line["event"], line.get("pool"), line.get("key")) for line in warnings] == [
        ("cluster_config.not_as_written", None, "resource_manager.fluent"),
    ]
