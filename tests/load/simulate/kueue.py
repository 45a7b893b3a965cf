"""Command line: ``python -m tests.load.simulate.kueue GENERATOR.yaml``, Kueue's performance test in virtual time
(docs/simulator.md)."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from services.scheduler.plan.snapshot import PoolPolicy
from tests.load.simulate.cluster import SimulatedNode, Workload
from tests.load.simulate.engine.outcome import Outcome
from tests.load.simulate.engine.simulation import Policy, simulate
from tests.load.simulate.policies.easy import Easy
from tests.load.simulate.policies.fifo import Fifo
from tests.load.simulate.policies.resolute import Resolute
from tests.load.simulate.report.table import table
from tests.load.simulate.traces.kueue import Cohort, read_kueue

REPLAYED: Final[Mapping[str, Callable[[Mapping[str, int]], Policy]]] = {
    "FIFO": lambda _: Fifo(),
    "EASY backfill": lambda _: Easy(),
    "Resolute, priority": lambda most: Resolute(PoolPolicy(), most_slots=most),
    "Resolute, preemption": lambda most: Resolute(PoolPolicy(preemption=True), most_slots=most),
    "Resolute, fair share": lambda most: Resolute(PoolPolicy(queue="fair_share"), most_slots=most),
}
"""Policies by title; each is given how many slots some users may hold."""


class Replayed(Struct, frozen=True, kw_only=True):
    jobs: int
    total_s: float
    """From the beginning until the last one has ended."""
    used: float
    """Share of all slots until then."""
    wait_s: dict[str, float]
    """Mean, by class."""
    evictions: int


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load.simulate.kueue", description=__doc__)
    parser.add_argument("generator", type=Path, help="the file that the test is generated from")
    path = parser.parse_args(argv).generator
    try:
        cohorts = read_kueue(path)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(as_table({title: replayed(cohorts, make) for title, make in REPLAYED.items()}))
    return 0


def replayed(cohorts: Sequence[Cohort], make: Callable[[Mapping[str, int]], Policy]) -> Replayed:
    """Cohorts lend each other nothing, so they run side by side."""
    outcomes = [_run(cohort, make(cohort.most_slots)) for cohort in cohorts]
    waits: defaultdict[str, list[float]] = defaultdict(list)
    for cohort, outcome in zip(cohorts, outcomes, strict=True):
        for one, name in zip(outcome.jobs, cohort.classes, strict=True):
            started_s = outcome.ended_s if one.started_s is None else one.started_s
            waits[name].append(started_s - one.job.submitted_s)
    total_s = max(outcome.ended_s for outcome in outcomes)
    ran = sum(one.job.slots * one.job.run_s for outcome in outcomes for one in outcome.jobs)
    return Replayed(
        jobs=sum(len(outcome.jobs) for outcome in outcomes),
        total_s=total_s,
        used=ran / (sum(cohort.slots for cohort in cohorts) * total_s),
        wait_s={name: sum(values) / len(values) for name, values in sorted(waits.items())},
        evictions=sum(one.evictions for outcome in outcomes for one in outcome.jobs),
    )


def as_table(found: Mapping[str, Replayed]) -> str:
    classes = next(iter(found.values())).wait_s
    head = ("Policy", "Total time", "Jobs a second", "In use", *(f"Wait, {name}" for name in classes), "Evictions")
    rows = [
        (
            title,
            f"{one.total_s:.1f} s",
            f"{one.jobs / one.total_s:.0f}",
            f"{one.used:.0%}",
            *(f"{seconds:.1f} s" for seconds in one.wait_s.values()),
            f"{one.evictions}",
        )
        for title, one in found.items()
    ]
    return table(head, rows)


def _run(cohort: Cohort, policy: Policy) -> Outcome:
    workload = Workload(trace=cohort.trace, nodes=(SimulatedNode(slots=cohort.slots),))
    return simulate(cohort.trace.name, policy, workload)


if __name__ == "__main__":
    sys.exit(main())
