"""Curves of one simulation, as few points as a plot needs."""

from __future__ import annotations

from msgspec import Struct

from tests.load.simulate.engine.outcome import Outcome
from tests.load.simulate.report.measures import measure, usage_by_part, waits_in_order

PARTS = 120
QUANTILES = 400


class Curves(Struct, frozen=True, kw_only=True):
    policy: str
    utilisation: list[float]
    """Of each of equal parts of the span of submissions."""
    wait_s: list[float]
    """Waiting times at equal steps from the shortest to the longest."""
    wait_s_by_size: dict[str, float]
    """Mean waiting time by GPUs of the job."""


def curves_of(outcome: Outcome) -> Curves:
    waits = waits_in_order(outcome)
    steps = min(QUANTILES, len(waits))
    return Curves(
        policy=outcome.policy,
        utilisation=usage_by_part(outcome, PARTS),
        wait_s=[waits[round(step * (len(waits) - 1) / max(1, steps - 1))] for step in range(steps)],
        wait_s_by_size={name: of.mean for name, of in measure(outcome).wait_s_by_size.items()},
    )
