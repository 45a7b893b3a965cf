"""Jobs of a trace, and the trace itself."""

from __future__ import annotations

from msgspec import Struct

ANY_MODEL: frozenset[str] = frozenset()

Shape = tuple[int, int, frozenset[str]]
"""Number of pods, slots of each, and models of GPU that will do (none named: all): jobs of one shape fit alike."""


class Job(Struct, frozen=True, kw_only=True, gc=False):
    """One job with GPUs. Its pods are a gang: they start together and end together."""

    number: int
    """Ascends in the order of submission."""
    user: str
    submitted_s: float
    """Seconds since the first submission of the trace."""
    run_s: float
    """How long it runs once it has started."""
    pods: int = 1
    slots_per_pod: int = 1
    priority: int = 42
    """Smaller starts first. Traces that have no priorities give every job the same one."""
    models: frozenset[str] = ANY_MODEL
    """Models of GPU that it can run on; none named means any."""

    @property
    def slots(self) -> int:
        return self.pods * self.slots_per_pod

    @property
    def shape(self) -> Shape:
        return self.pods, self.slots_per_pod, self.models


class NodeKind(Struct, frozen=True):
    """Nodes that are alike, and how many of them the traced cluster had."""

    slots: int
    model: str = ""
    count: int = 1


class Trace(Struct, frozen=True, kw_only=True):
    name: str
    jobs: tuple[Job, ...]
    """In the order of submission."""
    without_gpus: int = 0
    """Jobs that held no GPU. They run beside the others and are not simulated."""
    never_ran: int = 0
    """Jobs of the source that never started there, so that nobody knows how long they run. They are left out."""
    left_out: int = 0
    """Jobs of the sparse beginning of the source."""
    kinds: tuple[NodeKind, ...] = (NodeKind(slots=8),)
    """Nodes of the traced cluster; a simulated one has them in the same proportions."""

    @property
    def span_s(self) -> float:
        """Seconds from the first submission to the last one."""
        return self.jobs[-1].submitted_s if self.jobs else 0.0

    @property
    def measured_s(self) -> tuple[float, float]:
        """From when to when measures are taken: the span without its first and its last tenth."""
        return 0.1 * self.span_s, 0.9 * self.span_s

    @property
    def mean_slots(self) -> float:
        """Slots that would be busy in the mean of what is measured if every job started at once.

        What long jobs do after it does not count: it is no load while anything is measured.
        """
        begin, end = self.measured_s
        within = (
            job.slots * max(0.0, min(end, job.submitted_s + job.run_s) - max(begin, job.submitted_s))
            for job in self.jobs
        )
        return sum(within) / (end - begin) if end > begin else 0.0
