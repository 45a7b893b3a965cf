"""Informers of a launcher: the nodes of the cluster and the pods of others, and in each namespace what is its own.

What it may not see, it does without: nodes (capacity comes from quotas or the settings then), the pods of others, what
Dynamic Resource Allocation offers, quotas, events. Jobs and pods of a namespace in which it is to work it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import structlog

from libs.run_until_first_exits import end
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.pods import causes_first, phase_of
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.capacity.tracker import CapacityTracker
from services.launcher.backends.kubernetes.client.api import ONLY_METADATA, KubeApi, Refused
from services.launcher.backends.kubernetes.client.informer import EventHandler, Informer
from services.launcher.backends.kubernetes.client.objects import (
    ApiGroup,
    Event,
    Job,
    ListOf,
    Named,
    Node,
    Pod,
    ResourceQuota,
    ResourceSlice,
    SlimPod,
)
from services.launcher.backends.kubernetes.client.paths import (
    ALL_PODS,
    NODES,
    RESOURCE_GROUP,
    paths_in,
    resource_slices,
)
from services.launcher.backends.kubernetes.manifests.names import ALLOCATION_LABEL, LAUNCHER_LABEL

log = structlog.get_logger()

_FORBIDDEN: Final = 403
_NOT_SERVED: Final = 404
_UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class InformerGroup:
    """Reads and follows what may be seen, until it is closed."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, informer: Informer[Any]) -> None:
        task = self._background.create_task(informer.run(), name=f"watch {informer.what}")
        if task is not None:
            self._tasks.append(task)

    async def start_if_allowed(self, informer: Informer[Any], *, may_be_unserved: bool = False) -> None:
        """Follow it unless that is forbidden. Raises Refused and Unavailable.

        may_be_unserved  servers need not have the kind, and nothing is followed then
        """
        try:
            await informer.read_list()
        except Refused as error:
            if error.code == _FORBIDDEN:
                log.warning("kubernetes.list_forbidden", what=informer.what, reason=str(error))
                return
            if error.code == _NOT_SERVED and may_be_unserved:
                log.info("kubernetes.list_not_served", what=informer.what, reason=str(error))
                return
            raise
        self.start(informer)

    async def close(self) -> None:
        await end(*self._tasks)
        self._tasks.clear()


class ClusterInformers:
    """Nodes, and the pods of others on them."""

    def __init__(
        self, api: KubeApi, *, launcher: str, capacity_tracker: CapacityTracker, background: Background
    ) -> None:
        foreign = {"labelSelector": f"{LAUNCHER_LABEL}!={launcher}", "fieldSelector": _UNFINISHED}
        self._api = api
        self._slices_handler = capacity_tracker.slices
        self._group = InformerGroup(background)
        self._nodes = Informer(api, what="nodes", path=NODES, kind=Node, handler=capacity_tracker.nodes)
        self._others = Informer(
            api, what="pods of others", path=ALL_PODS, kind=SlimPod, handler=capacity_tracker.others, query=foreign
        )

    async def start(self) -> None:
        """To be called before any of our pods is seen, because nodes say which of them are lost."""
        for optional in (self._nodes, self._others):
            await self._group.start_if_allowed(optional)
        if self._nodes.synced.is_set() and (path := await self._path_of_slices()) is not None:
            slices = Informer(
                self._api, what="resource slices", path=path, kind=ResourceSlice, handler=self._slices_handler
            )
            # Releases 1.26 to 1.29 with the alpha of the group have it without this kind.
            await self._group.start_if_allowed(slices, may_be_unserved=True)

    async def _path_of_slices(self) -> str | None:
        """Where the server may have devices of Dynamic Resource Allocation; None if it lacks them, or does not say."""
        try:
            group = await self._api.get(RESOURCE_GROUP, ApiGroup)
        except Refused as error:
            if error.code not in (_NOT_SERVED, _FORBIDDEN):
                raise
            return None
        version = group.preferred_version.version
        return resource_slices(version) if version else None


class NamespaceInformers:
    """Our Jobs and pods in one namespace, its quotas and events.

    refused  told when the server will not show what is needed any more; it is asked again until the watch is closed
    """

    def __init__(
        self,
        api: KubeApi,
        *,
        namespace: str,
        launcher: str,
        tracker: Tracker,
        capacity_tracker: CapacityTracker,
        events: EventHandler[Event],
        background: Background,
        refused: Callable[[Refused], None],
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._launcher = launcher
        self._tracker = tracker
        self._group = InformerGroup(background)
        mine = {"labelSelector": f"{LAUNCHER_LABEL}={launcher}"}
        paths = self._paths = paths_in(namespace)
        jobs, pods = _Jobs(tracker), _Pods(tracker)
        self._jobs = Informer(api, what="jobs", path=paths.jobs, kind=Job, handler=jobs, query=mine, refused=refused)
        self._pods = Informer(
            api,
            what="pods",
            path=paths.pods,
            kind=Pod,
            handler=pods,
            query=mine,
            refused=refused,
            order=causes_first,
        )
        self._optional: tuple[Informer[Any], ...] = (
            Informer(
                api, what="resource quotas", path=paths.quotas, kind=ResourceQuota, handler=capacity_tracker.quotas
            ),
            Informer(api, what="events", path=paths.events, kind=Event, handler=events, caches=False),
        )

    async def open(self) -> None:
        """Read everything there is, and follow it. Raises Refused and Unavailable, and follows nothing then."""
        observed = [tracked.observed for tracked in self._tracker.allocations_in(self._namespace)]
        known = [(tuple(each.jobs.values()), tuple(each.pods.values())) for each in observed]
        self._tracker.known_namespaces.discard(self._namespace)
        # Jobs before pods: what is known of a Job decides what the end of a pod means.
        await self._jobs.read_list()
        await self._pods.read_list()
        self._drop_deleted(known)
        try:
            await self._tell_apart()
            self._tracker.known_namespaces.add(self._namespace)
            for needed in (self._jobs, self._pods):
                self._group.start(needed)
            for optional in self._optional:
                await self._group.start_if_allowed(optional)
        except BaseException:
            await self.close()
            raise
        self._tracker.regain_sight(self._namespace)

    async def close(self) -> None:
        await self._group.close()

    def _drop_deleted(self, known: list[tuple[tuple[Job, ...], tuple[Pod, ...]]]) -> None:
        """What was ``known`` before everything was read, and is not there, was deleted while nobody looked."""
        for jobs, pods in known:
            for job in jobs:
                if (self._namespace, job.metadata.name) not in self._jobs.items:
                    self._tracker.on_job_deleted(job)
            for pod in pods:
                if (self._namespace, pod.metadata.name) not in self._pods.items:
                    self._tracker.on_pod_deleted(pod)

    async def _tell_apart(self) -> None:
        """What the launcher before us had made, and what it had only begun."""
        query = {"labelSelector": f"{LAUNCHER_LABEL}={self._launcher},{ALLOCATION_LABEL}"}
        made = await self._api.get(self._paths.config_maps, ListOf[Named], query, accept=ONLY_METADATA)
        complete = {item.metadata.labels.job or item.metadata.name for item in made.items or ()}
        for tracked in self._tracker.allocations_in(self._namespace):
            if tracked.job_name not in complete and _may_be_abandoned(tracked):
                log.warning("kubernetes.abandoned", allocation=tracked.allocation, job=tracked.job_name)
                tracked.intent.mark_abandoned()
                self._tracker.look(tracked)
            elif tracked.job_name in complete and tracked.intent.is_in_creation and tracked.observed.job is not None:
                tracked.intent.end_creation()  # before its order came to us
                tracked.observed.on_all_jobs_told()
                self._tracker.look(tracked)
            elif tracked.observed.job_names and tracked.intent.stage == "created":
                tracked.observed.on_all_jobs_told()
                self._tracker.look(tracked)


def _may_be_abandoned(tracked: TrackedAllocation) -> bool:
    """Whether nothing of it has begun, which it cannot before everything was made; and nobody makes it now."""
    observed, job = tracked.observed, tracked.observed.job
    begun = any(phase_of(pod) not in ("ASSIGNED", "PULLING") for pod in observed.pods.values()) or bool(observed.ended)
    if job is None or job.metadata.deletion_timestamp is not None or job.status.conditions:
        return False
    return tracked.intent.stage == "created" and not begun and tracked.intent.outcome is None


class _Jobs:
    def __init__(self, tracker: Tracker) -> None:
        self.on_upsert = tracker.on_job
        self.on_delete = tracker.on_job_deleted


class _Pods:
    def __init__(self, tracker: Tracker) -> None:
        self.on_upsert = tracker.on_pod
        self.on_delete = tracker.on_pod_deleted
