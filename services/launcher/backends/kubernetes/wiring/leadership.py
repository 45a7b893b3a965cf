"""The connection of the launcher that acts for its pool, for as long as it is that one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from libs.clock import Clock
from libs.serving.readiness import Readiness
from services.launcher.backends.kubernetes.client.api import KubeApi
from services.launcher.backends.kubernetes.client.connection import Version, check, connect, problem_of
from services.launcher.backends.kubernetes.leader_election.elector import connected_lease, leading
from services.launcher.backends.kubernetes.wiring.configured_pool import ConfiguredPool


@asynccontextmanager
async def leading_connection(
    pool: ConfiguredPool, *, clock: Clock, readiness: Readiness
) -> AsyncIterator[tuple[KubeApi, Version]]:
    """The API server and its version, once everything that is needed was found and no other launcher acts.

    Raises what ``connect``, ``check`` and ``leading`` raise.
    """
    settings = pool.settings
    async with (
        connected_lease(namespace=pool.namespace, pool=pool.name, settings=settings, clock=clock) as lease,
        connect(settings, may_act=lease.may_act) as api,
    ):
        version = await check(api, pool.namespace, settings)
        # Whoever stands by is as ready as whoever acts: an upgrade waits for it before it ends the other one.
        readiness.register("kubernetes", partial(problem_of, api))
        async with leading(lease):
            yield api, version
