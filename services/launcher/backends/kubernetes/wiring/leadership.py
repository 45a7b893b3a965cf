"""The connection of the launcher that acts for its pool, for as long as it is that one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import structlog

from libs.clock import Clock
from libs.errors import InvalidRequest, NotFound, PermissionDenied
from libs.serving.readiness import Readiness
from services.launcher.backends.kubernetes.client.api import KubeApi
from services.launcher.backends.kubernetes.client.connection import (
    Version,
    check,
    connect,
    find_namespace,
    problem_of,
)
from services.launcher.backends.kubernetes.leader_election.elector import PoolLease, connected_lease, leading
from services.launcher.backends.kubernetes.wiring.configured_pool import ConfiguredPool

log = structlog.get_logger()


@asynccontextmanager
async def leading_connection(
    pool: ConfiguredPool, *, clock: Clock, readiness: Readiness
) -> AsyncIterator[tuple[KubeApi, Version]]:
    """The API server and its version, once everything that is needed was found and no other launcher acts.

    A launcher whose pool has moved holds the leases of the namespaces that it came from as well: the launcher before it
    may know of no other.
    Raises what ``connect``, ``check`` and ``leading`` raise.
    """
    settings = pool.settings
    leases: list[PoolLease] = []
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(
            connect(settings, may_act=lambda: bool(leases) and all(lease.may_act() for lease in leases))
        )
        version = await check(api, pool.namespace, settings)
        # Whoever stands by is as ready as whoever acts: an upgrade waits for it before it ends the other one.
        readiness.register("kubernetes", partial(problem_of, api))
        for namespace in (*await _still_there(api, pool.former_namespaces), pool.namespace):
            lease = await stack.enter_async_context(
                connected_lease(namespace=namespace, pool=pool.name, settings=settings, clock=clock)
            )
            await stack.enter_async_context(leading(lease))
            leases.append(lease)
        yield api, version


async def _still_there(api: KubeApi, namespaces: Sequence[str]) -> list[str]:
    """Those in which the launcher may work. In others no launcher with the same rights acts. Raises Unavailable."""
    found = []
    for namespace in namespaces:
        try:
            await find_namespace(api, namespace)
        except (NotFound, PermissionDenied, InvalidRequest) as error:
            log.warning("kubernetes.former_namespace_left_out", namespace=namespace, reason=str(error))
        else:
            found.append(namespace)
    return found
