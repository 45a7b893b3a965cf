"""The same experiment, in whatever order and however often things happen, and wherever the engine is killed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.scheduler.experiments.stepwise import Stepwise
from tests.integration.scheduler.world import World

LR: dict[str, Any] = {
    "lr": {"type": "double", "minval": 0, "maxval": 1},
    "n": {"type": "int", "minval": 1, "maxval": 9},
}
RANDOM: dict[str, Any] = {"name": "random", "metric": "loss", "max_trials": 5, "max_concurrent_trials": 2}
ASHA: dict[str, Any] = {
    "name": "adaptive_asha",
    "metric": "loss",
    "max_trials": 5,
    "max_concurrent_trials": 3,
    "time_metric": "batches",
    "max_time": 4,
    "divisor": 2,
}
STEPS = 4
EVERY = 3
"""Of so many transactions of an engine that dies, one is its last; no step takes as many."""
SEARCHES = pytest.mark.parametrize("searcher", [RANDOM, ASHA], ids=["random", "adaptive_asha"])


async def begin(world: World, searcher: dict[str, Any], **how: Any) -> Stepwise:
    experiment = await world.api.create(searcher=searcher, hyperparameters=LR, max_restarts=1)
    return Stepwise(world, experiment, steps=STEPS, **how)


async def straight(world: World, searcher: dict[str, Any]) -> dict[str, Any]:
    """What becomes of the experiment when nothing goes wrong, and what it shows that this test is worth something."""
    run = await begin(world, searcher)
    await run.finish()
    outcome = await run.outcome()
    assert outcome["experiment"] == ("COMPLETED", 1.0, None)
    if searcher is RANDOM:  # whose trials nobody stops before they may fail
        assert {trial[2] for trial in outcome["trials"]} > {0}, "nothing failed"
    assert outcome["unheard"] == outcome["sessions"] == []
    return outcome


pytestmark = pytest.mark.slow

EXPECTED: dict[str, dict[str, Any]] = {}
"""Of the one database that all examples of a property share."""
ORDERS = st.lists(st.integers(0, 10_000), max_size=80)
"""What happens next, by its number among all that may, modulo their count."""


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(order=ORDERS)
async def test_any_interleaving_and_redelivery_ends_in_the_same_experiment(world: World, order: list[int]) -> None:
    expected = EXPECTED.get(world.db.url) or await straight(world, RANDOM)
    EXPECTED[world.db.url] = expected
    run = await begin(world, RANDOM)
    for choice in order:
        going = [task for task in run.tasks.values() if not task.is_over]
        said = [seen for task in run.tasks.values() for seen in task.seen]
        happenings: list[Any] = [run.reconcile, run.plan, *going, *said]
        match happenings[choice % len(happenings)]:
            case step if callable(step):
                await step()
            case task if task in going:
                await run.advance(task)
            case seen:
                await run.observe(seen)
    await run.finish()
    assert await run.outcome() == expected


@SEARCHES
@pytest.mark.parametrize("after_commit", [False, True], ids=["before the commit", "after the commit"])
async def test_the_engine_may_be_killed_in_any_of_its_steps(
    world: World, searcher: dict[str, Any], *, after_commit: bool
) -> None:
    expected = await straight(world, searcher)
    for first in range(EVERY):
        run = await begin(world, searcher, dies=lambda n, at=first: n % EVERY == at, after_commit=after_commit)
        await run.finish()
        assert await run.outcome() == expected, f"killed in transaction {first} and every third after it"
        assert run.db.deaths > 20


THOUSAND = pytest.param(1000, marks=[pytest.mark.chaos, pytest.mark.long, pytest.mark.timeout(3600)])


@pytest.mark.parametrize("trials", [40, THOUSAND])
async def test_a_search_with_early_stops_ends_the_same_after_a_crash_in_the_middle(world: World, trials: int) -> None:
    searcher = {**ASHA, "max_trials": trials, "max_concurrent_trials": 16}
    at_once = trials > 40
    steady = await begin(world, searcher, slots=16)
    await steady.finish(at_once=at_once)
    expected = await steady.outcome()
    assert expected["experiment"] == ("COMPLETED", 1.0, None)
    assert len(expected["trials"]) == trials
    reports = [task.reports for task in steady.tasks.values()]
    assert min(reports) < max(reports), "nobody was stopped early"
    middle = steady.db.transactions // 2
    for after_commit in (False, True):
        crashed = await begin(world, searcher, slots=16, dies=lambda n: n == middle, after_commit=after_commit)
        await crashed.finish(at_once=at_once)
        assert crashed.db.deaths == 1
        assert await crashed.outcome() == expected
