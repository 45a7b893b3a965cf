"""Stored templates, policies and experiments whose pods refer to what users may not refer to beside a release.

What runs goes on, and whoever submits the same again is refused: an administrator wants to hear of it before users do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import asyncpg

from deploy.operations.doctor.findings import Finding, ok, warning
from libs.cluster.config import ClusterConfig, TaskContainerDefaults
from libs.db.connecting.settings import DatabaseSettings, address
from libs.db.failures import DRIVER_ERRORS
from libs.podspec.references import Reference, is_allowed, is_made_for_tasks, references

PART: Final = "stored pod specs"
ANSWERS_WITHIN_S: Final = 5.0
MOST_NAMES: Final = 10
"""Of objects in one line."""

_OF_EXPERIMENTS: Final = """
    SELECT DISTINCT 'experiments of workspace ' || w.name AS whose, b.namespace,
        e.config #>> '{resources,resource_pool}' AS pool,
        coalesce(e.users_pod -> 'pod', e.config #> '{environment,pod_spec}') AS pod
    FROM experiments e
    JOIN projects p ON p.id = e.project_id JOIN workspaces w ON w.id = p.workspace_id
    LEFT JOIN workspace_namespace_bindings b ON b.workspace_id = w.id AND b.cluster_name = $1
    WHERE e.end_time IS NULL OR e.end_time > now() - interval '90 days'
"""
_OF_TEMPLATES: Final = """
    SELECT 'template ' || t.name AS whose, b.namespace, NULL AS pool, t.config #> '{environment,pod_spec}' AS pod
    FROM templates t LEFT JOIN workspace_namespace_bindings b ON b.workspace_id = t.workspace_id AND b.cluster_name = $1
"""
_OF_POLICIES: Final = """
    SELECT 'config policies of workspace ' || w.name AS whose, b.namespace, NULL AS pool,
        c.invariant_config #> '{environment,pod_spec}' AS pod
    FROM config_policies c JOIN workspaces w ON w.id = c.workspace_id
    LEFT JOIN workspace_namespace_bindings b ON b.workspace_id = w.id AND b.cluster_name = $1
"""


class StoredPod(NamedTuple):
    whose: str
    namespace: str | None
    """That the workspace is bound to, if any."""
    pool: str | None
    """None where any pool may be meant."""
    pod: Any


async def check_stored_pods(cluster: ClusterConfig, settings: DatabaseSettings) -> list[Finding]:
    """Nothing where tasks are no pods, or where nobody said which namespace is that of the release."""
    if not cluster.resource_manager.is_kubernetes or not cluster.security.release_namespace:
        return []
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            stored = await _stored(address(settings), cluster.resource_manager.cluster_name)
    except TimeoutError:
        says = f"could not be looked at within {ANSWERS_WITHIN_S:.0f} s"
        return [warning(PART, says, remedy="see whether the database is busy, and run this again")]
    except (OSError, *DRIVER_ERRORS):
        return []  # that the database does not answer, or has no schema, is said elsewhere
    return about_stored_pods(stored, cluster)


def about_stored_pods(stored: Iterable[StoredPod], cluster: ClusterConfig) -> list[Finding]:
    """A warning for each whose, with the objects that the setting would have to allow. Pure."""
    given = _of_administrators(cluster)
    refused: dict[str, set[str]] = {}
    for each in stored:
        if cluster.security.release_namespace in _namespaces(each, cluster):
            pod = each.pod if isinstance(each.pod, dict) else {}
            refused.setdefault(each.whose, set()).update(map(str, _refused(pod, cluster, given)))
    found = [_about(whose, sorted(names)) for whose, names in sorted(refused.items()) if names]
    return found or [ok(PART, "refer to nothing that users may not refer to")]


def _about(whose: str, names: list[str]) -> Finding:
    shown = ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if names[MOST_NAMES:] else "")
    says = f"{whose} refer to {shown} beside the services of the release: what is submitted like that is refused"
    remedy = "allow it by security.references, or move tasks into a namespace of their own (docs/move-tasks.md)"
    return warning(PART, says, remedy=remedy)


def _refused(pod: dict[str, Any], cluster: ClusterConfig, given: frozenset[str]) -> Iterator[Reference]:
    for each in references(pod):
        permitted = is_allowed(each, cluster.security.references) or str(each) in given
        if each.name and not permitted and not is_made_for_tasks(each):
            yield each


def _of_administrators(cluster: ClusterConfig) -> frozenset[str]:
    """What defaults refer to: experiments of releases before have them in what is stored, and are not their users'."""
    defaults: list[TaskContainerDefaults] = [cluster.task_container_defaults]
    defaults += [pool.own_defaults for pool in cluster.resource_pools if pool.own_defaults is not None]
    pods = (pod for each in defaults for pod in (each.cpu_pod_spec, each.gpu_pod_spec))
    return frozenset(str(found) for pod in pods for found in references(pod or {}))


def _namespaces(stored: StoredPod, cluster: ClusterConfig) -> set[str]:
    if stored.namespace:
        return {stored.namespace}
    default = cluster.resource_manager.default_namespace
    of_pools = {pool.pool_name: pool.kubernetes_namespace or default for pool in cluster.resource_pools}
    return {of_pools.get(stored.pool, default)} if stored.pool else {default, *of_pools.values()}


async def _stored(url: str, cluster_name: str) -> list[StoredPod]:
    connection = await asyncpg.connect(url, timeout=ANSWERS_WITHIN_S)
    try:
        queries = (_OF_TEMPLATES, _OF_POLICIES, _OF_EXPERIMENTS)
        rows = [row for query in queries for row in await connection.fetch(query, cluster_name)]
    finally:
        await connection.close()
    return [
        StoredPod(row["whose"], row["namespace"], row["pool"], json.loads(row["pod"])) for row in rows if row["pod"]
    ]
