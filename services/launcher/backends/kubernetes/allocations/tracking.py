"""Tracker of all allocations of a launcher: informers tell it, and it tells who has to know and what is due.

Existence is worked out when something changes rather than when somebody asks, because somebody asks all the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

import msgspec
import structlog

from libs.clock import Clock
from libs.telemetry import histogram
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.intent import Intent, Outcome
from services.launcher.backends.kubernetes.allocations.state.lost_nodes import LostNodes
from services.launcher.backends.kubernetes.allocations.state.observed_state import ObservedState
from services.launcher.backends.kubernetes.allocations.state.pods import end_of, is_over, was_silenced
from services.launcher.backends.kubernetes.allocations.state.view import View
from services.launcher.backends.kubernetes.client.objects import Job, Node, Pod
from services.launcher.backends.kubernetes.manifests.job_parts import parts_in
from services.launcher.reconcile import Existence

log = structlog.get_logger()

LOOKS: Final = histogram(
    "resolute_launcher_kubernetes_look_seconds", "Time to work out what a change means", buckets=(0.0001, 0.001, 0.01)
)

CAPACITY: Final = ""
"""A notification about no allocation: who holds what on the nodes may have changed."""
GATHER_S: Final = 0.025
"""Changes that come within this time of one another are told together: each telling costs a look at all orders."""
DEADLOCK_AFTER_S: Final = 600.0


class Listener(Protocol):
    """What has to be told to people, as it happens."""

    def failed_pod(self, tracked: TrackedAllocation, pod: Pod) -> None:
        """A pod has ended badly by itself."""
        ...

    def silenced_pod(self, tracked: TrackedAllocation, pod: Pod) -> None:
        """Nothing of a pod runs any more, and nobody was left to write that its output has ended."""
        ...

    def out_of_sight(self, tracked: TrackedAllocation) -> None:
        """Nobody can see what becomes of it."""
        ...

    def partly_ready(self, tracked: TrackedAllocation) -> None:
        """Only some pods of a gang have found a place, for a long time."""
        ...


class Tracker:
    """The allocations in all namespaces, by allocation and by namespace and name of their Job."""

    def __init__(
        self, *, pool: str, clock: Clock, stuck_grace_s: float, listener: Listener, gang_grace_s: float = 60.0
    ) -> None:
        self.pool = pool
        self._clock = clock
        self._stuck_grace_s = stuck_grace_s
        self._gang_grace_s = gang_grace_s
        self._listener = listener
        self.allocations: dict[str, TrackedAllocation] = {}
        self._by_job: dict[tuple[str, str], TrackedAllocation] = {}
        self._by_pod: dict[tuple[str, str], TrackedAllocation] = {}
        self._existence: dict[str, Existence] = {}
        self.existing: Mapping[str, Existence] = MappingProxyType(self._existence)
        self.nodes: dict[str, Node] | None = None
        """By name; None where they may not be seen."""
        self.known_namespaces: set[str] = set()
        """Of which everything was read. A Job of ours that is found there later, and that nobody here has made, was
        asked for by a launcher before us just before its end: nobody but us is to finish it."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._partly_since: dict[str, float] = {}
        self._notifications: dict[str, None] = {}
        self._due: dict[str, TrackedAllocation] = {}
        """What has to be reacted to, by allocation."""
        self._is_due = asyncio.Event()
        self._lost_nodes: set[str] = set()
        self._wake = asyncio.Event()
        self._changed: dict[str, asyncio.Event] = {}
        """Of allocations that somebody waits for; one at a time."""

    def view(self) -> View:
        return View(
            now=self._clock.now().timestamp(),
            lost=LostNodes(self.nodes),
            stuck_grace_s=self._stuck_grace_s,
            gang_grace_s=self._gang_grace_s,
        )

    def add(self, tracked: TrackedAllocation) -> bool:
        """Take in a new allocation; False when the name of its Job is another's still."""
        if any(self._by_job.get(key, tracked) is not tracked for key in tracked.keys):
            return False
        self.allocations[tracked.allocation] = tracked
        self._by_job.update(dict.fromkeys(tracked.keys, tracked))
        self.look(tracked)
        return True

    def forget(self, tracked: TrackedAllocation) -> None:
        self.allocations.pop(tracked.allocation, None)
        self._drop_names(tracked)
        self._existence.pop(tracked.allocation, None)
        self._partly_since.pop(tracked.allocation, None)
        self._due.pop(tracked.allocation, None)
        if timer := self._timers.pop(tracked.allocation, None):
            timer.cancel()
        self.notify(tracked.allocation)

    def owner_of(self, kind: str, namespace: str, name: str) -> TrackedAllocation | None:
        """The allocation that a Job or a pod belongs to, or belonged to; None for anything else."""
        if kind not in ("Job", "Pod"):
            return None
        if kind == "Job":
            return self._by_job.get((namespace, name))
        # A pod may be spoken of before it is seen.
        return self._by_pod.get((namespace, name)) or self._by_job.get((namespace, name.rpartition("-")[0]))

    def allocations_in(self, namespace: str) -> list[TrackedAllocation]:
        return [tracked for tracked in self.allocations.values() if tracked.namespace == namespace]

    def used_namespaces(self) -> set[str]:
        """Where there are runs, or will be."""
        return {tracked.namespace for tracked in self.allocations.values()}

    def lose_sight(self, namespace: str, words: str) -> None:
        """Nobody can see any more what is in a namespace, and ``words`` say why: what lived there lives on for us."""
        for tracked in self.allocations_in(namespace):
            if self._existence.get(tracked.allocation) is not Existence.ENDED and tracked.intent.stage in (
                "abandoned",
                "created",
            ):
                is_new = not tracked.observed.out_of_sight
                tracked.observed.on_out_of_sight(words)
                self.look(tracked)
                if is_new:
                    self._listener.out_of_sight(tracked)

    def regain_sight(self, namespace: str) -> None:
        """Everything in a namespace was told. What had only been written down, and is not there, was deleted."""
        for tracked in self.allocations_in(namespace):
            if tracked.observed.out_of_sight:
                tracked.observed.on_in_sight()
                self.look(tracked)

    def lose_all(self, namespace: str, words: str) -> None:
        """A namespace is gone, and everything in it; ``words`` say so."""
        view = self.view()
        for tracked in self.allocations_in(namespace):
            tracked.observed.on_namespace_deleted(words, intent=tracked.intent, view=view)
            self.look(tracked)

    def look(self, tracked: TrackedAllocation) -> None:
        """Work out what follows from the present state of an allocation, and tell."""
        with LOOKS.time():
            view = self.view()
            status = tracked.refresh(view)
            if tracked.intent.is_abandoned and tracked.observed.job_vanished and not tracked.observed.pods:
                log.info("kubernetes.abandoned_gone", allocation=tracked.allocation)
                self.forget(tracked)
                return
            self._existence[tracked.allocation] = status.existence
            self._set_timer(tracked, view)
            if event := self._changed.get(tracked.allocation):
                event.set()
            self.notify(tracked.allocation)
        if status.reaction is not None:
            self._due[tracked.allocation] = tracked
            self._is_due.set()

    def notify(self, allocation: str) -> None:
        self._notifications[allocation] = None
        self._wake.set()

    async def next_notification(self) -> str:
        """The id of something that may have changed."""
        while not self._notifications:
            self._wake.clear()
            await self._wake.wait()
            await asyncio.sleep(GATHER_S)
        allocation = next(iter(self._notifications))
        del self._notifications[allocation]
        return allocation

    async def next_due(self) -> TrackedAllocation:
        """An allocation whose status calls for a reaction."""
        while not self._due:
            self._is_due.clear()
            await self._is_due.wait()
        return self._due.pop(next(iter(self._due)))

    async def wait_until(self, tracked: TrackedAllocation, is_so: Callable[[], bool], timeout_s: float) -> bool:
        """Whether ``is_so`` became true within ``timeout_s``; it is asked whenever it has changed."""
        event = self._changed.setdefault(tracked.allocation, asyncio.Event())
        try:
            async with asyncio.timeout(timeout_s):
                while not is_so():
                    event.clear()
                    await event.wait()
        except TimeoutError:
            return False
        finally:
            self._changed.pop(tracked.allocation, None)
        return True

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def on_job(self, job: Job) -> None:
        tracked = self._by_job.get((job.metadata.namespace, job.metadata.name))
        if tracked is None:
            tracked = self._adopt(job.metadata.name, job=job)
            if tracked is None:
                return
        elif job.metadata.uid in tracked.intent.replaced_jobs:
            return
        elif tracked.intent.stage != "created" and tracked.observed.job is None:
            if _allocation_of(job) != tracked.allocation:
                return  # another's, in the way
            self._restore(tracked, job)
        elif tracked.observed.job_names and job.metadata.name not in tracked.observed.jobs:
            self._on_other_job(tracked, job)
        tracked.observed.on_job(job)
        self.look(tracked)

    def on_job_deleted(self, job: Job) -> None:
        tracked = self._by_job.get((job.metadata.namespace, job.metadata.name))
        known = tracked.observed.jobs.get(job.metadata.name) if tracked is not None else None
        if tracked is not None and known is not None and known.metadata.uid == job.metadata.uid:
            tracked.observed.on_job_deleted(job.metadata.name)
            self.look(tracked)

    def on_pod(self, pod: Pod) -> None:
        namespace, name = pod.metadata.namespace, pod.job or pod.metadata.name
        tracked = self._by_job.get((namespace, name)) or self._adopt(name, pod=pod)
        if tracked is None or pod.job_uid in tracked.intent.replaced_jobs:
            return
        view = self.view()
        before = tracked.observed.pods.get(pod.metadata.name)
        self._by_pod[namespace, pod.metadata.name] = tracked
        tracked.observed.on_pod(pod, intent=tracked.intent, view=view)
        self.look(tracked)
        self._notice_failure(tracked, before, pod)
        if is_over(pod) and not (before is not None and is_over(before)):
            self._notice_silence(tracked, pod)
        self._notice_deadlock(tracked, view.now)

    def on_pod_deleted(self, pod: Pod) -> None:
        tracked = self._by_job.get((pod.metadata.namespace, pod.job or pod.metadata.name))
        if tracked is not None and pod.metadata.name in tracked.observed.pods:
            view = self.view()
            before = tracked.observed.pods[pod.metadata.name]
            self._notice_failure(tracked, before, pod)
            if not is_over(before):
                self._notice_silence(tracked, pod)
            tracked.observed.on_pod_deleted(pod, intent=tracked.intent, view=view)
            self.look(tracked)

    def on_quota_exceeded(self, tracked: TrackedAllocation) -> None:
        """The Job controller could not make a pod within the quota."""
        tracked.observed.on_quota_exceeded()
        self.look(tracked)

    def on_create_failure(self, tracked: TrackedAllocation, message: str) -> None:
        """The Job controller could not make a pod, for another reason."""
        tracked.observed.on_create_failure(message, now=self.view().now)
        self.look(tracked)

    def node_changed(self, name: str) -> None:
        """A node came, went, or is in another state: pods on it may be lost, or found again."""
        self.notify(CAPACITY)
        is_lost = bool(LostNodes(self.nodes).words(name))
        was_lost = name in self._lost_nodes
        (self._lost_nodes.add if is_lost else self._lost_nodes.discard)(name)
        if is_lost or was_lost:
            for tracked in [tracked for tracked in self.allocations.values() if _is_on(tracked, name)]:
                self.look(tracked)

    def _adopt(self, job_name: str, *, job: Job | None = None, pod: Pod | None = None) -> TrackedAllocation | None:
        """An allocation of a launcher before us; None for what calls itself an allocation that is known otherwise."""
        found = job or pod
        assert found is not None
        allocation = _allocation_of(found)
        known = self.allocations.get(allocation)
        if known is not None and not (
            known.is_remembered and (known.observed.out_of_sight or known.intent.is_abandoned)
        ):
            metadata = found.metadata
            # Made by hand; whoever made it has to remove it.
            log.warning(
                "kubernetes.duplicate_allocation",
                allocation=allocation,
                namespace=metadata.namespace,
                name=metadata.name,
            )
            return None
        notes = found.metadata.annotations
        is_fresh = job is not None and job.metadata.deletion_timestamp is None and not job.status.conditions
        namespace = found.metadata.namespace
        parts = parts_in(notes.jobs)
        completions = job.spec.completions if job is not None else None
        tracked = TrackedAllocation(
            allocation=allocation,
            task=notes.task,
            pool=self.pool,
            job_name=parts[0].name if parts else job_name,
            namespace=namespace,
            slots_per_pod=int(notes.slots_per_pod) if notes.slots_per_pod.isdigit() else 0,
            observed=ObservedState(
                num_pods=sum(part.pods for part in parts) or completions or 1,
                job_names=tuple(part.name for part in parts),
            ),
            intent=Intent(
                stage="abandoned" if is_fresh and namespace in self.known_namespaces else "created",
                stop=known.intent.stop if known is not None else None,
            ),
            view=self.view(),
            parts=parts,
        )
        if known is not None:
            self._drop_names(known)
        if job is not None:
            self._restore(tracked, job)
        self._by_job.update(dict.fromkeys(tracked.keys, tracked))
        self.allocations[allocation] = tracked
        log.info("kubernetes.adopted", allocation=allocation, namespace=tracked.namespace, job=job_name)
        return tracked

    def _drop_names(self, tracked: TrackedAllocation) -> None:
        for key in tracked.keys:
            if self._by_job.get(key) is tracked:
                del self._by_job[key]
        for name in (*tracked.observed.pods, *tracked.observed.ended):
            self._by_pod.pop((tracked.namespace, name), None)

    def _on_other_job(self, tracked: TrackedAllocation, job: Job) -> None:
        """Another of several Jobs is seen for the first time."""
        if tracked.intent.outcome is None:
            self._restore(tracked, job)
        if tracked.intent.is_stop_sent:
            tracked.intent.repeat_stop()  # it came to be after the others were deleted

    def _restore(self, tracked: TrackedAllocation, job: Job) -> None:
        """Take in what a launcher before us wrote down about how it ended."""
        text = job.metadata.annotations.outcome
        if not text:
            return
        try:
            tracked.restore(msgspec.json.decode(text, type=Outcome))
        except msgspec.DecodeError as error:
            # Somebody edited it. Without it the failure is told in fewer words.
            log.error("kubernetes.outcome_unreadable", allocation=tracked.allocation, error=str(error))

    def _set_timer(self, tracked: TrackedAllocation, view: View) -> None:
        if timer := self._timers.pop(tracked.allocation, None):
            timer.cancel()
        at = tracked.status.next_change
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timers[tracked.allocation] = loop.call_later(
                max(0.0, at - view.now) + 0.01, self._look_again, tracked
            )

    def _look_again(self, tracked: TrackedAllocation) -> None:
        if self.allocations.get(tracked.allocation) is tracked:
            self.look(tracked)
            self._notice_deadlock(tracked, self.view().now)

    def _notice_failure(self, tracked: TrackedAllocation, before: Pod | None, pod: Pod) -> None:
        end = end_of(pod)
        is_new = before is None or end_of(before) is None
        if end is not None and end.exit_code and is_new and not tracked.intent.is_end_requested:
            self._listener.failed_pod(tracked, pod)

    def _notice_silence(self, tracked: TrackedAllocation, pod: Pod) -> None:
        if was_silenced(pod):
            self._listener.silenced_pod(tracked, pod)

    def _notice_deadlock(self, tracked: TrackedAllocation, now: float) -> None:
        if not tracked.is_partly_scheduled:
            self._partly_since.pop(tracked.allocation, None)
        elif tracked.allocation not in self._partly_since:
            self._partly_since[tracked.allocation] = now
            loop = asyncio.get_running_loop()
            loop.call_later(DEADLOCK_AFTER_S + 0.01, self._look_again, tracked)
        elif now >= self._partly_since[tracked.allocation] + DEADLOCK_AFTER_S:
            self._partly_since[tracked.allocation] = float("inf")
            self._listener.partly_ready(tracked)


def _allocation_of(found: Job | Pod) -> str:
    return found.metadata.annotations.allocation or found.metadata.labels.allocation


def _is_on(tracked: TrackedAllocation, node: str) -> bool:
    return any(pod.spec.node_name == node for pod in tracked.observed.pods.values())
