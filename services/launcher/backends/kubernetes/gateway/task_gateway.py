"""Listeners of tasks on the internal task gateway: where ports are proxied when nobody outside reaches a pod.

The Gateway is one object that several launchers, their installations and people edit: it is read, changed and put back
with the version that was read, and read again when somebody was faster. Listeners come before everything that leads to
them, and go after it. What a launcher claimed is written down in the Gateway, where the next one finds it.
Source: docs/reference/kubernetes.md 4 and 12.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import msgspec
import structlog

from libs.cluster.config import TaskGatewayConfig
from libs.errors import InvalidRequest, Unavailable
from libs.events.orders import TaskSpec
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.objects import Job
from services.launcher.backends.kubernetes.client.paths import Paths, gateway_path
from services.launcher.backends.kubernetes.gateway.listeners import (
    Claim,
    Wanted,
    addresses,
    claims_of,
    not_as_expected,
    open_claims,
    route_name,
    tcp_route,
    with_listeners,
    without_listeners,
)

log = structlog.get_logger()

Json = dict[str, Any]

MANY_PODS: Final = "a task of several pods cannot be reached through the gateway"
LISTENERS_GONE: Final = "somebody has removed listeners from the gateway"
MAX_TRIES: Final = 12
"""Of an edit that somebody else gets in the way of; whoever wants it tries again after that, but more slowly."""
CONFLICT_PAUSES_S: Final = (0.05, 0.4)
SETTLE_PAUSES_S: Final = (1.0, 30.0)
"""The first, and the longest."""
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404


class TaskGateway:
    """The listeners of one launcher.

    allocations  by id: what is known of it; read, never changed
    say       puts a line into the log of an allocation's task
    restored  is told of an allocation whose addresses were found again
    """

    def __init__(
        self,
        api: KubeApi,
        *,
        config: TaskGatewayConfig,
        launcher: str,
        allocations: Mapping[str, TrackedAllocation],
        say: Callable[[TrackedAllocation, str], None],
        restored: Callable[[TrackedAllocation], None],
    ) -> None:
        self._api = api
        self._config = config
        self._launcher = launcher
        self._allocations = allocations
        self._say = say
        self._restored = restored
        self._path = gateway_path(config.gateway_namespace, config.gateway_name)
        self._lock = asyncio.Lock()
        self._claimants: set[str] = set()
        """Allocations that may have listeners."""
        self._has_settled = False
        """Everything that was claimed before our time is known, or gone."""

    async def claim(self, tracked: TrackedAllocation, spec: TaskSpec, services: Collection[Json]) -> tuple[Json, ...]:
        """Have a listener for each of the task's ports, and return the routes that lead from them to ``services``.

        May be repeated. Raises InvalidRequest and Refused in words for the owner of the task, and Unavailable.
        """
        if not spec.proxy_ports:
            return ()
        is_new = tracked.allocation not in self._claimants
        self._claimants.add(tracked.allocation)
        if tracked.observed.num_pods > 1:
            if is_new:
                self._say(tracked, not_as_expected((), len(spec.proxy_ports), MANY_PODS))
            return ()
        wanted = _wanted(self._launcher, tracked, services)
        config = self._config

        def change(gateway: Json) -> Json:
            return with_listeners(
                gateway, wanted, start=config.gateway_port_range_start, end=config.gateway_port_range_end
            )

        try:
            async with self._lock:
                gateway = await self._edit(change)
        except InvalidRequest as error:
            raise InvalidRequest(self._words(wanted, error)) from error
        except Refused as error:
            raise Refused(error.code, error.reason, self._words(wanted, error)) from error
        claims = _of(tracked.allocation, open_claims(gateway, self._launcher))
        tracked.intent.confirm_proxied(addresses(claims, config))
        log.info("gateway.claimed", allocation=tracked.allocation, ports=[claim.port for claim in claims])
        return tuple(tcp_route(service, claim, config) for service, claim in zip(services, claims, strict=True))

    async def release(self, tracked: TrackedAllocation) -> None:
        """Leave no listener of an allocation that has ended, nor a route to it. Raises Refused and Unavailable."""
        if self._has_settled and tracked.allocation not in self._claimants:
            return
        async with self._lock:
            await self._free(lambda gateway: _of(tracked.allocation, claims_of(gateway, self._launcher)))
        self._claimants.discard(tracked.allocation)

    async def settle(self) -> bool:
        """Find the addresses of older allocations again, and free what is left of those that are gone.

        False when not everything could be told yet, and this has to be repeated.
        """
        if self._has_settled:
            return True
        try:
            async with self._lock:
                self._has_settled = await self._settle()
        except (Refused, Unavailable) as error:
            log.error("gateway.not_readable", gateway=self._config.gateway_name, error=str(error))
        return self._has_settled

    async def run(self) -> None:
        """Repeat ``settle`` until all is told."""
        pause_s, longest_s = SETTLE_PAUSES_S
        while not await self.settle():
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311  jitter
            pause_s = min(pause_s * 2, longest_s)

    async def _settle(self) -> bool:
        gateway = await self._api.get(self._path, Json)
        gone: list[Claim] = []
        is_told = True
        for allocation, group in groupby(_by_allocation(gateway, self._launcher), attrgetter("allocation")):
            claims = list(group)
            tracked = self._allocations.get(allocation)
            if allocation in self._claimants:
                continue
            if tracked is not None and tracked.observed.job is not None:
                self._restore(tracked, gateway)
            elif await self._has_job(claims[0]):
                is_told = False  # it lives, but where nothing was seen of it yet
            else:
                gone += claims
        if gone:
            log.warning("gateway.left_over", ports=[claim.port for claim in gone])
            await self._free(lambda gateway: [claim for claim in gone if claim in claims_of(gateway, self._launcher)])
        return is_told

    def _restore(self, tracked: TrackedAllocation, gateway: Json) -> None:
        self._claimants.add(tracked.allocation)
        claims = _of(tracked.allocation, open_claims(gateway, self._launcher))
        found = addresses(claims, self._config)
        if (requested := len(_of(tracked.allocation, claims_of(gateway, self._launcher)))) > len(found):
            self._say(tracked, not_as_expected(found, requested, LISTENERS_GONE))
        tracked.intent.confirm_proxied(found)
        log.info("gateway.restored", allocation=tracked.allocation, ports=[claim.port for claim in claims])
        self._restored(tracked)

    async def _has_job(self, claim: Claim) -> bool:
        """Whether what a claim is for may still be there."""
        try:
            job = await self._api.get(Paths(claim.namespace).job(claim.job), Job)
        except Refused as error:
            if error.code != _NOT_FOUND:
                log.warning("gateway.job_not_readable", port=claim.port, job=claim.job, error=str(error))
            return error.code != _NOT_FOUND
        return job.metadata.annotations.allocation == claim.allocation

    async def _free(self, choose: Callable[[Json], Collection[Claim]]) -> None:
        """Delete the routes of claims, then the claims. Where there is no Gateway, nothing is claimed."""
        try:
            claims = choose(await self._api.get(self._path, Json))
            for claim in claims:
                # A listener that is taken by another task must have no old route.
                await self._api.delete(f"{Paths(claim.namespace).tcp_routes}/{route_name(claim)}")
            if claims:
                await self._edit(lambda gateway: without_listeners(gateway, claims))
                log.info("gateway.freed", ports=[claim.port for claim in claims])
        except Refused as error:
            if error.code != _NOT_FOUND:
                raise

    async def _edit(self, change: Callable[[Json], Json]) -> Json:
        """Put back what ``change`` makes of the Gateway, and return it as it is then. Only under the lock."""
        for attempt in range(MAX_TRIES):
            gateway = await self._api.get(self._path, Json)
            changed = change(gateway)
            if changed == gateway:
                return gateway
            try:
                answer = await self._api.request("PUT", self._path, body=changed)
            except Refused as error:
                if error.code != _CONFLICT:
                    raise
                log.info("gateway.conflict", attempt=attempt)
                first_s, longest_s = CONFLICT_PAUSES_S
                await asyncio.sleep(min(first_s * 2**attempt, longest_s) * random.random())  # noqa: S311  jitter
                continue
            return msgspec.json.decode(answer, type=Json)
        raise Unavailable(f"too many others edit the Gateway {self._config.gateway_name}")

    def _words(self, wanted: Wanted, error: Exception) -> str:
        count = len(wanted.task_ports)
        return f"adding {count} listeners to gateway: updating gateway with name '{self._config.gateway_name}': {error}"


def _wanted(launcher: str, tracked: TrackedAllocation, services: Collection[Json]) -> Wanted:
    first, *_ = services
    return Wanted(
        launcher=launcher,
        allocation=tracked.allocation,
        namespace=first["metadata"]["namespace"],
        job=tracked.job_name,
        task_ports=tuple(service["spec"]["ports"][0]["port"] for service in services),
    )


def _of(allocation: str, claims: Collection[Claim]) -> list[Claim]:
    return [claim for claim in claims if claim.allocation == allocation]


def _by_allocation(gateway: Json, launcher: str) -> list[Claim]:
    return sorted(claims_of(gateway, launcher), key=attrgetter("allocation", "port"))
