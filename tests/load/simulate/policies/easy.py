"""EASY backfill: the first job that has no room gets a reservation, and others may pass it if they do not delay it.

The reservation is for the first instant at which enough running jobs are expected to have ended. A job behind may start
when it is expected to end before that instant, or when it runs on slots that the reservation leaves free. Backfill of
Slurm with one reservation does the same. Gangs are whole and nodes are counted one by one.
Source: D. Lifka, "The ANL/IBM SP scheduling system", Job Scheduling Strategies for Parallel Processing, 1995.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.load.simulate.engine.decisions import Begin, Foresee, PolicyDecision
from tests.load.simulate.engine.free_slots import FreeSlots
from tests.load.simulate.engine.state import ClusterState, RunningJob
from tests.load.simulate.traces.job import Job


class Easy:
    def __init__(self, *, true_times: bool = False) -> None:
        """
        true_times  Knows how long every job will run. Nobody does; it is the bound of what estimates can bring.
        """
        self._true_times = true_times

    def plan(self, state: ClusterState, now: float) -> Iterator[PolicyDecision]:
        waiting, free = state.waiting, state.free
        while (head := waiting.first()) is not None:
            nodes = free.fullest(head.shape)
            if nodes is None:
                break
            yield Begin(head.number, nodes)
        if head is None:
            return
        walk = waiting.walk()
        fitting = 0
        for shape in waiting.shapes():
            if free.has_room(shape):
                fitting += 1
            else:
                walk.drop(shape)
        if not fitting:
            return
        reserved = _Reservation(head, state, self._ends(state, now))
        yield Foresee(head.number, reserved.start_s)
        for job in walk:
            if not free.has_room(job.shape):
                walk.drop(job.shape)
                continue
            is_short = now + self._run_s(state, job) <= reserved.start_s
            nodes = (free if is_short else reserved.beside).fullest(job.shape)
            if nodes is not None:
                yield Begin(job.number, nodes)
                reserved.started(nodes, job.slots_per_pod, is_short=is_short)

    def _run_s(self, state: ClusterState, job: Job) -> float:
        return job.run_s if self._true_times else state.estimate_s[job.number]

    def _ends(self, state: ClusterState, now: float) -> list[tuple[float, RunningJob]]:
        ends = [
            (one.true_end_s() if self._true_times else one.expected_end_s(now), one) for one in state.running.values()
        ]
        return sorted(ends, key=lambda end: (end[0], end[1].job.number))


class _Reservation:
    """The instant at which a job is expected to have room, and the slots that are free now and not needed then."""

    def __init__(self, head: Job, state: ClusterState, ends: Sequence[tuple[float, RunningJob]]) -> None:
        """
        ends  when each running job is expected to end, soonest first
        Raises AssertionError when there is no room even when all have ended.
        """
        self._free = state.free
        self.start_s, then = _first_room(head, state, ends)
        nodes = then.fullest(head.shape)
        assert nodes is not None, f"job {head.number} would wait for ever"
        for node in nodes:
            then.take(node, head.slots_per_pod)
        self._then = then.by_node
        self.beside = FreeSlots(state.nodes, map(min, state.free.by_node, self._then))

    def started(self, nodes: Sequence[int], slots: int, *, is_short: bool) -> None:
        for node in nodes:
            if not is_short:
                self._then[node] -= slots
            self.beside.change(node, min(self._free.by_node[node], self._then[node]))


def _first_room(head: Job, state: ClusterState, ends: Sequence[tuple[float, RunningJob]]) -> tuple[float, FreeSlots]:
    """The instant, and what is free then."""
    slots, models = head.slots_per_pod, head.models
    free = list(state.free.by_node)
    fits = [not models or node.model in models for node in state.nodes]
    room = sum(left // slots for left, fit in zip(free, fits, strict=True) if fit)
    start_s = 0.0
    for end_s, ended in ends:
        start_s = end_s
        for node in ended.nodes:
            left = free[node] + ended.job.slots_per_pod
            if fits[node]:
                room += left // slots - free[node] // slots
            free[node] = left
        if room >= head.pods:
            break
    return start_s, FreeSlots(state.nodes, free)
