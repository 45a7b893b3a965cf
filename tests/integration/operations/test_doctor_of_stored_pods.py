"""What ``resolute doctor`` says of stored pods that would be refused, were they submitted again."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import insert

from deploy.operations.doctor.tasks.stored_pods import check_stored_pods
from libs.cluster.config import (
    ClusterConfig,
    PoolConfig,
    ResourceManagerConfig,
    SecurityConfig,
    TaskContainerDefaults,
)
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.tables.namespaces import workspace_namespace_bindings
from libs.db.tables.templates import config_policies, templates
from tests.builders import insert_experiment, insert_project, insert_workspace

Object = dict[str, Any]

CLUSTER = ClusterConfig(
    resource_manager=ResourceManagerConfig(type="kubernetes", max_slots_per_pod=1, default_namespace="tasks"),
    resource_pools=(PoolConfig(pool_name="default"), PoolConfig(pool_name="beside", kubernetes_namespace="det")),
    task_container_defaults=TaskContainerDefaults(
        cpu_pod_spec={"spec": {"imagePullSecrets": [{"name": "of-the-cluster"}]}}
    ),
    security=SecurityConfig(release_namespace="det"),
)


def claiming(claim: str, pool: str | None = None) -> Object:
    spec = {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
        "imagePullSecrets": [{"name": "of-the-cluster"}],
    }
    return {"environment": {"pod_spec": {"spec": spec}}, "resources": {"resource_pool": pool}}


async def said(url: str, cluster: ClusterConfig = CLUSTER) -> list[tuple[str, str]]:
    return [(found.level, found.says) for found in await check_stored_pods(cluster, DatabaseSettings(url=url))]


async def test_whoever_would_be_refused_is_named_with_the_object(database_url: str) -> None:
    assert await said(database_url) == [("ok", "refer to nothing that users may not refer to")]
    async with connect_database(DatabaseSettings(url=database_url)) as db, db.transaction() as connection:
        await connection.execute(insert(templates).values(name="sets", config=claiming("sets"), workspace_id=1))
        bound = await insert_workspace(connection, name="bound", owner_id=1)
        await connection.execute(
            insert(workspace_namespace_bindings).values(
                workspace_id=bound, cluster_name="default", namespace="det", auto_created=False
            )
        )
        policy = {"workload_type": "NTSC", "workspace_id": bound, "updated_by": 1}
        await connection.execute(insert(config_policies).values(invariant_config=claiming("fixed"), **policy))
        project = await insert_project(connection, workspace_id=bound, name="p", owner_id=1)
        for claim, pool, where in (("a", "default", project), ("b", "default", 1), ("c", "beside", 1)):
            config = claiming(claim, pool)
            await insert_experiment(connection, owner_id=1, project_id=where, config=config)
    found = await said(database_url)
    assert [level for level, _ in found] == ["warning"] * 4
    assert [says.partition(" beside ")[0] for _, says in found] == [
        "config policies of workspace bound refer to PersistentVolumeClaim/fixed",
        "experiments of workspace Uncategorized refer to PersistentVolumeClaim/c",
        "experiments of workspace bound refer to PersistentVolumeClaim/a",
        "template sets refer to PersistentVolumeClaim/sets",
    ]
    allowed = msgspec.structs.replace(
        CLUSTER, security=SecurityConfig(release_namespace="det", references=("PersistentVolumeClaim/*",))
    )
    assert [level for level, _ in await said(database_url, allowed)] == ["ok"]


async def test_where_there_is_no_release_beside_tasks_nothing_is_said(database_url: str) -> None:
    assert await said(database_url, ClusterConfig()) == []
