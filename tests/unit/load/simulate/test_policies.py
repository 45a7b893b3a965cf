"""What each policy does to queues that are small enough to be worked out by hand. There are two nodes of two slots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.load.simulate.cluster import SimulatedNode, Workload, workload
from tests.load.simulate.engine.decisions import Begin, Evict, PolicyDecision
from tests.load.simulate.engine.free_slots import Oversold
from tests.load.simulate.engine.simulation import simulate
from tests.load.simulate.engine.state import ClusterState
from tests.load.simulate.policies.table import POLICIES
from tests.load.simulate.traces.job import Trace
from tests.load.simulate.traces.synthetic import synthetic_day
from tests.unit.load.simulate.running import job, run, starts

ONE_BLOCKED = [
    job(0, 0, 100, slots=2),  # one node
    job(1, 1, 50, pods=2, slots=2),  # both nodes
    job(2, 2, 98),  # ends when the first one does
    job(3, 3, 98),  # would end a second later
]


def test_fifo_lets_nobody_pass() -> None:
    assert starts(run("fifo", ONE_BLOCKED)) == [0, 100, 150, 150]


def test_easy_lets_pass_who_does_not_delay_the_head() -> None:
    outcome = run("easy-true", ONE_BLOCKED)
    assert starts(outcome) == [0, 100, 2, 150]
    assert outcome.jobs[1].foreseen_s == 100


def test_easy_lets_pass_whoever_fits_beside_the_head() -> None:
    """The head needs one of three nodes as soon as the long jobs leave it, so the other slot can be used for ever."""
    jobs = [job(0, 0, 10, slots=2), job(1, 0, 1000, slots=1), job(2, 1, 10, slots=2), job(3, 2, 5000)]
    assert starts(run("easy-true", jobs)) == [0, 0, 10, 2]


def test_easy_believes_estimates_and_revises_those_that_were_too_short() -> None:
    """The user's only job so far took 10 s, so all are thought to take 10 s, and 20 s when these are over."""
    jobs = [
        job(0, 0, 10),
        job(1, 20, 100, slots=2),
        job(2, 21, 50, pods=2, slots=2),
        job(3, 22, 8, slots=2),  # is thought to end at 32, when the head could have run for two seconds
        job(4, 41, 8),  # by now the head is thought to start at 60, and there is time for the job before
    ]
    outcome = run("easy", jobs)
    assert outcome.jobs[2].foreseen_s == 30
    assert starts(outcome) == [0, 20, 120, 41, 49]


def test_important_jobs_are_ahead() -> None:
    jobs = [job(0, 0, 10, pods=2, slots=2), job(1, 1, 10, pods=2, slots=2), job(2, 2, 10, pods=2, slots=2, priority=1)]
    for policy in ("fifo", "easy", "resolute"):
        assert starts(run(policy, jobs)) == [0, 20, 10], policy


def test_pods_in_order_holds_slots_for_a_gang_that_cannot_run_yet() -> None:
    outcome = run("pods-in-order", [job(0, 0, 10, slots=2), job(1, 1, 5, pods=2, slots=2), job(2, 2, 1)])
    assert starts(outcome) == [0, 10, 15]
    assert [(one.at_s, one.running, one.idle_bound) for one in outcome.usage] == [
        (0, 2, 0),
        (1, 2, 2),
        (10, 4, 0),
        (15, 1, 0),
        (16, 0, 0),
    ]


def test_gangs_that_hold_halves_are_a_deadlock_for_pods_in_order_only() -> None:
    """Each of two gangs needs all four slots. The first one has three of them when the second takes the fourth."""
    jobs = [
        job(0, 0, 10),
        job(1, 1, 5, pods=4, priority=50),
        job(2, 2, 5, pods=4, priority=1),
    ]
    stuck = run("pods-in-order", jobs)
    assert starts(stuck) == [0, None, None]
    assert (stuck.usage[-1].running, stuck.usage[-1].idle_bound) == (0, 4)
    assert starts(run("fifo", jobs)) == [0, 15, 10]
    assert starts(run("resolute", jobs)) == [0, 15, 10]


def test_resolute_runs_a_job_on_the_models_that_it_needs() -> None:
    trace = Trace(name="models", jobs=(_on(job(0, 0, 10, slots=1), "b"), _on(job(1, 0, 10, slots=1), "b")))
    nodes = (SimulatedNode(slots=8, model="a"), SimulatedNode(slots=1, model="b"))
    outcome = simulate("resolute", POLICIES["resolute"].make(), Workload(trace=trace, nodes=nodes))
    assert starts(outcome) == [0, 10]


def test_who_was_asked_to_leave_comes_back_with_the_next_event() -> None:
    """At once it would take the second node, from which the next urgent job would have it leave again."""
    jobs = [job(0, 0, 9000, slots=2), *(job(number, 5000, 100, slots=2, priority=1) for number in (1, 2))]
    outcome = run("resolute-preempt", jobs, nodes=(2,))
    assert starts(outcome) == [0, 5000, 5100]
    assert [one.evictions for one in outcome.jobs] == [1, 0, 0]
    assert outcome.jobs[0].ended_s == 5200 + 9000 - 3600


@pytest.mark.parametrize("policy", [name for name in POLICIES if name.startswith("resolute")])
def test_every_policy_of_a_pool_runs_all_jobs_of_a_busy_hour(policy: str) -> None:
    trace = synthetic_day(jobs=150)
    outcome = simulate(policy, POLICIES[policy].make(), workload(trace, 1.5))
    assert all(one.ended_s is not None for one in outcome.jobs)
    if policy == "resolute-preempt":
        assert any(one.evictions > 1 for one in outcome.jobs), "those that leave for others come back, and may again"


class _EvictsOnce:
    """Takes the slots of the first job for the second one."""

    def plan(self, state: ClusterState, now: float) -> Iterator[PolicyDecision]:
        if now == 4000 and 0 in state.running:
            yield Evict(0)
            return
        for waiting in sorted(state.waiting, key=lambda one: -one.number):
            nodes = state.free.fullest(waiting.shape)
            if nodes is not None:
                yield Begin(waiting.number, nodes)


def test_an_evicted_job_goes_on_from_its_last_checkpoint() -> None:
    outcome = run(_EvictsOnce(), [job(0, 0, 5000, slots=2), job(1, 4000, 100, slots=2)], nodes=(2,))
    first, second = outcome.jobs
    assert (second.started_s, second.ended_s) == (4000, 4100)
    assert (first.evictions, first.lost_s) == (1, 400)  # checkpoints are 1800 s apart
    assert (first.started_s, first.ended_s) == (0, 4100 + 5000 - 3600)


class _Oversells:
    def plan(self, state: ClusterState, now: float) -> Iterator[PolicyDecision]:
        for waiting in list(state.waiting):
            yield Begin(waiting.number, (0,))


def test_a_policy_that_oversells_a_node_is_found_out() -> None:
    with pytest.raises(Oversold, match="2 slots were taken on node 0, which has 0 left"):
        run(_Oversells(), [job(0, 0, 5, slots=2), job(1, 0, 5, slots=2)])


def _on(one, models: str):

    return replace(one, models=frozenset(models))
