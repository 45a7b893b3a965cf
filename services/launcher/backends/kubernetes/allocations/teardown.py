"""Stops, ends and removes the objects of an allocation once they exist. Every step may be repeated."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import structlog

from libs.errors import Unavailable
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.observation import outcome_of
from services.launcher.backends.kubernetes.allocations.state.observed_state import is_beyond_reach
from services.launcher.backends.kubernetes.allocations.state.pods import (
    causes_first,
    end_of,
    is_draining,
    is_over,
    reads_until,
)
from services.launcher.backends.kubernetes.allocations.state.status import pods_to_delete
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.objects import ListOf, Pod
from services.launcher.backends.kubernetes.client.paths import paths_in
from services.launcher.backends.kubernetes.manifests.names import LAUNCHER_LABEL, OUTCOME

log = structlog.get_logger()

DRAIN_S: Final = 10
"""Added to the grace of an order where a sidecar has lines to deliver after the task has ended."""
REMOVAL_GRACE_S: Final = 5
VANISH_S: Final = 90.0
"""How long the cluster may take to remove what it was asked to."""
_BACKGROUND: Final = {"propagationPolicy": "Background"}


class Teardown:
    def __init__(
        self,
        api: KubeApi,
        *,
        tracker: Tracker,
        launcher: str,
        sidecar_grace_s: int,
        log_delivery_s: float,
    ) -> None:
        """``sidecar_grace_s`` is what sidecars need to deliver their last lines; 0 where there are none."""
        self._api = api
        self._tracker = tracker
        self._launcher = launcher
        self._sidecar_grace_s = sidecar_grace_s
        self._log_delivery_s = log_delivery_s

    async def send_stop(self, tracked: TrackedAllocation) -> None:
        """Have everything of an allocation deleted whose stop was asked for; returns before it is."""
        stop = tracked.intent.stop
        assert stop is not None
        left_s = max(0.0, stop.deadline - self._tracker.view().now)
        goes_with_job = tracked.observed.job is not None
        if goes_with_job:
            # First the Job: without it nobody puts new pods in the place of those that are deleted.
            await self._delete_jobs(tracked)
        pods = [pod for pod in tracked.observed.pods.values() if end_of(pod) is None or not goes_with_job]
        await self._delete_pods(tracked, pods, left_s=left_s)
        tracked.intent.confirm_stop(stop)

    async def end_rest(self, tracked: TrackedAllocation) -> None:
        """End what is left of an allocation that has failed, and write down with the Job why it has."""
        outcome = tracked.intent.outcome or outcome_of(tracked)
        if tracked.intent.outcome is None:
            tracked.decide(outcome)
        patch = {
            "metadata": {"annotations": {OUTCOME: msgspec.json.encode(outcome).decode()}},
            "spec": {"parallelism": 0},
        }
        log.info("kubernetes.allocation_ending", allocation=tracked.allocation, reason=outcome.reason)
        for part in tracked.parts:
            try:
                await self._api.patch(paths_in(tracked.namespace).job(part.name), patch)
            except Refused as error:
                if error.code != 404:
                    raise
        tracked.intent.confirm_outcome()
        self._tracker.look(tracked)

    async def delete_pods(self, tracked: TrackedAllocation) -> None:
        """Delete the pods that are still there when the rest of an allocation has been ended, with their own grace."""
        for pod in pods_to_delete(tracked.observed, tracked.intent):
            await self._delete_pod(pod, None)
            tracked.intent.request_delete(pod.metadata.name)

    async def list_pods(self, tracked: TrackedAllocation) -> None:
        """Look at the pods of a Job that makes no more, for the watch may be behind."""
        names = [part.name for part in tracked.parts]
        of_jobs = f"job-name={names[0]}" if len(names) == 1 else f"job-name in ({','.join(names)})"
        query = {"labelSelector": f"{LAUNCHER_LABEL}={self._launcher},{of_jobs}"}
        found = await self._api.get(paths_in(tracked.namespace).pods, ListOf[Pod], query)
        for pod in sorted(found.items or (), key=causes_first):
            # The answer may be older than what the watch has told meanwhile.
            if pod.metadata.name not in tracked.observed.ended and not _is_newer(
                tracked.observed.pods.get(pod.metadata.name), pod
            ):
                self._tracker.on_pod(pod)
        tracked.intent.confirm_pods_listed()
        self._tracker.look(tracked)

    async def remove(self, tracked: TrackedAllocation) -> None:
        """Delete everything of an allocation that has ended, and wait for that.

        Raises Unavailable when it takes too long.
        """
        await self._let_sidecars_finish(tracked)
        goes_with_job = tracked.observed.job is not None
        if goes_with_job:
            await self._delete_jobs(tracked)
        # Whatever still runs beside the task may have asked for a long grace for itself.
        left = [pod for pod in tracked.observed.pods.values() if not goes_with_job or not is_over(pod)]
        await self._delete_pods(tracked, left, left_s=max(self._sidecar_grace_s, REMOVAL_GRACE_S))
        await self._force_unreachable(tracked)
        if not await self._tracker.wait_until(
            tracked, lambda: tracked.observed.job is None and not tracked.observed.pods, VANISH_S
        ):
            await self._force_unreachable(tracked)
            raise Unavailable(f"the objects of allocation {tracked.allocation} are still being deleted")

    async def _delete_jobs(self, tracked: TrackedAllocation) -> None:
        # The first last: where it is left, everything is found again.
        for part in reversed(tracked.parts):
            await self._api.delete(paths_in(tracked.namespace).job(part.name), _BACKGROUND)

    async def _delete_pods(self, tracked: TrackedAllocation, pods: Iterable[Pod], *, left_s: float) -> None:
        drain_s = min(DRAIN_S, self._sidecar_grace_s)
        view = self._tracker.view()
        async with asyncio.TaskGroup() as tasks:
            for pod in pods:
                is_lost = bool(view.lost.words(pod.spec.node_name))
                # With zero the cluster forgets the pod without asking its node: only for nodes that are gone.
                grace_s = 0 if is_lost else max(1, math.ceil(left_s) + drain_s)
                tasks.create_task(self._delete_pod(pod, grace_s))

    async def _delete_pod(self, pod: Pod, grace_s: int | None) -> None:
        body: dict[str, Any] = {"preconditions": {"uid": pod.metadata.uid}}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            await self._api.delete(paths_in(pod.metadata.namespace).pod(pod.metadata.name), body)
        except Refused as error:
            if error.code != 409:  # it is another pod by now
                raise

    async def _force_unreachable(self, tracked: TrackedAllocation) -> None:
        view = self._tracker.view()
        for pod in list(tracked.observed.pods.values()):
            if is_beyond_reach(pod, view):
                log.warning("kubernetes.pod_force_deleted", pod=pod.metadata.name, node=pod.spec.node_name)
                await self._delete_pod(pod, 0)

    async def _let_sidecars_finish(self, tracked: TrackedAllocation) -> None:
        """Wait while nothing but sidecars runs, which end by themselves when they have delivered everything, and while
        one that nobody has asked to end may still read what a task has left that was killed."""

        def are_done() -> bool:
            return not any(is_draining(pod) for pod in tracked.observed.pods.values())

        def has_read() -> bool:
            return not any(reads_until(pod) for pod in tracked.observed.pods.values())

        until = max((reads_until(pod) for pod in tracked.observed.pods.values()), default=0.0)
        await self._tracker.wait_until(tracked, has_read, min(until - self._tracker.view().now, self._log_delivery_s))
        if not await self._tracker.wait_until(tracked, are_done, self._log_delivery_s):
            log.warning("kubernetes.sidecars_slow", allocation=tracked.allocation)


def _is_newer(known: Pod | None, pod: Pod) -> bool:
    """Whether ``known`` is not older than ``pod``. Versions are numbers that grow, since Kubernetes 1.35 officially."""
    if known is None:
        return False
    versions = known.metadata.resource_version, pod.metadata.resource_version
    return not all(version.isdigit() for version in versions) or int(versions[0]) >= int(versions[1])
