"""State of the simulated cluster at one instant, which policies read and the simulation changes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tests.load.simulate.cluster import SimulatedNode
from tests.load.simulate.engine.estimates import expected_end_s
from tests.load.simulate.engine.free_slots import FreeSlots
from tests.load.simulate.engine.queue import Queue
from tests.load.simulate.traces.job import Job


class RunningJob(Struct, frozen=True):
    job: Job
    nodes: tuple[int, ...]
    """Node of each pod."""
    started_s: float
    done_s: float = 0.0
    """Of its run time, what it had behind it when it started this time."""
    estimate_s: float = 0.0
    """Of its whole run time."""

    def expected_end_s(self, now: float) -> float:
        return expected_end_s(self.started_s - self.done_s, self.estimate_s, now)

    def true_end_s(self) -> float:
        return self.started_s - self.done_s + self.job.run_s


class ClusterState:
    def __init__(self, nodes: Sequence[SimulatedNode]) -> None:
        self.nodes = tuple(nodes)
        self.free = FreeSlots(nodes)
        self.waiting = Queue()
        self.running: dict[int, RunningJob] = {}
        self.bound: dict[int, list[int]] = {}
        """Nodes of the pods of waiting jobs that have their slots already."""
        self.estimate_s: dict[int, float] = {}
        """Of the run time of every job that waits or runs."""
        self.done_s: dict[int, float] = {}
        """Of jobs that wait again: how much of their run time is behind them."""
