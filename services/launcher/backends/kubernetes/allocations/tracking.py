"""All allocations of a launcher, kept up to date by the watches; tells who has to know, and what to do.

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
from services.launcher.backends.kubernetes.allocations.decisions import (
    Reaction,
    View,
    existence,
    is_partly_scheduled,
    judge,
    next_look,
    reaction,
    restore,
)
from services.launcher.backends.kubernetes.allocations.lost_nodes import LostNodes
from services.launcher.backends.kubernetes.allocations.pods import end_of, is_over, was_silenced
from services.launcher.backends.kubernetes.allocations.state import Outcome, Run
from services.launcher.backends.kubernetes.client.objects import Job, Node, Pod
from services.launcher.reconcile import Existence

log = structlog.get_logger()

LOOKS: Final = histogram(
    "resolute_launcher_kubernetes_look_seconds", "Time to work out what a change means", buckets=(0.0001, 0.001, 0.01)
)

CAPACITY: Final = ""
"""A hint about no allocation: who holds what on the nodes may have changed."""
GATHER_S: Final = 0.025
"""Changes that come within this time of one another are told together: each telling costs a look at all orders."""
DEADLOCK_AFTER_S: Final = 600.0


class Told(Protocol):
    def failed_pod(self, run: Run, pod: Pod) -> None:
        """A pod has ended badly by itself."""
        ...

    def silenced_pod(self, run: Run, pod: Pod) -> None:
        """Nothing of a pod runs any more, and nobody was left to write that its output has ended."""
        ...

    def out_of_sight(self, run: Run) -> None:
        """Nobody can see what becomes of it."""
        ...

    def partly_ready(self, run: Run) -> None:
        """Only some pods of a gang have found a place, for a long time."""
        ...


class Tracker:
    """Runs in all namespaces, by allocation and by namespace and name of their Job."""

    def __init__(self, *, pool: str, clock: Clock, stuck_grace_s: float) -> None:
        self.pool = pool
        self._clock = clock
        self._stuck_grace_s = stuck_grace_s
        self._react: Callable[[Run, Reaction], None] = lambda _run, _what: None
        self._reporter: Told | None = None
        self.runs: dict[str, Run] = {}
        self._by_job: dict[tuple[str, str], Run] = {}
        self._by_pod: dict[tuple[str, str], Run] = {}
        self._existence: dict[str, Existence] = {}
        self.existing: Mapping[str, Existence] = MappingProxyType(self._existence)
        self.nodes: dict[str, Node] | None = None
        """By name; None where they may not be seen."""
        self.known_namespaces: set[str] = set()
        """Of which everything was read. A Job of ours that is found there later, and that nobody here has made, was
        asked for by a launcher before us just before its end: nobody but us is to finish it."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._partly_since: dict[str, float] = {}
        self._hints: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._changed: dict[str, asyncio.Event] = {}
        """Of runs that somebody waits for; one at a time."""

    def tell(self, *, react: Callable[[Run, Reaction], None], reporter: Told) -> None:
        """Before anything is seen: ``react`` is told what to do about a run, as long as it is not as it should be;
        ``reporter`` what others should read."""
        self._react = react
        self._reporter = reporter

    def view(self) -> View:
        return View(now=self._clock.now().timestamp(), lost=LostNodes(self.nodes), stuck_grace_s=self._stuck_grace_s)

    def add(self, run: Run) -> bool:
        """Take in a new run; False when the name of its Job is another's still."""
        known = self._by_job.get(run.key)
        if known is not None and known is not run:
            return False
        self.runs[run.allocation] = run
        self._by_job[run.key] = run
        self.look(run)
        return True

    def forget(self, run: Run) -> None:
        self.runs.pop(run.allocation, None)
        self._drop_names(run)
        self._existence.pop(run.allocation, None)
        self._partly_since.pop(run.allocation, None)
        if timer := self._timers.pop(run.allocation, None):
            timer.cancel()
        self.hint(run.allocation)

    def owner_of(self, kind: str, namespace: str, name: str) -> Run | None:
        """The run that a Job or a pod belongs to, or belonged to; None for anything else."""
        if kind not in ("Job", "Pod"):
            return None
        if kind == "Job":
            return self._by_job.get((namespace, name))
        # A pod may be spoken of before it is seen.
        return self._by_pod.get((namespace, name)) or self._by_job.get((namespace, name.rpartition("-")[0]))

    def runs_in(self, namespace: str) -> list[Run]:
        return [run for run in self.runs.values() if run.namespace == namespace]

    def used_namespaces(self) -> set[str]:
        """Where there are runs, or will be."""
        return {run.namespace for run in self.runs.values()}

    def lose_sight(self, namespace: str, words: str) -> None:
        """Nobody can see any more what is in a namespace, and ``words`` say why: what lived there lives on for us."""
        for run in self.runs_in(namespace):
            if self._existence.get(run.allocation) is not Existence.ENDED and run.stage in ("left", "created"):
                is_new = not run.unseen
                run.unseen = words
                self.look(run)
                if is_new and self._reporter is not None:
                    self._reporter.out_of_sight(run)

    def regain_sight(self, namespace: str) -> None:
        """Everything in a namespace was told. What had only been written down, and is not there, was deleted."""
        for run in self.runs_in(namespace):
            if run.unseen:
                run.unseen = ""
                self.look(run)

    def lose_all(self, namespace: str, words: str) -> None:
        """A namespace is gone, and everything in it; ``words`` say so."""
        view = self.view()
        for run in self.runs_in(namespace):
            run.vanish(words, now=view.now, lost=view.lost)
            self.look(run)

    def look(self, run: Run) -> None:
        """Work out what follows from the present state of a run, and tell."""
        with LOOKS.time():
            view = self.view()
            judge(run, view)
            if run.is_fragment and run.job_vanished and not run.pods:
                log.info("kubernetes.fragment_gone", allocation=run.allocation)
                self.forget(run)
                return
            self._existence[run.allocation] = existence(run, view)
            self._set_timer(run, view)
            if event := self._changed.get(run.allocation):
                event.set()
            self.hint(run.allocation)
        what = reaction(run, view)
        if what is not None:
            self._react(run, what)

    def hint(self, allocation: str) -> None:
        self._hints[allocation] = None
        self._wake.set()

    async def next_hint(self) -> str:
        """The id of something that may have changed."""
        while not self._hints:
            self._wake.clear()
            await self._wake.wait()
            await asyncio.sleep(GATHER_S)
        allocation = next(iter(self._hints))
        del self._hints[allocation]
        return allocation

    async def wait_until(self, run: Run, is_so: Callable[[], bool], timeout_s: float) -> bool:
        """Whether ``is_so`` became true within ``timeout_s``; it is asked whenever the run has changed."""
        event = self._changed.setdefault(run.allocation, asyncio.Event())
        try:
            async with asyncio.timeout(timeout_s):
                while not is_so():
                    event.clear()
                    await event.wait()
        except TimeoutError:
            return False
        finally:
            self._changed.pop(run.allocation, None)
        return True

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def saw_job(self, job: Job) -> None:
        run = self._by_job.get((job.metadata.namespace, job.metadata.name))
        if run is None:
            run = self._adopt(job.metadata.name, job=job)
            if run is None:
                return
        elif job.metadata.uid in run.replaced:
            return
        elif run.stage != "created" and run.job is None:
            if _allocation_of(job) != run.allocation:
                return  # another's, in the way
            self._restore(run, job)
        run.saw_job(job)
        self.look(run)

    def lost_job(self, job: Job) -> None:
        run = self._by_job.get((job.metadata.namespace, job.metadata.name))
        if run is not None and run.job is not None and run.job.metadata.uid == job.metadata.uid:
            run.lost_job()
            self.look(run)

    def saw_pod(self, pod: Pod) -> None:
        namespace, name = pod.metadata.namespace, pod.job or pod.metadata.name
        run = self._by_job.get((namespace, name)) or self._adopt(name, pod=pod)
        if run is None or pod.job_uid in run.replaced:
            return
        view = self.view()
        before = run.pods.get(pod.metadata.name)
        self._by_pod[namespace, pod.metadata.name] = run
        run.saw_pod(pod, now=view.now, lost=view.lost)
        self.look(run)
        self._notice_failure(run, before, pod)
        if is_over(pod) and not (before is not None and is_over(before)):
            self._notice_silence(run, pod)
        self._notice_deadlock(run, view.now)

    def lost_pod(self, pod: Pod) -> None:
        run = self._by_job.get((pod.metadata.namespace, pod.job or pod.metadata.name))
        if run is not None and pod.metadata.name in run.pods:
            view = self.view()
            before = run.pods[pod.metadata.name]
            self._notice_failure(run, before, pod)
            if not is_over(before):
                self._notice_silence(run, pod)
            run.lost_pod(pod, now=view.now, lost=view.lost)
            self.look(run)

    def node_changed(self, name: str) -> None:
        """A node came, went, or is in another state: pods on it may be lost, or found again."""
        self.hint(CAPACITY)
        if LostNodes(self.nodes).words(name):
            for run in [run for run in self.runs.values() if _is_on(run, name)]:
                self.look(run)

    def _adopt(self, job_name: str, *, job: Job | None = None, pod: Pod | None = None) -> Run | None:
        """A run of a launcher before us; None for what calls itself an allocation that is known otherwise."""
        found = job or pod
        assert found is not None
        allocation = _allocation_of(found)
        known = self.runs.get(allocation)
        if known is not None and not (known.is_remembered and (known.unseen or known.is_fragment)):
            metadata = found.metadata
            log.warning(
                "kubernetes.double", allocation=allocation, namespace=metadata.namespace, name=metadata.name
            )  # made by hand; whoever made it has to remove it
            return None
        notes = found.metadata.annotations
        run = Run(
            allocation=allocation,
            task=notes.task,
            pool=self.pool,
            job_name=job_name,
            num_pods=(job.spec.completions if job is not None else None) or 1,
            slots_per_pod=int(notes.slots_per_pod) if notes.slots_per_pod.isdigit() else 0,
            namespace=found.metadata.namespace,
        )
        if job is not None and job.metadata.deletion_timestamp is None and not job.status.conditions:
            run.stage = "left" if run.namespace in self.known_namespaces else "created"
        if known is not None:
            run.stop = known.stop
            self._drop_names(known)
        if job is not None:
            self._restore(run, job)
        self._by_job[run.key] = run
        self.runs[allocation] = run
        log.info("kubernetes.adopted", allocation=allocation, namespace=run.namespace, job=job_name)
        return run

    def _drop_names(self, run: Run) -> None:
        if self._by_job.get(run.key) is run:
            del self._by_job[run.key]
        for name in (*run.pods, *run.ended):
            self._by_pod.pop((run.namespace, name), None)

    def _restore(self, run: Run, job: Job) -> None:
        """Take in what a launcher before us wrote down about how it ended."""
        text = job.metadata.annotations.outcome
        if not text:
            return
        try:
            restore(run, msgspec.json.decode(text, type=Outcome))
        except msgspec.DecodeError as error:
            # Somebody edited it. Without it the failure is told in fewer words.
            log.error("kubernetes.outcome_unreadable", allocation=run.allocation, error=str(error))

    def _set_timer(self, run: Run, view: View) -> None:
        if timer := self._timers.pop(run.allocation, None):
            timer.cancel()
        at = next_look(run, view)
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timers[run.allocation] = loop.call_later(max(0.0, at - view.now) + 0.01, self._look_again, run)

    def _look_again(self, run: Run) -> None:
        if self.runs.get(run.allocation) is run:
            self.look(run)
            self._notice_deadlock(run, self.view().now)

    def _notice_failure(self, run: Run, before: Pod | None, pod: Pod) -> None:
        end = end_of(pod)
        is_new = before is None or end_of(before) is None
        if end is not None and end.exit_code and is_new and not run.is_asked_to_end and self._reporter is not None:
            self._reporter.failed_pod(run, pod)

    def _notice_silence(self, run: Run, pod: Pod) -> None:
        if was_silenced(pod) and self._reporter is not None:
            self._reporter.silenced_pod(run, pod)

    def _notice_deadlock(self, run: Run, now: float) -> None:
        if not is_partly_scheduled(run):
            self._partly_since.pop(run.allocation, None)
        elif run.allocation not in self._partly_since:
            self._partly_since[run.allocation] = now
            loop = asyncio.get_running_loop()
            loop.call_later(DEADLOCK_AFTER_S + 0.01, self._look_again, run)
        elif now >= self._partly_since[run.allocation] + DEADLOCK_AFTER_S:
            self._partly_since[run.allocation] = float("inf")
            if self._reporter is not None:
                self._reporter.partly_ready(run)


def _allocation_of(found: Job | Pod) -> str:
    return found.metadata.annotations.allocation or found.metadata.labels.allocation


def _is_on(run: Run, node: str) -> bool:
    return any(pod.spec.node_name == node for pod in run.pods.values())
