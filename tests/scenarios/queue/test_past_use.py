"""Fair share that remembers what shares have used: who has used more gets less until the others have caught up."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from operator import attrgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.slot_hours.decay import decayed
from services.scheduler.plan.forecast.past_use import PastUse
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import HeldAllocation, PoolPolicy, PoolSnapshot
from tests.scenarios.queue.notation import NOW, Case, check
from tests.scenarios.queue.virtual_queue import VirtualQueue

W = WaitReason
FAIR = PoolPolicy(queue="fair_share", min_runtime=timedelta())
HALF_LIFE = timedelta(hours=1)


def wants(share: str, count: int) -> str:
    return "; ".join(f"{share}{number} 1 by {share}/{share}{number}" for number in range(count))


def has(share: str, count: int) -> str:
    return "; ".join(f"{share}{number} 1@n saved {number} by {share}/{share}{number}" for number in range(count))


CASES = [
    Case(
        "who has used nothing gets what the other one has had",
        {"n": 8},
        f"{wants('a', 8)}; {wants('b', 8)}",
        "b0 b1 b2 b3 a0 b4 a1 b5",
        policy=FAIR,
        past_use={"a": 4.0},
    ),
    Case(
        "by weight",
        {"n": 8},
        f"{wants('a', 8)}; {wants('b', 8)}",
        "b0 a0 b1 a1 a2 a3 b2 a4",
        policy=FAIR,
        past_use={"a": 3.0},
        weights={"a": 3.0},
    ),
    Case(
        "what nobody else wants is had by whoever wants it",
        {"n": 8},
        wants("a", 9),
        "a0 a1 a2 a3 a4 a5 a6 a7",
        policy=FAIR,
        past_use={"a": 100.0},
    ),
    Case(
        "what others have used and do not want now is nobody's loss",
        {"n": 4},
        f"{wants('a', 4)}; {wants('b', 4)}",
        "a0 b0 a1 b1",
        policy=FAIR,
        past_use={"c": 100.0},
    ),
    Case(
        "among users within a group, too",
        {"n": 4},
        "a0 1 by g/a/a0; a1 1 by g/a/a1; a2 1 by g/a/a2; b0 1 by g/b/b0; b1 1 by g/b/b1; b2 1 by g/b/b2",
        "b0 b1 a0 b2",
        policy=FAIR,
        past_use={"g": 2.0, "g/a": 2.0},
    ),
    Case(
        "more is given back to who has used less",
        {"n": 8},
        f"{has('a', 8)}; {wants('b', 8)}",
        "",
        {"b5": W.PREEMPTING, "b6": W.NO_ROOM},
        preempts="a0>b0 a1>b1 a2>b2 a3>b3 a4>b4 a5>b5",
        policy=FAIR,
        past_use={"a": 4.0},
    ),
    Case(
        "and less where that one has used more",
        {"n": 8},
        f"{has('a', 8)}; {wants('b', 8)}",
        "",
        {"b1": W.PREEMPTING, "b2": W.NO_ROOM},
        preempts="a0>b0 a1>b1",
        policy=FAIR,
        past_use={"b": 4.0},
    ),
    Case(
        "round robin remembers nothing",
        {"n": 2},
        f"{wants('a', 2)}; {wants('b', 2)}",
        "a0 b0",
        policy=PoolPolicy(queue="round_robin"),
        past_use={"a": 4.0},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_past_use(case: Case) -> None:
    check(case)


def test_half_of_it_is_forgotten_after_a_half_life() -> None:
    assert decayed(4.0, HALF_LIFE, HALF_LIFE) == 2.0
    assert decayed(0.0, HALF_LIFE, HALF_LIFE, held=4) == 2.0
    assert decayed(3.0, timedelta(), HALF_LIFE, held=4) == 3.0


@given(
    st.floats(0, 100), st.floats(0, 100), st.floats(0, 40), st.floats(0, 40), st.sampled_from((60.0, 3600.0, 604800.0))
)
def test_it_does_not_matter_how_often_somebody_looks(
    used: float, held: float, first: float, then: float, half_life_s: float
) -> None:
    half_life = timedelta(seconds=half_life_s)
    one, other = half_life * first, half_life * then
    in_steps = decayed(decayed(used, one, half_life, held=held), other, half_life, held=held)
    assert in_steps == pytest.approx(decayed(used, one + other, half_life, held=held), abs=1e-6)


def test_estimates_see_it_grow_and_be_forgotten() -> None:
    snapshot = PoolSnapshot(nodes=(), past_use={"a": 4.0, "b": 2.0}, half_life=HALF_LIFE, now=NOW)
    past = PastUse(snapshot)
    held = [HeldAllocation(allocation="x", job="x", pods=(("n", 8),), share="b/u/x")]
    assert past.go_on(held, NOW) == {"a": 4.0, "b": 2.0}
    assert past.go_on([], NOW + HALF_LIFE) == {"a": 2.0, "b": 5.0, "b/u": 4.0}
    assert past.go_on([], NOW + 2 * HALF_LIFE) == {"a": 1.0, "b": 2.5, "b/u": 2.0}


def test_who_had_the_pool_for_itself_makes_up_for_it() -> None:
    """Five half-lives of one share alone, then one of both: who comes has had the larger part since."""
    queue = VirtualQueue(FAIR, nodes={"n": 8}, task_minutes=10, half_life=HALF_LIFE)
    since: Counter[str] = Counter()
    for minute in range(6 * 60):
        has_come = minute >= 5 * 60
        _ask(queue, {"a": 1.0, "b": 1.0} if has_come else {"a": 1.0}, 8)
        queue.step()
        if has_come:
            since.update(one.share.partition("/")[0] for one in queue.held.values())
    assert since["b"] > 1.5 * since["a"] > 0


@settings(max_examples=6, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from((0.5, 1.0, 3.0)), min_size=2),
    st.sampled_from((1, 1, 4)),
    st.dictionaries(st.sampled_from("abc"), st.floats(0.0, 8.0)),
)
def test_use_is_as_the_weights_say_in_the_long_run(
    weights: dict[str, float], slots: int, before: dict[str, float]
) -> None:
    """Whoever has used more before. Of one slot as exactly as tasks are short: those who do not remember take turns
    there, whatever they weigh. Of several the last one is not divided."""
    queue = VirtualQueue(FAIR, nodes={"n": slots}, task_minutes=5, weights=weights, half_life=HALF_LIFE)
    queue.past_use = {name: used for name, used in before.items() if name in weights}
    for _ in range(8 * 60):
        _ask(queue, weights, slots)
        queue.step()
    total = sum(weights.values())
    for name, weight in weights.items():
        within = 0.12 if slots == 1 else 1.0
        assert queue.past_use[name] == pytest.approx(slots * weight / total, rel=0, abs=within)


def _ask(queue: VirtualQueue, weights: dict[str, float], count: int) -> None:
    """Each always wants more than there is."""
    waiting = Counter(one.share.partition("/")[0] for one in queue.pending)
    for name in weights:
        for _ in range(count - waiting[name]):
            queue.submit(name, (1,), share=f"{name}/{name}", preemptible=False)
