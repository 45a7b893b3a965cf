"""Reporters to the owner of a task, who reads its log: events of the cluster, and words of broken containers.

What the scheduler has to know goes over the bus instead (``services/launcher/reports.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from libs.capture.lines import STREAMS
from libs.clock import Clock
from libs.cluster.config import SlotType
from libs.errors import Unavailable
from libs.loglines.batches import container_key, end_of_writer
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.pods import failed_containers, undelivered_of
from services.launcher.backends.kubernetes.allocations.task_log.events import (
    CREATE_FAILED,
    batch_of,
    is_about_quota,
    line_batch,
    line_number,
    missing_class,
    text_of,
)
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.objects import Event, Pod
from services.launcher.backends.kubernetes.client.paths import paths_in
from services.launcher.backends.kubernetes.client.times import unix_s
from services.launcher.backends.kubernetes.manifests.names import FLUENT, INIT, MAIN
from services.launcher.task_lines import Lines

log = structlog.get_logger()

DEADLOCK: Final = (
    "some pods of this task have held their slots for 10 minutes while others are not scheduled; it is possible that "
    "some pods will never be scheduled without adding compute resources or pausing / killing other experiments in the "
    "cluster"
)
_OURS: Final = (MAIN, INIT, FLUENT)


class Reporter:
    """Listens to the tracker."""

    def __init__(self, api: KubeApi, *, lines: Lines, clock: Clock, background: Background) -> None:
        self._api = api
        self._lines = lines
        self._clock = clock
        self._background = background

    def failed_pod(self, tracked: TrackedAllocation, pod: Pod) -> None:
        """Have the last words of its containers read: those that did not come through the capture wrapper."""
        for name, finished_at in failed_containers(pod):
            if name in _OURS:
                words = self._tell_last_words(tracked, pod, name, finished_at)
                self._background.create_task(words, name=f"last words {pod.metadata.name}")

    def silenced_pod(self, tracked: TrackedAllocation, pod: Pod) -> None:
        """End its streams: its shipper is gone as well, and whoever reads the log waits for the end."""
        printed = undelivered_of(pod) or {}
        for stream in STREAMS:
            key = f"{container_key(tracked.allocation, pod.metadata.name)}/{stream}"
            self._lines.say(end_of_writer(tracked.task, tracked.allocation, key, printed=printed.get(stream)))

    def out_of_sight(self, tracked: TrackedAllocation) -> None:
        self.say(tracked, tracked.observed.out_of_sight)

    def partly_ready(self, tracked: TrackedAllocation) -> None:
        self.say(tracked, DEADLOCK)

    def say(self, tracked: TrackedAllocation, text: str) -> None:
        """A line of our own about an allocation, as of now."""
        now_s = self._clock.now().timestamp()
        number = line_number(now_s, f"{tracked.allocation}/{text}")
        self._lines.say(line_batch(text, task=tracked.task, allocation=tracked.allocation, at_s=now_s, number=number))

    async def _tell_last_words(self, tracked: TrackedAllocation, pod: Pod, container: str, finished_at: str) -> None:
        at_s = unix_s(finished_at) or self._clock.now().timestamp()
        for index, text in enumerate((await self._log_of(pod, container)).splitlines()):
            if text.strip():
                # The same words read again, after a restart, have the same numbers.
                number = line_number(at_s, f"{pod.metadata.name}/{container}/{index}/{text}")
                words = f"Pod {pod.metadata.name}, container {container}: {text}"
                self._lines.say(
                    line_batch(words, task=tracked.task, allocation=tracked.allocation, at_s=at_s, number=number)
                )

    async def _log_of(self, pod: Pod, container: str) -> str:
        """The end of the log that Kubernetes keeps of a container; empty when there is none."""
        query = {"container": container, "tailLines": "50", "limitBytes": "16384"}
        path = paths_in(pod.metadata.namespace).pod(pod.metadata.name)
        try:
            raw = await self._api.get_text(f"{path}/log", query)
        except (Refused, Unavailable) as error:
            log.info("kubernetes.no_pod_log", pod=pod.metadata.name, container=container, error=str(error))
            return ""
        return raw.decode("utf-8", "replace")


class EventReporter:
    """Listens to events of the cluster.

    free_slots_in  slots that are free to a task in a namespace, where that is known
    no_class       is told of priority classes that turn out to be missing
    """

    def __init__(
        self,
        *,
        lines: Lines,
        clock: Clock,
        slot_type: SlotType,
        free_slots_in: Callable[[str], int | None],
        tracker: Tracker,
        no_class: Callable[[str], None],
    ) -> None:
        self._lines = lines
        self._clock = clock
        self._slot_type = slot_type
        self._free_slots_in = free_slots_in
        self._tracker = tracker
        self._no_class = no_class

    def on_upsert(self, item: Event) -> None:
        tracked = self._tracker.owner_of(item.involved_object.kind, item.metadata.namespace, item.involved_object.name)
        if tracked is None:
            return
        free = self._free_slots_in(tracked.namespace)
        # A pod has the name of its Job, and something behind it.
        about = item.involved_object
        slots = tracked.slots_of(about.name if about.kind == "Job" else about.name.rpartition("-")[0])
        text = text_of(item, slots_per_pod=slots, slot_type=self._slot_type, free_slots=free)
        if text is not None:
            self._lines.say(batch_of(item, text, task=tracked.task, allocation=tracked.allocation))
        if (name := missing_class(item)) is not None:
            self._no_class(name)
        if item.reason == CREATE_FAILED and not tracked.observed.has_pods and not tracked.intent.is_end_requested:
            self._notice_refused_pod(tracked, item)

    def on_delete(self, item: Event) -> None:
        """The cluster forgets events after an hour."""

    def _notice_refused_pod(self, tracked: TrackedAllocation, event: Event) -> None:
        if is_about_quota(event):
            self._tracker.on_quota_exceeded(tracked)
        else:
            self._tracker.on_create_failure(tracked, event.message)
