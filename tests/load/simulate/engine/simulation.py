"""Simulation of one policy on one workload, from event to event in virtual time.

Everything that happens at one instant is one occasion to plan: first jobs end, then others are submitted, then the
policy decides. A simulation ends when nothing more can happen. Jobs that still wait then would wait for ever.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Protocol

from tests.load.simulate.cluster import Workload
from tests.load.simulate.engine.decisions import Begin, Bind, Evict, Foresee, PolicyDecision
from tests.load.simulate.engine.estimates import PastMedians
from tests.load.simulate.engine.outcome import JobOutcome, Outcome, Usage
from tests.load.simulate.engine.state import ClusterState, RunningJob

CHECKPOINT_S = 1800.0


class Policy(Protocol):
    """Who starts next, and where."""

    def plan(self, state: ClusterState, now: float) -> Iterable[PolicyDecision]:
        """Decides one by one; ``state`` already shows what the decisions before have done."""
        ...


def simulate(name: str, policy: Policy, workload: Workload, *, checkpoint_s: float = CHECKPOINT_S) -> Outcome:
    """Run ``policy`` on ``workload`` until nothing more can happen.

    checkpoint_s  run time between two checkpoints of a job; what it did since the last one is lost with an eviction
    Raises Oversold, ValueError or KeyError for a decision that cannot be carried out.
    """
    return _Simulation(name, policy, workload, checkpoint_s).run()


class _Simulation:
    def __init__(self, name: str, policy: Policy, workload: Workload, checkpoint_s: float) -> None:
        self._name = name
        self._policy = policy
        self._workload = workload
        self._checkpoint_s = checkpoint_s
        self._state = ClusterState(workload.nodes)
        self._medians = PastMedians()
        self._outcomes: list[JobOutcome] = []
        self._ends: list[tuple[float, int, int]] = []
        """Instant, job, and how often it had been evicted before; an end of an earlier attempt does not happen."""
        self._evicted_at: dict[int, float] = {}
        self._running_slots = 0
        self._bound_slots = 0
        self._usage = [Usage(0.0, 0, 0)]
        self._plans = 0

    def run(self) -> Outcome:
        jobs = self._workload.trace.jobs
        now = 0.0
        while len(self._outcomes) < len(jobs) or self._ends:
            now = self._next_instant()
            self._end_jobs(now)
            self._submit_jobs(now)
            self._plan(now)
            self._note_usage(now)
        return Outcome(
            policy=self._name,
            workload=self._workload,
            jobs=tuple(self._outcomes),
            usage=tuple(self._usage),
            ended_s=now,
            plans=self._plans,
        )

    def _next_instant(self) -> float:
        jobs = self._workload.trace.jobs
        submitted = len(self._outcomes)
        next_end = self._ends[0][0] if self._ends else float("inf")
        return min(next_end, jobs[submitted].submitted_s) if submitted < len(jobs) else next_end

    def _end_jobs(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, number, attempt = heapq.heappop(self._ends)
            if attempt != self._outcomes[number].evictions:
                continue
            ended = self._leave(number)
            self._outcomes[number].ended_s = now
            self._medians.ended(ended.job)
            del self._state.estimate_s[number]

    def _submit_jobs(self, now: float) -> None:
        jobs = self._workload.trace.jobs
        while len(self._outcomes) < len(jobs) and jobs[len(self._outcomes)].submitted_s <= now:
            job = jobs[len(self._outcomes)]
            estimate_s = self._medians.estimate_s(job)
            self._outcomes.append(JobOutcome(job=job, estimate_s=estimate_s))
            self._state.estimate_s[job.number] = estimate_s
            self._state.waiting.add(job)

    def _plan(self, now: float) -> None:
        again = True
        while again and len(self._state.waiting):
            again = False
            self._plans += 1
            for decision in self._policy.plan(self._state, now):
                self._carry_out(decision, now)
                again = again or isinstance(decision, Evict)

    def _carry_out(self, decision: PolicyDecision, now: float) -> None:
        match decision:
            case Begin():
                self._begin(decision, now)
            case Bind():
                self._bind(decision)
            case Evict():
                self._evict(decision.job, now)
            case Foresee():
                outcome = self._outcomes[decision.job]
                if outcome.foreseen_s is None:
                    outcome.foreseen_s = decision.start_s

    def _begin(self, decision: Begin, now: float) -> None:
        state, number = self._state, decision.job
        job = state.waiting.remove(number)
        if len(decision.nodes) != job.pods:
            raise ValueError(f"job {number} has {job.pods} pods, and was given {len(decision.nodes)} nodes")
        for node in state.bound.pop(number, ()):
            state.free.give(node, job.slots_per_pod)
            self._bound_slots -= job.slots_per_pod
        for node in decision.nodes:
            if job.models and state.nodes[node].model not in job.models:
                raise ValueError(f"job {number} cannot run on the model of node {node}")
            state.free.take(node, job.slots_per_pod)
        self._running_slots += job.slots
        running = RunningJob(
            job=job,
            nodes=decision.nodes,
            started_s=now,
            done_s=state.done_s.pop(number, 0.0),
            estimate_s=state.estimate_s[number],
        )
        state.running[number] = running
        outcome = self._outcomes[number]
        if outcome.started_s is None:
            outcome.started_s = now
        heapq.heappush(self._ends, (running.true_end_s(), number, outcome.evictions))

    def _bind(self, decision: Bind) -> None:
        state = self._state
        if decision.job not in state.waiting:
            raise KeyError(decision.job)
        slots = self._outcomes[decision.job].job.slots_per_pod
        state.free.take(decision.node, slots)
        state.bound.setdefault(decision.job, []).append(decision.node)
        self._bound_slots += slots

    def _evict(self, number: int, now: float) -> None:
        if self._evicted_at.get(number) == now:
            raise ValueError(f"job {number} is evicted for the second time at {now} s")
        self._evicted_at[number] = now
        left = self._leave(number)
        ran_s = left.done_s + now - left.started_s
        done_s = ran_s - ran_s % self._checkpoint_s
        outcome = self._outcomes[number]
        outcome.evictions += 1
        outcome.lost_s += ran_s - done_s
        self._state.done_s[number] = done_s
        self._state.waiting.add(left.job)

    def _leave(self, number: int) -> RunningJob:
        left = self._state.running.pop(number)
        for node in left.nodes:
            self._state.free.give(node, left.job.slots_per_pod)
        self._running_slots -= left.job.slots
        return left

    def _note_usage(self, now: float) -> None:
        usage = Usage(now, self._running_slots, self._bound_slots)
        if self._usage[-1].at_s == now:
            self._usage[-1] = usage
        elif (usage.running, usage.idle_bound) != (self._usage[-1].running, self._usage[-1].idle_bound):
            self._usage.append(usage)
