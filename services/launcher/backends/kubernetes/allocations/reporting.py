"""Puts into the task's log what its owner should know: events of the cluster, and last words of broken containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from libs.capture.lines import STREAMS
from libs.clock import Clock
from libs.loglines.batches import container_key, end_of_writer
from services.launcher.backends.kubernetes.allocations.events import (
    CREATE_FAILED,
    batch_of,
    is_about_quota,
    line_batch,
    line_number,
    missing_class,
    text_of,
)
from services.launcher.backends.kubernetes.allocations.lines import Lines
from services.launcher.backends.kubernetes.allocations.pods import failed_containers
from services.launcher.backends.kubernetes.allocations.state import Run
from services.launcher.backends.kubernetes.allocations.teardown import Actor
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.capacity.slots import SlotKind
from services.launcher.backends.kubernetes.capacity.tracker import Holdings
from services.launcher.backends.kubernetes.client.objects import Event, Pod
from services.launcher.backends.kubernetes.client.times import unix_s
from services.launcher.backends.kubernetes.manifests.names import FLUENT, INIT, MAIN

DEADLOCK: Final = (
    "some pods of this task have held their slots for 10 minutes while others are not scheduled; it is possible that "
    "some pods will never be scheduled without adding compute resources or pausing / killing other experiments in the "
    "cluster"
)
_OURS: Final = (MAIN, INIT, FLUENT)


class Reporter:
    """Listens to events, and to the tracker. ``no_class`` is told of priority classes that turn out to be missing."""

    def __init__(
        self,
        *,
        lines: Lines,
        clock: Clock,
        kind: SlotKind,
        holdings: Holdings,
        tracker: Tracker,
        actor: Actor,
        background: Background,
        no_class: Callable[[str], None],
    ) -> None:
        self._lines = lines
        self._clock = clock
        self._kind = kind
        self._holdings = holdings
        self._tracker = tracker
        self._actor = actor
        self._background = background
        self._no_class = no_class

    def saw(self, item: Event) -> None:
        run = self._tracker.owner_of(item.involved_object.kind, item.metadata.namespace, item.involved_object.name)
        if run is None:
            return
        free = self._holdings.free_slots_in(run.namespace)
        text = text_of(item, slots_per_pod=run.slots_per_pod, slot_type=self._kind.type, free_slots=free)
        if text is not None:
            self._lines.say(batch_of(item, text, task=run.task, allocation=run.allocation))
        if (name := missing_class(item)) is not None:
            self._no_class(name)
        if item.reason == CREATE_FAILED and not run.pods and not run.ended and not run.is_asked_to_end:
            self._notice_refused_pod(run, item)

    def lost(self, item: Event) -> None:
        """The cluster forgets events after an hour."""

    def failed_pod(self, run: Run, pod: Pod) -> None:
        """Have the last words of its containers read: those that did not come through the capture wrapper."""
        for name, finished_at in failed_containers(pod):
            if name in _OURS:
                words = self._tell_last_words(run, pod, name, finished_at)
                self._background.create_task(words, name=f"last words {pod.metadata.name}")

    def silenced_pod(self, run: Run, pod: Pod) -> None:
        """End its streams: its shipper is gone as well, and whoever reads the log waits for the end."""
        for stream in STREAMS:
            key = f"{container_key(run.allocation, pod.metadata.name)}/{stream}"
            self._lines.say(end_of_writer(run.task, run.allocation, key))

    def out_of_sight(self, run: Run) -> None:
        self.say(run, run.unseen)

    def partly_ready(self, run: Run) -> None:
        self.say(run, DEADLOCK)

    def say(self, run: Run, text: str) -> None:
        """A line of our own about a run, as of now."""
        now_s = self._clock.now().timestamp()
        number = line_number(now_s, f"{run.allocation}/{text}")
        self._lines.say(line_batch(text, task=run.task, allocation=run.allocation, at_s=now_s, number=number))

    def _notice_refused_pod(self, run: Run, event: Event) -> None:
        if is_about_quota(event):
            run.quota_blocked = True
            run.create_failure = None
        else:
            since = run.create_failure[1] if run.create_failure is not None else self._clock.now().timestamp()
            run.create_failure = (event.message, since)
        self._tracker.look(run)

    async def _tell_last_words(self, run: Run, pod: Pod, container: str, finished_at: str) -> None:
        at_s = unix_s(finished_at) or self._clock.now().timestamp()
        for index, text in enumerate((await self._actor.logs_of(pod, container)).splitlines()):
            if text.strip():
                # The same words read again, after a restart, have the same numbers.
                number = line_number(at_s, f"{pod.metadata.name}/{container}/{index}/{text}")
                words = f"Pod {pod.metadata.name}, container {container}: {text}"
                self._lines.say(line_batch(words, task=run.task, allocation=run.allocation, at_s=at_s, number=number))
