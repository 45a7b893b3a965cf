"""When requests are expected to start, and by what: the planner in virtual time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.plan.forecast.estimates import ExpectedEnd, StartEstimate, estimates_of, shortened
from services.scheduler.plan.forecast.replay import Replay
from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import HourLimit, PoolPolicy, PoolSnapshot
from tests.scenarios.queue.notation import NOW, Case, snapshot

HOUR = timedelta(hours=1)
PREEMPTS = PoolPolicy(preemption=True)
SHARES = PoolPolicy(queue="fair_share")


class Row(NamedTuple):
    name: str
    cluster: Mapping[str, int]
    requests: str
    starts: str
    """Minutes from now, as in ``a=0 b=60``; ``-`` where none is expected. Each runs for an hour."""
    ends: str = ""
    """Of what is held: minutes from now, an hour if it is not named."""
    policy: PoolPolicy = PoolPolicy()
    basis: Mapping[str, str] = {}
    maintenance: str = ""
    limits: Mapping[str, HourLimit] = {}
    moves_left: int = 0
    not_before: Mapping[str, int] = {}
    """Of what waits in another pool first: minutes from now."""


def hours(most: float, spent: float = 0, *, until: int = 360, period: str = "day") -> HourLimit:
    """Slot-hours of a period whose end is ``until`` minutes from now."""
    next_at = NOW + timedelta(minutes=until)
    return HourLimit(holder="group lab", period=period, most_s=most * 3600, spent_s=spent * 3600, next_at=next_at)


ROWS = [
    Row("what has room starts now", {"n": 8}, "a 8", "a=0", basis={"a": "there is room for it"}),
    Row(
        "a request starts when its holders have ended",
        {"n": 8},
        "r 4@n; s 4@n; a 8",
        "a=90",
        ends="r=30 s=90",
        basis={
            "a": "it gets 8 slots from 2 tasks that run now, the last of which is expected to end at"
            " 2030-01-02T01:30:00Z by what its user ran before"
        },
    ),
    Row(
        "one waits for those before it, too",
        {"n": 8},
        "r 8@n; a 8; b 8",
        "a=60 b=120",
        basis={"b": "1 job before it in the queue, with 8 slots; 1 task of the queue is expected to run there before"},
    ),
    Row(
        "of one holder its end is told",
        {"n": 8},
        "r 8@n; a 8",
        "a=60",
        basis={
            "a": "it gets 8 slots from 1 task that runs now, which is expected to end at"
            " 2030-01-02T01:00:00Z by what its user ran before"
        },
    ),
    Row("a small one does not pass what has its place reserved", {"n": 8}, "r 4@n; a 8; b 4", "a=60 b=120"),
    Row("what never fits has no estimate", {"n": 8}, "a 16; b 8", "a=- b=0"),
    Row("more important requests go first", {"n": 8}, "r 8@n; a 8[50]; b 8[10]", "b=60 a=120"),
    Row(
        "victims leave within a minute, and come back",
        {"n": 8},
        "r 8[50]@n; a 8[10]; b 8[50]",
        "a=1",
        policy=PREEMPTS,
        basis={"a": "it gets 8 slots from 1 task that runs now, which leaves to make room"},
    ),
    Row("ends that lie close together are one instant", {"n": 2}, "r 1@n; s 1@n; a 1; b 1", "a=62 b=62", ends="s=62"),
    Row(
        "what is freed goes to the share that holds less",
        {"n": 2},
        "r 1@n by y; s 1@n by x; a 1 by x; b 1 by y",
        "b=30 a=90",
        ends="r=30 s=120",
        policy=SHARES,
    ),
    Row("pods without slots have their own room", {"n": 8}, "r 8@n; a 0; b 8", "a=0 b=60"),
    Row(
        "the end of maintenance makes room, though nothing is held",
        {"n": 4},
        "a 4 for 900",
        "a=10",
        maintenance="n 0 600",
        basis={"a": "there is room for it then"},
    ),
    Row("and before what is held ends", {"n": 4}, "r 1@n; a 2 for 900", "a=10", maintenance="n 300 600"),
    Row(
        "what more than one window is in the way of waits for the last",
        {"n": 4},
        "a 4 for 900",
        "a=30",
        maintenance="n 0 600; n 1200 1800",
    ),
    Row(
        "what has no time limit ends for maintenance, and its nodes are free after it",
        {"n": 4},
        "r 4@n np; a 4",
        "a=30",
        ends="r=300",
        maintenance="n 600 1800",
    ),
    Row(
        "what may be preempted comes back from it and goes on for what is left",
        {"n": 4},
        "r 4@n; a 4",
        "a=320",
        ends="r=300",
        maintenance="n 600 1800",
    ),
    Row(
        "maintenance elsewhere ends nothing",
        {"n": 4, "m": 4},
        "r 4@n np; s 4@m np; a 4",
        "a=100",
        ends="r=300 s=100",
        maintenance="n 9000 9600",
    ),
    Row(
        "what starts before maintenance ends for it, too",
        {"n": 4},
        "a 4 np; b 4",
        "a=0 b=50",
        maintenance="n 1800 3000",
    ),
    Row("what is moved makes room", {"n": 8, "m": 8}, "r 4@n mv; s 4@m mv; a 8", "a=1", ends="r=90 s=90", moves_left=1),
    Row(
        "where nothing may be moved it does not", {"n": 8, "m": 8}, "r 4@n mv; s 4@m mv; a 8", "a=90", ends="r=90 s=90"
    ),
    Row(
        "what is moved runs as long as before",
        {"n": 8, "m": 8},
        "r 4@n mv; s 4@m np; a 8; b 8",
        "a=1 b=61",
        ends="r=90 s=90",
        moves_left=1,
    ),
    Row(
        "what waits in another pool first is not in the queue until then",
        {"n": 8},
        "r 8@n; a 8; b 4",
        "a=120 b=60",
        not_before={"a": 90},
    ),
    Row("nor before it, though there is room", {"n": 8}, "a 8", "a=25", not_before={"a": 25}),
    Row("an end that nobody lives to see is none", {"n": 4}, "a 4 for 900", "a=-", maintenance="n 0 251000000000"),
    Row(
        "a new period lets through what has used up the last one, though nothing is held",
        {"n": 4},
        "a 4 under lab for 900; b 4 under lab",
        "a=360 b=1440",
        limits={"lab": hours(4, 4)},
        basis={"a": "there is room for it then"},
    ),
    Row(
        "what may use more than a whole period has never",
        {"n": 4},
        "a 4 under lab for 7200",
        "a=-",
        limits={"lab": hours(7)},
    ),
    Row("and so has what may use nothing", {"n": 4}, "a 4 under lab", "a=-", limits={"lab": hours(0)}),
    Row(
        "what starts uses up what is left, in each period",
        {"n": 4},
        "a 1 under lab for 7200; b 1 under lab for 7200; c 1 under lab for 7200; d 1",
        "a=0 b=360 c=1440 d=0",
        limits={"lab": hours(2)},
    ),
    Row(
        "what ends before its time gives back what it was charged",
        {"n": 4},
        "a 1 under lab for 7200; b 1 under lab for 5400",
        "a=0 b=60",
        limits={"lab": hours(2.5)},
    ),
    Row(
        "what runs without a time limit uses up what is left",
        {"n": 4},
        "r 1@n under lab; a 4 under lab",
        "a=360",
        limits={"lab": hours(1, 0.5)},
    ),
    Row(
        "what runs into the next period counts there from its beginning",
        {"n": 2},
        "r 1@n under lab for 36000; a 1 under lab for 3600",
        "a=1440",
        ends="r=480",
        limits={"lab": hours(2, 2)},
    ),
    Row(
        "of two limits both have to let it through",
        {"n": 4},
        "a 1 under lab,ann for 900",
        "a=2880",
        limits={"lab": hours(4, 4), "ann": hours(9, 9, until=2880, period="week")},
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_starts_are_expected(row: Row) -> None:
    found = {one.allocation: one for one in estimate(_snapshot(row), _minutes(row.ends))}
    for part in row.starts.split():
        name, _, minutes = part.partition("=")
        at = found[name].at
        assert (None if at is None else (at - NOW) / timedelta(minutes=1)) == (
            None if minutes == "-" else float(minutes)
        ), name
    assert {name: found[name].basis for name in row.basis} == row.basis


def estimate(pool: PoolSnapshot, ends: Mapping[str, float]) -> tuple[StartEstimate, ...]:
    expected = {
        one.allocation: ExpectedEnd(NOW + timedelta(minutes=ends.get(one.allocation, 60)), "user") for one in pool.held
    }
    replay = Replay(pool, lengths={}, ends={name: end.at for name, end in expected.items()}, otherwise=HOUR)
    while replay.step():
        assert len(replay.starts) <= len(pool.pending)
    return estimates_of(pool, replay, expected)


def _snapshot(row: Row) -> PoolSnapshot:
    case = Case(
        row.name,
        row.cluster,
        row.requests,
        policy=row.policy,
        maintenance=row.maintenance,
        limits=row.limits,
        moves_left=row.moves_left,
    )
    pool = snapshot(case)
    later = {name: NOW + timedelta(minutes=minutes) for name, minutes in row.not_before.items()}
    pending = (msgspec.structs.replace(one, not_before=later.get(one.allocation)) for one in pool.pending)
    return msgspec.structs.replace(pool, pending=tuple(pending))


def _minutes(ends: str) -> dict[str, float]:
    return {name: float(minutes) for name, _, minutes in (part.partition("=") for part in ends.split())}


def test_those_before_a_request_are_counted_by_job_and_slots() -> None:
    pool = snapshot(Case("", {"n": 8}, "r 8@n; a:j 2; b:j 2; c 4; d 0"))
    ahead = {one.allocation: one.ahead for one in estimate(pool, {})}
    assert ahead == {"a": (0, 0), "b": (0, 0), "c": (1, 4), "d": (0, 0)}


def test_the_first_of_a_long_queue_are_those_that_the_policy_takes_first() -> None:
    requests = "; ".join([*(f"a{n} 1 by x" for n in range(5)), "b 1 by y"])
    by_share = shortened(snapshot(Case("", {"n": 1}, requests, policy=SHARES)), 2)
    assert [one.allocation for one in by_share.pending] == ["a0", "b"]
    by_rank = shortened(snapshot(Case("", {"n": 1}, requests)), 2)
    assert [one.allocation for one in by_rank.pending] == ["a0", "a1"]


@pytest.mark.parametrize("policy", [PoolPolicy(), SHARES], ids=attrgetter("queue"))
def test_what_may_not_start_yet_takes_no_place_of_what_is_in_the_queue(policy: PoolPolicy) -> None:
    requests = "; ".join([*(f"guest{n} 1[42] by g{n}" for n in range(5)), *(f"own{n} 1[50] by x" for n in range(3))])
    queue = _snapshot(Row("", {"n": 1}, requests, "", policy=policy, not_before={f"guest{n}": 9 for n in range(5)}))
    assert [one.allocation for one in shortened(queue, 4).pending] == ["own0", "own1", "own2", "guest0"]
    may_start = msgspec.structs.replace(queue, now=NOW + timedelta(minutes=9))
    assert "guest1" in {one.allocation for one in shortened(may_start, 4).pending}


_SLOTS = st.sampled_from([1, 2, 4, 8])


@given(
    held=st.lists(st.tuples(_SLOTS, st.integers(1, 500)), max_size=4),
    pending=st.lists(st.tuples(_SLOTS, st.integers(40, 43)), max_size=8),
    policy=st.sampled_from([PoolPolicy(), PREEMPTS, SHARES, PoolPolicy(queue="fifo")]),
    moves_left=st.sampled_from([0, 1, 3]),
    maintenance=st.sampled_from(["", "n0 600 1800", "n0,n1 600 1800; n1 6000 9000"]),
    seed=st.integers(0, 9),
)
def test_estimates_are_instants_not_in_the_past_and_the_order_of_a_snapshot_does_not_matter(
    held: list[tuple[int, int]],
    pending: list[tuple[int, int]],
    policy: PoolPolicy,
    moves_left: int,
    maintenance: str,
    seed: int,
) -> None:
    nodes = {f"n{number}": 8 for number in range(4)}
    running = [f"r{number} {slots}@n{number} mv" for number, (slots, _) in enumerate(held)]
    waiting = [f"w{number} {slots}[{priority}]" for number, (slots, priority) in enumerate(pending)]
    case = Case("", nodes, "; ".join([*running, *waiting]), policy=policy, moves_left=moves_left)
    pool = snapshot(case._replace(maintenance=maintenance))
    ends = {f"r{number}": float(minutes) for number, (_, minutes) in enumerate(held)}
    found = estimate(pool, ends)
    assert {one.allocation for one in found} == {one.allocation for one in pool.pending}
    assert all(one.at is not None and one.at >= NOW for one in found), "all of them fit, and everything ends"
    now = {start.allocation for start in plan(pool).starts}
    assert {one.allocation for one in found if one.at == NOW} == now, "what starts now is what the next plan starts"
    mixed = msgspec.structs.replace(pool, pending=_mixed(pool.pending, seed), held=_mixed(pool.held, seed))
    assert estimate(mixed, ends) == found


def _mixed(values: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    return tuple(random.Random(seed).sample(values, len(values)))


def test_the_number_of_plans_grows_with_the_horizon_and_not_with_what_ends() -> None:
    """300 tasks that end within a month, each at a time of its own, and as many requests behind them."""
    nodes = {f"n{number}": 1 for number in range(300)}
    running = [f"r{number} 1@n{number}" for number in range(300)]
    pool = snapshot(Case("", nodes, "; ".join([*running, *(f"w{number} 1" for number in range(300))])))
    expected = {one.allocation: NOW + timedelta(minutes=137 * (place + 1)) for place, one in enumerate(pool.held)}
    replay = Replay(pool, lengths={}, ends=expected, otherwise=timedelta(days=40))
    plans = 1
    while replay.step():
        plans += 1
    assert len(replay.starts) == 300
    assert plans < 100
