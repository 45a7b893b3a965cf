"""One launcher acts for a pool; others stand by, and one of them takes over when it is gone.

The holder of a Lease renews it; one that cannot stops acting well before another may begin. That does not depend on how
fast it comes to an end: from that moment on, its connection to the API server changes nothing any more.

That fence is why the leader election of the Kubernetes client is not used: it calls back when leadership is lost, at a
moment that no request asks about, and it measures the deadline with a clock that may be set back. Here every request
that changes something asks first whether the lease is held, by a clock that never steps back.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec
import structlog

from libs.clock import Clock
from libs.errors import ResoluteError, Unavailable
from libs.telemetry import gauge
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.client.api import MERGE_PATCH, Json, KubeApi, Refused
from services.launcher.backends.kubernetes.client.connection import connect
from services.launcher.backends.kubernetes.client.objects import Lease
from services.launcher.backends.kubernetes.client.paths import Paths
from services.launcher.backends.kubernetes.leader_election.identity import instance_name
from services.launcher.backends.kubernetes.leader_election.rules import Sight, given_up, look, may_take, taken
from services.launcher.backends.kubernetes.manifests.label_values import label_value
from services.launcher.backends.kubernetes.manifests.names import (
    CLUSTER_LABEL,
    LAUNCHER_LABEL,
    PURPOSE_LABEL,
    launcher_id,
    system_name,
)
from services.launcher.backends.kubernetes.settings import KubernetesSettings, StandbySettings

log = structlog.get_logger()

ACTIVE: Final = gauge("resolute_launcher_active", "1 in the launcher that acts for its pool", "pool")
RELEASE_S: Final = 3.0
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class LeadershipLost(ResoluteError):
    """Another launcher may act for the pool from now on."""


def awake_s() -> float:
    """Seconds since boot. Unlike the monotonic clock this one goes on while the machine sleeps, where there is such."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@asynccontextmanager
async def connected_lease(
    *, namespace: str, pool: str, settings: KubernetesSettings, clock: Clock
) -> AsyncIterator[PoolLease]:
    """The Lease of a pool, which nobody has asked for yet, over a connection of its own.

    Whatever the pool's work waits for, the lease does not wait for it.
    """
    standby = settings.standby
    patient = msgspec.structs.replace(settings, max_requests=2, request_timeout_s=standby.renew_deadline_s / 2)
    # Without the address of the server: the same one may be reached in several ways.
    scope = f"{namespace}/{launcher_id(settings.cluster_id, pool)}"
    with instance_name(scope) as identity:
        async with connect(patient) as api:
            yield PoolLease(
                api,
                namespace=namespace,
                pool=pool,
                cluster_id=settings.cluster_id,
                identity=identity,
                settings=standby,
                clock=clock,
            )


@asynccontextmanager
async def leading(lease: PoolLease) -> AsyncIterator[None]:
    """Waits until this launcher is the one that acts for its pool; the block runs as long as it is.

    Without the right to Leases the block begins at once. Raises LeadershipLost at the end of the block, which is
    cancelled for it, when the lease could not be kept.
    """
    await lease.acquire()
    ACTIVE.labels(lease.pool).set(1)
    try:
        async with Background() as background:
            background.create_task(lease.keep(), name="lease")
            yield
    finally:
        ACTIVE.labels(lease.pool).set(0)
        await lease.release()


class PoolLease:
    """The Lease of a pool, as one of its launchers sees it.

    identity  no other launcher that lives has it
    now       seconds by a clock that never steps back
    """

    def __init__(
        self,
        api: KubeApi,
        *,
        namespace: str,
        pool: str,
        cluster_id: str,
        identity: str,
        settings: StandbySettings,
        clock: Clock,
        now: Callable[[], float] = awake_s,
    ) -> None:
        self.pool = pool
        self._api = api
        self._identity = identity
        self._settings = settings
        self._clock = clock
        self._now = now
        name = system_name(cluster_id, pool, "lease")
        self._collection = Paths(namespace).leases
        self._path = f"{self._collection}/{name}"
        labels = {
            PURPOSE_LABEL: "lease",
            CLUSTER_LABEL: label_value(cluster_id),
            LAUNCHER_LABEL: launcher_id(cluster_id, pool),
        }
        self._head: Json = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "labels": labels},
        }
        self._sight: Sight | None = None
        self._held_until = float("-inf")
        self._is_forbidden = False
        """There is no right to Leases."""

    def may_act(self) -> bool:
        """Whether this launcher may change anything. Others wait longer before they do."""
        return self._is_forbidden or self._is_held()

    async def acquire(self) -> None:
        """Wait until the lease is ours, or is known to be nobody's, because there is no right to it."""
        try:
            await self._acquire()
        except Refused as error:
            if error.code != _FORBIDDEN:
                raise
            # Without it a second launcher of this pool would act as well.
            log.warning("kubernetes.no_lease", reason=str(error), remedy="deploy/helm/rights/role.yaml")
            self._is_forbidden = True

    async def _acquire(self) -> None:
        rival = None
        while True:
            try:
                if await self._take_if_free():
                    log.info("lease.won", identity=self._identity)
                    return
            except Unavailable as error:
                log.warning("lease.not_reached", error=str(error))
            if (holder := self._holder()) != rival:
                rival = holder
                log.info("lease.standing_by", holder=holder, identity=self._identity)
            await self._pause()

    async def keep(self) -> None:
        """Renew the lease, where there is one, until cancelled.

        Raises LeadershipLost when it is another's, or might soon be.
        """
        while not self._is_forbidden:
            await self._pause(at_most_s=self._held_until - self._now())
            left_s = self._held_until - self._now()
            if left_s <= 0:
                raise LeadershipLost(f"the lease could not be renewed for {self._settings.renew_deadline_s} s")
            try:
                async with asyncio.timeout(left_s):
                    await self._renew()
            except (Refused, Unavailable, TimeoutError) as error:
                log.warning("lease.not_renewed", error=str(error) or repr(error), left_s=round(left_s, 1))

    async def release(self) -> None:
        """Let another take over at once. Does nothing when the lease may be another's by now."""
        if not self._is_held():
            return
        self._held_until = float("-inf")
        try:
            async with asyncio.timeout(RELEASE_S):
                await self._give_up()
            log.info("lease.released")
        except (Refused, Unavailable, TimeoutError) as error:
            log.info("lease.not_released", error=str(error) or repr(error))

    def _is_held(self) -> bool:
        return self._now() < self._held_until

    async def _give_up(self) -> None:
        while self._holder() == self._identity:
            try:
                await self._patch({"spec": given_up()})
                return
            except Refused as error:
                if error.code != _CONFLICT:
                    raise
            # As when the last renewal was interrupted, and came to pass all the same.
            self._sight = look(self._sight, await self._read(), now=self._now())

    async def _renew(self) -> None:
        if await self._write():
            return
        # Somebody changed it, or we did and the answer was lost.
        if not await self._take_if_free():
            self._held_until = float("-inf")
            raise LeadershipLost(f"the lease was taken by {self._holder()}")

    async def _take_if_free(self) -> bool:
        lease = await self._read()
        self._sight = look(self._sight, lease, now=self._now())
        free = may_take(self._sight, identity=self._identity, lease_s=self._settings.lease_s, now=self._now())
        return free and await self._write()

    async def _read(self) -> Lease | None:
        try:
            return await self._api.get(self._path, Lease)
        except Refused as error:
            if error.code == _NOT_FOUND:
                return None
            raise

    async def _write(self) -> bool:
        """Write ourselves into the lease as it was last seen; False when it is not like that any more."""
        assert self._sight is not None
        seen = self._sight.lease
        spec = taken(
            seen.spec if seen is not None else None,
            identity=self._identity,
            lease_s=self._settings.lease_s,
            now=self._clock.now(),
        )
        # Others count from when the server has it, which is later than this.
        sent_at = self._now()
        try:
            if seen is None:
                written = await self._api.create(self._collection, {**self._head, "spec": spec}, Lease)
            else:
                written = await self._patch({"spec": spec})
        except Refused as error:
            if error.code in (_CONFLICT, _NOT_FOUND):
                return False
            raise
        self._sight = look(self._sight, written, now=self._now())
        self._held_until = sent_at + self._settings.renew_deadline_s
        return True

    async def _patch(self, change: Json) -> Lease:
        """Change the lease, if it is as it was last seen. Raises Refused with 409 if not."""
        assert self._sight is not None
        assert self._sight.lease is not None
        version = {"metadata": {"resourceVersion": self._sight.lease.metadata.resource_version}}
        answer = await self._api.request("PATCH", self._path, body={**version, **change}, content_type=MERGE_PATCH)
        return msgspec.json.decode(answer, type=Lease)

    def _holder(self) -> str:
        lease = self._sight.lease if self._sight is not None else None
        return (lease.spec.holder_identity if lease is not None else None) or ""

    async def _pause(self, *, at_most_s: float = float("inf")) -> None:
        # Those who wait do not all ask at once.
        pause_s = self._settings.retry_s * random.uniform(1.0, 1.2)  # noqa: S311
        await asyncio.sleep(max(0.0, min(pause_s, at_most_s)))
