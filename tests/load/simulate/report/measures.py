"""Measures of one simulation, over the span of submissions without its first and its last tenth.

Jobs count that were submitted in that time, the same ones for every policy. A job that never started has waited until
the simulation ended, which is a lower bound.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from tests.load.simulate.engine.outcome import JobOutcome, Outcome, Usage

T = TypeVar("T")

BOUND_S = 10.0
"""Of bounded slowdown: a shorter job counts as if it were as long, or the shortest ones would decide it all."""
SIZES = ((1, 1), (2, 4), (5, 8), (9, 16), (17, 64), (65, 10**9))


class Spread(Struct, frozen=True):
    """How values are distributed; all zero where there are none."""

    count: int = 0
    mean: float = 0.0
    median: float = 0.0
    p90: float = 0.0
    p95: float = 0.0
    max: float = 0.0


class Measures(Struct, frozen=True, kw_only=True):
    policy: str
    utilisation: float
    """Share of all slots that jobs ran on."""
    idle_bound: float
    """Share of all slots that pods held while they waited for the rest of their gang."""
    wait_s: Spread
    """From submission to the first start."""
    wait_s_by_size: dict[str, Spread]
    wait_s_by_priority: dict[str, Spread]
    wait_s_by_user: dict[str, Spread]
    slowdown: Spread
    """Bounded slowdown."""
    fairness: float
    """Jain's index over the mean bounded slowdowns of the users: 1 when all are the same."""
    evictions: int
    lost_slot_s: float
    """Slots times run time that had to be repeated, of all jobs of the trace."""
    foreseen_error_s: Spread
    """Between the first instant for which a start was foreseen and the start."""
    foreseen_wait_s: Spread
    """How long those waited whose start was foreseen."""
    run_time_error: Spread
    """By which factor the estimate of the run time was too large or too small; 1 is right."""
    never_started: int
    """Of all jobs of the trace."""
    makespan_s: float
    """From the first submission until nothing more happened."""
    plans: int


def measure(outcome: Outcome) -> Measures:
    begin, end = outcome.workload.trace.measured_s
    jobs = [one for one in outcome.jobs if begin <= one.job.submitted_s < end]

    def waits(of: Sequence[JobOutcome]) -> Spread:
        return spread([_wait_s(one, outcome) for one in of])

    slowdowns = [_slowdown(one, outcome) for one in jobs]
    by_user = _grouped(list(zip(jobs, slowdowns, strict=True)), lambda pair: pair[0].job.user)
    capacity = outcome.workload.slots * (end - begin)
    foreseen = [
        (abs(one.started_s - one.foreseen_s), _wait_s(one, outcome))
        for one in jobs
        if one.started_s is not None and one.foreseen_s is not None
    ]
    return Measures(
        policy=outcome.policy,
        utilisation=sum(part * one.running for part, one in _parts(outcome, begin, end)) / capacity,
        idle_bound=sum(part * one.idle_bound for part, one in _parts(outcome, begin, end)) / capacity,
        wait_s=waits(jobs),
        wait_s_by_size={name: waits(of) for name, of in _grouped(jobs, lambda one: size_class(one.job.slots)).items()},
        wait_s_by_priority={
            name: waits(of) for name, of in _grouped(jobs, lambda one: f"{one.job.priority:02}").items()
        },
        wait_s_by_user={name: waits(of) for name, of in _grouped(jobs, lambda one: one.job.user).items()},
        slowdown=spread(slowdowns),
        fairness=jain([sum(value for _, value in pairs) / len(pairs) for pairs in by_user.values()]),
        evictions=sum(one.evictions for one in outcome.jobs),
        lost_slot_s=sum(one.lost_s * one.job.slots for one in outcome.jobs),
        foreseen_error_s=spread([error for error, _ in foreseen]),
        foreseen_wait_s=spread([wait for _, wait in foreseen]),
        run_time_error=spread([_factor(one.estimate_s, one.job.run_s) for one in jobs]),
        never_started=sum(one.started_s is None for one in outcome.jobs),
        makespan_s=outcome.ended_s,
        plans=outcome.plans,
    )


def size_class(slots: int) -> str:
    """Names sort by size."""
    least, most = next(size for size in SIZES if slots <= size[1])
    return f"{least:02}" if least == most else f"{least:02}-{most:02}" if most < 10**9 else f"{least:02}+"


def spread(values: Sequence[float]) -> Spread:
    """Percentiles are values that occur: the smallest one that as many percent of all do not exceed."""
    if not values:
        return Spread()
    ordered = sorted(values)

    def at(share: float) -> float:
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    return Spread(
        count=len(ordered),
        mean=sum(ordered) / len(ordered),
        median=at(0.5),
        p90=at(0.9),
        p95=at(0.95),
        max=ordered[-1],
    )


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: from 1 over the number of values, when one has everything, to 1, when all are equal."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def usage_by_part(outcome: Outcome, parts: int) -> list[float]:
    """Utilisation of each of ``parts`` equal parts of the span of submissions."""
    span_s = outcome.workload.trace.span_s
    used = [0.0] * parts
    for part in range(parts):
        begin, end = span_s * part / parts, span_s * (part + 1) / parts
        within = _parts(outcome, begin, end)
        used[part] = sum(length * one.running for length, one in within) / (outcome.workload.slots * (end - begin))
    return used


def waits_in_order(outcome: Outcome) -> list[float]:
    """Waiting times in seconds of the jobs that are measured, shortest first."""
    begin, end = outcome.workload.trace.measured_s
    return sorted(_wait_s(one, outcome) for one in outcome.jobs if begin <= one.job.submitted_s < end)


def _parts(outcome: Outcome, begin: float, end: float) -> list[tuple[float, Usage]]:
    """What was in use between two instants, and for how many seconds."""
    usage = outcome.usage
    first = max(0, bisect_right(usage, begin, key=lambda one: one.at_s) - 1)
    last = bisect_left(usage, end, key=lambda one: one.at_s)
    ends = [min(end, one.at_s) for one in usage[first + 1 : last]] + [end]
    return [(to - max(begin, one.at_s), one) for to, one in zip(ends, usage[first:last], strict=True)]


def _wait_s(one: JobOutcome, outcome: Outcome) -> float:
    return (outcome.ended_s if one.started_s is None else one.started_s) - one.job.submitted_s


def _slowdown(one: JobOutcome, outcome: Outcome) -> float:
    """Source: D. G. Feitelson, "Metrics for parallel job scheduling and their convergence", JSSPP 2001."""
    # One that never started would have run from the end on, at the earliest.
    ended_s = outcome.ended_s + one.job.run_s if one.ended_s is None else one.ended_s
    return max(1.0, (ended_s - one.job.submitted_s) / max(one.job.run_s, BOUND_S))


def _factor(estimate: float, truth: float) -> float:
    estimate, truth = max(estimate, 1.0), max(truth, 1.0)
    return max(estimate / truth, truth / estimate)


def _grouped(values: Sequence[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return dict(sorted(groups.items()))
