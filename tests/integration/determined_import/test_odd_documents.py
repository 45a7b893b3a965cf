"""Documents in the old database that are not what readers expect: they are imported, and every call answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from deploy.determined_import.importing import run_import
from libs.db.connecting.settings import asyncpg_url
from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.containers import ContainerNats
from tests.harness.determined.rows import (
    CHECKPOINT,
    FINISHED,
    FINISHED_TRIAL,
    PASSWORD,
    TEAM,
    UNFINISHED,
    VISION,
)
from tests.integration.api.world import CLUSTER
from tests.integration.determined_import.conftest import make_old
from tests.scenarios.odd_configs import READS

ODD: Final[dict[str, Any]] = {
    "null": None,
    "a list": [None, "text", 7, {"name": "no contents"}, {"contents": None, "name": 3}],
    "an object": {
        "odd": None,
        "validation_metrics": {"loss": None},
        "avg_metrics": [7],
        "batch_metrics": "text",
        "steps_completed": {"a": 1},
        "state": ["COMPLETED"],
    },
}
LISTS: Final = (
    f"/api/v1/workspaces/{TEAM}",
    "/api/v1/workspaces",
    f"/api/v1/workspaces/{TEAM}/projects",
    f"/api/v1/projects/{VISION}",
    f"/api/v1/projects/{VISION}/columns",
    "/api/v1/experiments",
    "/api/v1/models",
    "/api/v1/models/mnist/versions",
    "/api/v1/models/mnist/versions/1",
    "/api/v1/templates",
    "/api/v1/webhooks",
    "/api/v1/tasks",
    "/api/v1/job-queues-v2?resourcePool=default",
    f"/api/v1/config-policies/workspaces/{TEAM}/experiment",
    "/api/v1/users/setting",
)


async def _spoil(url: str, value: Any) -> None:
    """Every free document of the old database is ``value``."""
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        columns = await connection.fetch(
            "SELECT table_schema || '.' || table_name AS name, column_name FROM information_schema.columns"
            " WHERE data_type = 'jsonb' AND table_name <> 'metrics'"
        )
        for name, column in columns:
            await connection.execute(f"UPDATE {name} SET {column} = $1", json.dumps(value))
    finally:
        await connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
async def test_every_call_answers(
    value: Any,
    empty_database_url: str,
    new_url: str,
    nats_server: NatsServer | ContainerNats,
    tmp_path: Path,
) -> None:
    await make_old(empty_database_url, tmp_path / "checkpoints")
    await _spoil(empty_database_url, value)
    report = await run_import(source_url=empty_database_url, target_url=new_url, with_logs=False, say=print)
    assert report.agrees
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(CLUSTER)
    names = {"experiment": FINISHED, "trial": FINISHED_TRIAL, "checkpoint": CHECKPOINT, "external": "none"}
    settings = {"cluster_config": str(cluster)}
    with (
        ApiProcess(tmp_path / "api", database_url=new_url, bus_url=nats_server.url, settings=settings) as api,
        api.client("admin", PASSWORD) as admin,
    ):
        task = admin.get(f"/api/v1/trials/{FINISHED_TRIAL}").json()["trial"]["taskId"]
        paths = [call.path.format_map({**names, "task": task, "allocation": f"{task}.1"}) for call in READS]
        replies = [admin.get(path) for path in (*LISTS, *paths, f"/api/v1/experiments/{UNFINISHED}")]
        broken = [
            f"{reply.request.url} {reply.status_code} {reply.text}"
            for reply in replies
            if reply.status_code >= 500 or "internal server error" in reply.text
        ]
        assert broken == []
        project = admin.get(f"/api/v1/projects/{VISION}").json()["project"]
        assert all(note.keys() == {"name", "contents"} for note in project["notes"])
