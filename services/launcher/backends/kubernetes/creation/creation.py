"""Creates the objects of orders: a few at a time, in their order, and not at all when withdrawn before.

An allocation that is killed while it waits for its turn costs nothing. One that cannot be made leaves nothing behind,
and the words of the API server tell why. Source: docs/reference/kubernetes.md 9.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import structlog

from libs.errors import InvalidRequest, NotFound, PermissionDenied, Unavailable
from libs.events.orders import Order, TaskSpec
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.connection import RIGHTS
from services.launcher.backends.kubernetes.client.objects import Job, Named
from services.launcher.backends.kubernetes.client.paths import paths_in
from services.launcher.backends.kubernetes.gateway.task_gateway import TaskGateway
from services.launcher.backends.kubernetes.manifests.names import launcher_id
from services.launcher.backends.kubernetes.manifests.task_objects import fingerprint_of, manifests, name_of, owned
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits
from services.launcher.backends.kubernetes.namespaces.lifecycle import Namespaces
from services.launcher.container.trust import TaskTrust

log = structlog.get_logger()

FIRST_PAUSE_S: Final = 0.5
LAST_PAUSE_S: Final = 30.0
MAX_RETRIES_PER_S: Final = 20
_EXISTS: Final = 409
_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403
_UNAUTHENTICATED: Final = 401
"""Our own trouble, and not that of the task."""


class Creation:
    """``priority_class_of`` names the class of a task's pods; ``created`` is told of every allocation that was made."""

    def __init__(
        self,
        api: KubeApi,
        *,
        namespaces: Namespaces,
        traits: PoolTraits,
        trust: TaskTrust,
        tracker: Tracker,
        priority_class_of: Callable[[TaskSpec], Awaitable[str | None]],
        created: Callable[[TrackedAllocation], None],
        background: Background,
        gateway: TaskGateway | None = None,
    ) -> None:
        self._api = api
        self._namespaces = namespaces
        self._traits = traits
        self._trust = trust
        self._tracker = tracker
        self._priority_class_of = priority_class_of
        self._created = created
        self._background = background
        self._pauses: dict[str, float] = {}
        """By allocation: how long those that were put off wait before the next attempt, in seconds."""
        self._unanswered: set[str] = set()
        """Allocations whose Job may be there: nobody has answered the request for it."""
        self._gateway = gateway
        self._queue: asyncio.Queue[tuple[TrackedAllocation, Order]] = asyncio.Queue()

    def put(self, tracked: TrackedAllocation, order: Order) -> None:
        """Make the objects of ``order`` when its turn comes."""
        self._queue.put_nowait((tracked, order))

    async def work(self) -> None:
        """One of the workers; runs until cancelled."""
        while True:
            tracked, order = await self._queue.get()
            if tracked.intent.refusal is None:
                await self._make(tracked, order)
            else:
                self._settle(tracked)

    async def _make(self, tracked: TrackedAllocation, order: Order) -> None:
        """One attempt. What is put off comes back later, and holds up nobody else meanwhile."""
        tracked.intent.begin_creation()
        try:
            if tracked.intent.stop is not None and tracked.observed.job is None:
                await self._withdraw(tracked)
            else:
                await self._attempt(tracked, order)
        except (InvalidRequest, NotFound, PermissionDenied) as error:
            self._give_up(tracked, str(error))
        except (Refused, Unavailable) as error:
            if isinstance(error, Refused) and error.code != _UNAUTHENTICATED:
                self._give_up(tracked, str(error))
            else:
                log.warning("kubernetes.creation_retried", allocation=tracked.allocation, error=str(error))
                self._background.create_task(self._again(tracked, order), name=f"again {tracked.allocation}")
        except Exception:
            # A bug of ours with this order must not take the worker from all others.
            log.exception("kubernetes.creation_failed", allocation=tracked.allocation)
            self._give_up(tracked, "the launcher could not make the pods of this task: see its log")

    async def _again(self, tracked: TrackedAllocation, order: Order) -> None:
        pause_s = self._pauses.get(tracked.allocation, FIRST_PAUSE_S)
        self._pauses[tracked.allocation] = min(pause_s * 2, LAST_PAUSE_S)
        # Where many were put off, the server has trouble enough.
        pause_s = max(pause_s, min(len(self._pauses) / MAX_RETRIES_PER_S, 2 * LAST_PAUSE_S))
        if tracked.observed.job is None and tracked.allocation not in self._unanswered:
            # Nothing of it is there: a stop need not wait for its turn.
            tracked.intent.enqueue()
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311
        self.put(tracked, order)

    async def _withdraw(self, tracked: TrackedAllocation) -> None:
        """Make nothing more. A Job that is there after all is stopped as any other."""
        if await self._has_job(tracked):
            tracked.intent.end_creation()
            self._finish(tracked)
        else:
            self._refuse(tracked, "", withdrawn=True)

    async def _has_job(self, tracked: TrackedAllocation) -> bool:
        """Whether a Job is known, or found where the request for it was not answered. Raises Refused, Unavailable."""
        if tracked.observed.job is None and tracked.allocation in self._unanswered:
            try:
                found = await self._api.get(paths_in(tracked.namespace).job(tracked.job_name), Job)
            except Refused as error:
                if error.code != _NOT_FOUND:
                    raise
            else:
                if found.metadata.labels.launcher == launcher_id(self._traits.cluster_id, self._traits.pool):
                    self._tracker.on_job(found)
            self._unanswered.discard(tracked.allocation)
        return tracked.observed.job is not None

    async def _attempt(self, tracked: TrackedAllocation, order: Order) -> None:
        assert order.spec is not None
        await self._namespaces.prepare(tracked.namespace)
        if tracked.intent.stage == "created":
            # It was all there, where nobody had looked before.
            self._finish(tracked)
            return
        paths = paths_in(tracked.namespace)
        sees_nodes = self._tracker.nodes is not None
        traits = msgspec.structs.replace(self._traits, master_cert=self._trust.read(), sees_nodes=sees_nodes)
        made = manifests(order, traits, priority_class=await self._priority_class_of(order.spec))
        job, is_new = await self._create_job(tracked, made.job)
        self._tracker.on_job(job)
        for manifest in made.jobs[1:]:
            other, _ = await self._create_job(tracked, manifest)
            self._tracker.on_job(other)
        uid = job.metadata.uid
        for manifest in made.network_policies:
            await self._create_policy(tracked.namespace, manifest, made.name, uid, is_new=is_new)
        # Listeners before what leads to them: their ports are only known then.
        routes = await self._gateway.claim(tracked, order.spec, made.services) if self._gateway is not None else ()
        for manifest in made.secrets:
            await self._create_owned(paths.secrets, manifest, made.name, uid, is_new=is_new)
        for manifest in made.services:
            await self._create_owned(paths.services, manifest, made.name, uid, is_new=is_new)
        for manifest in routes:
            await self._create_owned(paths.tcp_routes, manifest, made.name, uid, is_new=is_new)
        await self._create_owned(paths.config_maps, made.config_map, made.name, uid, is_new=is_new)
        tracked.intent.end_creation()
        log.info("kubernetes.created", allocation=tracked.allocation, namespace=tracked.namespace, job=tracked.job_name)
        self._finish(tracked)

    def _finish(self, tracked: TrackedAllocation) -> None:
        self._settle(tracked)
        self._created(tracked)
        self._tracker.look(tracked)

    async def _create_job(self, tracked: TrackedAllocation, manifest: dict[str, Any]) -> tuple[Job, bool]:
        """The Job, and whether it was made just now. Raises Unavailable while another is in the way."""
        paths, name = paths_in(tracked.namespace), name_of(manifest)
        try:
            return await self._api.create(paths.jobs, manifest, Job), True
        except Unavailable:
            self._unanswered.add(tracked.allocation)
            raise
        except Refused as error:
            if error.code != _EXISTS:
                raise
        try:
            found = await self._api.get(paths.job(name), Job)
        except Refused as error:
            raise Unavailable(f"Job {name} is there, and is not") from error
        metadata = found.metadata
        if metadata.labels.launcher != manifest["metadata"]["labels"]["resolute/launcher"]:
            raise Refused(_EXISTS, "AlreadyExists", f"a Job named {name} is there already, and is somebody else's")
        if metadata.annotations.allocation != tracked.allocation or metadata.deletion_timestamp is not None:
            raise Unavailable(f"Job {name} of allocation {metadata.annotations.allocation} is still there")
        if metadata.annotations.made_of != fingerprint_of(manifest):
            # Begun by a launcher of another version or with other settings: its pods would wait for other files.
            tracked.replace_job(metadata.uid)
            await self._api.delete(paths.job(name), {"propagationPolicy": "Background"})
            raise Unavailable(f"Job {name} was begun in another way")
        return found, False

    async def _create_policy(
        self, namespace: str, manifest: dict[str, Any], job: str, uid: str, *, is_new: bool
    ) -> None:
        """Its pods are not let run without it. Raises PermissionDenied where the right is missing."""
        try:
            await self._create_owned(paths_in(namespace).network_policies, manifest, job, uid, is_new=is_new)
        except Refused as error:
            if error.code != _FORBIDDEN:
                raise
            raise PermissionDenied(
                f"the launcher may not make the network policy of a task in namespace {namespace}: {error}. {RIGHTS}; "
                "kubernetes.task_network.policies: false runs tasks without one"
            ) from error

    async def _create_owned(self, path: str, manifest: dict[str, Any], job: str, uid: str, *, is_new: bool) -> None:
        body = owned(manifest, job=job, uid=uid)
        try:
            await self._api.create(path, body, Named)
        except Refused as error:
            if error.code != _EXISTS:
                raise
            if is_new:
                # Left over from a Job of this name that the cluster is still cleaning up after.
                await self._api.delete(f"{path}/{manifest['metadata']['name']}")
                raise Unavailable(f"an older {manifest['kind']} was in the way") from error

    def _give_up(self, tracked: TrackedAllocation, message: str) -> None:
        """Leave nothing behind, and remember why."""
        log.warning("kubernetes.refused", allocation=tracked.allocation, reason=message)
        if tracked.observed.job is None and tracked.allocation not in self._unanswered:
            self._refuse(tracked, message, withdrawn=tracked.intent.stop is not None)
        else:
            self._background.create_task(self._clear(tracked, message), name=f"clear {tracked.allocation}")

    async def _clear(self, tracked: TrackedAllocation, message: str) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                if await self._has_job(tracked):
                    for part in reversed(tracked.parts):
                        await self._api.delete(
                            paths_in(tracked.namespace).job(part.name), {"propagationPolicy": "Background"}
                        )
                break
            except (Refused, Unavailable) as error:
                log.warning("kubernetes.job_not_deleted", allocation=tracked.allocation, error=str(error))
                if isinstance(error, Refused) and error.code != _UNAUTHENTICATED:
                    # We have lost our rights here. Its pods wait for what was not made; it is removed with its order.
                    break
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, LAST_PAUSE_S)
        self._refuse(tracked, message, withdrawn=tracked.intent.stop is not None)

    def _refuse(self, tracked: TrackedAllocation, message: str, *, withdrawn: bool) -> None:
        self._settle(tracked)
        tracked.intent.refuse(message, withdrawn=withdrawn)
        self._tracker.look(tracked)

    def _settle(self, tracked: TrackedAllocation) -> None:
        """There is no next attempt."""
        self._pauses.pop(tracked.allocation, None)
        self._unanswered.discard(tracked.allocation)
