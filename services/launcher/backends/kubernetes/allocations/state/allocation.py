"""One allocation as a launcher keeps it: who it is, what is observed, what is intended, and the status of both."""

from __future__ import annotations

from services.launcher.backends.kubernetes.allocations.state.intent import Intent, Outcome, StopRequest
from services.launcher.backends.kubernetes.allocations.state.observed_state import ObservedState
from services.launcher.backends.kubernetes.allocations.state.pods import is_scheduled
from services.launcher.backends.kubernetes.allocations.state.status import AllocationStatus, status
from services.launcher.backends.kubernetes.allocations.state.view import View
from services.launcher.backends.kubernetes.manifests.job_parts import JobPart


class TrackedAllocation:
    """``observed`` is written for informers, ``intent`` by what the launcher does; ``refresh`` has to follow either."""

    def __init__(
        self,
        *,
        allocation: str,
        task: str,
        pool: str,
        job_name: str,
        namespace: str,
        slots_per_pod: int,
        observed: ObservedState,
        intent: Intent,
        view: View,
        is_remembered: bool = False,
        parts: tuple[JobPart, ...] = (),
    ) -> None:
        """``parts``: its Jobs, where there are several; ``job_name`` is the first of them."""
        self.allocation = allocation
        self.task = task
        self.pool = pool
        self.job_name = job_name
        self.namespace = namespace
        self.parts = parts or (JobPart(job_name, observed.num_pods, slots_per_pod),)
        self.observed = observed
        self.intent = intent
        self.is_remembered = is_remembered
        """A launcher before us wrote down that it had existed; nothing of it was seen since."""
        self.status = status(observed, intent, view)

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Namespace and name of each of its Jobs."""
        return [(self.namespace, part.name) for part in self.parts]

    def slots_of(self, job: str) -> int:
        """Slots of each pod of a Job of it."""
        return next((part.slots for part in self.parts if part.name == job), self.parts[0].slots)

    @property
    def is_partly_scheduled(self) -> bool:
        """Whether some pods of a gang hold their slots while others wait for theirs."""
        num_pods = self.observed.num_pods
        scheduled = sum(is_scheduled(pod) for pod in self.observed.pods.values())
        return num_pods > 1 and 0 < scheduled < num_pods and not self.intent.is_end_requested

    def refresh(self, view: View) -> AllocationStatus:
        """Work the status out anew."""
        self.observed.on_time(intent=self.intent, view=view)
        self.status = status(self.observed, self.intent, view)
        return self.status

    def request_stop(self, *, ordered: bool, deadline: float) -> None:
        """Have it end by ``deadline`` (Unix time, seconds). A stop that was asked for before only gets shorter."""
        before = self.intent.stop
        if before is not None and deadline >= before.deadline:
            return
        stop = StopRequest(
            ordered=ordered if before is None else before.ordered or ordered,
            was_whole=self.observed.is_whole if before is None else before.was_whole,
            deadline=deadline,
        )
        self.intent.request_stop(stop, pods=self.observed.unexplained_pods())

    def decide(self, outcome: Outcome) -> None:
        """End what is left of it."""
        self.intent.decide(outcome, pods=self.observed.unexplained_pods())

    def replace_job(self, uid: str) -> None:
        """Begin anew, without a Job and its pods. To be called before it is deleted."""
        self.intent.replace_job(uid)
        self.observed.forget_job(uid)

    def restore(self, outcome: Outcome) -> None:
        """Take in what a launcher before us decided and wrote down, before any pod is seen."""
        # Whoever had several Jobs to tell may not have come to all.
        self.intent.restore(outcome, is_saved=len(self.parts) == 1)
        self.observed.on_outcome(outcome)
