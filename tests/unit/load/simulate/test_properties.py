"""What holds for every policy on any workload; that no node is oversold is asserted by the simulation itself."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.load.simulate.engine.decisions import PolicyDecision
from tests.load.simulate.engine.simulation import Policy
from tests.load.simulate.engine.state import ClusterState
from tests.load.simulate.policies.easy import Easy
from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.traces.job import Job
from tests.unit.load.simulate.running import job, run

NODES = (4, 4, 2)
EXAMPLES = 40
WHOLE_GANGS = ("fifo", "easy", "easy-true", "resolute")


@st.composite
def workloads(draw: st.DrawFn) -> list[Job]:
    now = 0.0
    jobs = []
    for number in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from((0, 0, 1, 5)))
        pods, slots = draw(st.sampled_from(((1, 1), (1, 2), (1, 4), (2, 1), (2, 4), (3, 2), (10, 1))))
        fields = {"user": draw(st.sampled_from("ab")), "priority": draw(st.sampled_from((1, 42)))}
        one = job(number, now, draw(st.integers(0, 20)), pods, slots)
        jobs.append(replace(one, **fields))
    return jobs


class _Watched:
    """A policy, and what was free while something waited after each of its plans."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.could_start: list[bool] = []

    def plan(self, state: ClusterState, now: float) -> Iterable[PolicyDecision]:
        yield from self._policy.plan(state, now)
        first = state.waiting.first()
        self.could_start.append(first is not None and state.free.has_room(first.shape))


@pytest.mark.parametrize("policy", WHOLE_GANGS)
@settings(max_examples=EXAMPLES)
@given(jobs=workloads())
def test_every_job_ends_after_its_run_time_and_the_first_never_waits_in_vain(policy: str, jobs: list[Job]) -> None:
    watched = _Watched(POLICIES[policy].make())
    outcome = run(watched, jobs, NODES)
    assert not any(watched.could_start)
    for one in outcome.jobs:
        assert one.started_s is not None
        assert one.started_s >= one.job.submitted_s
        assert one.ended_s == one.started_s + one.job.run_s
    ahead = zip(outcome.usage, outcome.usage[1:], strict=False)
    assert sum(now.running * (then.at_s - now.at_s) for now, then in ahead) == sum(
        one.slots * one.run_s for one in jobs
    )
    assert outcome.usage[-1].running == 0


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES)
@given(jobs=workloads())
def test_the_same_workload_has_the_same_outcome(policy: str, jobs: list[Job]) -> None:
    assert run(policy, jobs, NODES) == run(policy, jobs, NODES)


@settings(max_examples=EXAMPLES)
@given(jobs=workloads())
def test_under_fair_share_every_job_ends_though_some_are_evicted(jobs: list[Job]) -> None:
    outcome = run("resolute-fair", jobs, NODES)
    assert all(one.ended_s is not None for one in outcome.jobs)
    assert outcome.usage[-1].running == 0


@settings(max_examples=EXAMPLES)
@given(jobs=workloads())
def test_easy_starts_the_head_no_later_than_it_foresaw(jobs: list[Job]) -> None:
    """With true run times, and as long as nobody more important comes, which would be another head."""
    jobs = [replace(one, priority=42) for one in jobs]
    for one in run(Easy(true_times=True), jobs, NODES).jobs:
        if one.foreseen_s is not None and one.started_s is not None:
            assert one.started_s <= one.foreseen_s


@settings(max_examples=EXAMPLES)
@given(jobs=workloads())
def test_only_halves_of_gangs_keep_pods_in_order_from_ending_everything(jobs: list[Job]) -> None:
    outcome = run("pods-in-order", jobs, NODES)
    stuck = [one.job for one in outcome.jobs if one.started_s is None]
    assert outcome.usage[-1].running == 0
    assert bool(stuck) == (outcome.usage[-1].idle_bound > 0)
