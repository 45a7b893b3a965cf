"""Pools in which a task may start beside its own: who may use them, and what is different there.

The defaults of a pool (``task_container_defaults``) go into what is stored of a task. So what they make of it in each
pool is found when it is submitted, and kept beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

from msgspec import Struct

from libs.cluster.fallbacks import FIELD, complete_fallbacks
from libs.cluster.resolution import split_in_pool
from libs.cluster.time_limits import limit_in_pool, with_time_limit
from libs.cluster.topology import check_topology
from libs.config.differences import difference
from libs.db.jobs.pool_offers import PoolOffer
from libs.errors import InvalidRequest
from services.api.app import App

Object = dict[str, Any]

_OF_CONFIG: Final = ("bind_mounts", "environment", "pbs", "slurm")
"""Parts of the configuration of an experiment into which defaults of a pool go, and which its tasks are made of."""
_OF_RESOURCES: Final = ("devices", "shm_size")


class OfferedTask(Struct, frozen=True, kw_only=True):
    """What is asked of each pool alike."""

    pool: str
    """Its own."""
    slots: int
    single_pod: bool
    time_limit_s: int | None
    """That its user has asked for."""
    workspace_id: int
    unavailable_pools: Collection[str]


def completed(app: App, task: OfferedTask, resources: Mapping[str, Any]) -> Object:
    """``resources`` as they are stored: with the time limit that its pool gives, and with the wait for each of its
    fallback pools, without the field where none is left.

    Raises InvalidRequest for a time limit beyond that of the pool, for a level that its topology lacks, for too many
    fallback pools, and for one that does not exist, that the workspace may not use, or that is named twice.
    """
    limited = with_time_limit(app.cluster, task.pool, resources)
    others = {key: value for key, value in limited.items() if key != "fallback_pools"}
    found = complete_fallbacks(
        app.cluster,
        resources.get("fallback_pools") or (),
        pool=task.pool,
        workspace_id=task.workspace_id,
        unavailable=task.unavailable_pools,
    )
    check_topology(app.cluster, task.pool, resources)
    return {**others, "fallback_pools": found} if found else others


async def offers_of(
    app: App,
    task: OfferedTask,
    resources: Mapping[str, Any],
    *,
    own: Mapping[str, Any],
    in_pool: Callable[[str], Awaitable[Mapping[str, Any]]],
    changes: Callable[[Mapping[str, Any], Mapping[str, Any]], Object] = difference,
) -> tuple[PoolOffer, ...]:
    """One for its own pool and one for each fallback pool of ``resources``, which are completed; () without any.

    own      what is stored of the task
    in_pool  what would be stored of it in another pool; raises InvalidRequest where that is refused
    changes  what has to be put over the first to get the second
    Raises InvalidRequest, with the name of the field, where a pool refuses it. Whether its nodes could hold it is
    checked for all pools together (possible_pools.py).
    """
    fallbacks = resources.get("fallback_pools") or ()
    if not fallbacks:
        return ()
    split = split_in_pool(
        app.cluster, app.capacity.of(task.pool), pool=task.pool, slots=task.slots, single_pod=task.single_pod
    )
    limit = resources.get("time_limit")
    offers = [PoolOffer(pool=task.pool, rank=0, after_s=0, num_pods=split.num_pods, time_limit_s=limit)]
    for rank, entry in enumerate(fallbacks, start=1):
        name = entry["pool"]
        try:
            split = split_in_pool(
                app.cluster, app.capacity.of(name), pool=name, slots=task.slots, single_pod=task.single_pod
            )
            limit = limit_in_pool(app.cluster, name, task.time_limit_s)
            check_topology(app.cluster, name, resources)
            there = await in_pool(name)
        except InvalidRequest as error:
            raise InvalidRequest(f"{FIELD}: resource pool {name}: {error}") from error
        offers.append(
            PoolOffer(
                pool=name,
                rank=rank,
                after_s=entry["after"],
                num_pods=split.num_pods,
                time_limit_s=limit,
                changes=changes(own, there),
            )
        )
    return tuple(offers)


def changes_of_experiment(own: Mapping[str, Any], there: Mapping[str, Any]) -> Object:
    """Of the configuration of an experiment: what comes from defaults of a pool."""
    found = {key: value for key, value in difference(own, there).items() if key in _OF_CONFIG}
    resources = {
        key: there["resources"].get(key)
        for key in _OF_RESOURCES
        if there["resources"].get(key) != own["resources"].get(key)
    }
    return {**found, "resources": resources} if resources else found
